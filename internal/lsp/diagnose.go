package lsp

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// grace is how long a judgment that was told to end may go on before the next one
// begins beside it, and maxStuck how many may go on at a time.
const (
	grace    = 2 * time.Second
	maxStuck = 2
)

// maxDiagnostics is how many are published of a document.
const maxDiagnostics = 200

// errTimeLimit is the cause of a judgment's end that took too long.
var errTimeLimit = errors.New("time limit")

// schedule judges a document as it is now, once it has rested. What is judged or due
// for it ends: an edit makes it pointless.
func (s *server) schedule(d *document) {
	if d.kind == foreign {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	if d.cancel != nil {
		d.cancel()
	}
	d.cancel = cancel
	snap := *d
	s.mu.Unlock()
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer cancel()
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.o.Debounce):
		}
		_ = s.guard("judging "+snap.name, func() error { // what fails is logged
			s.publish(ctx, &snap, d, s.findings(ctx, &snap, d))
			return nil
		})
	}()
}

// publish tells the client what was found, unless it is out of date.
func (s *server) publish(ctx context.Context, d, live *document, list diag.List) {
	p := publishParams{URI: d.uri, Diagnostics: []diagnostic{}}
	if s.caps.Capabilities.TextDocument.PublishDiagnostics.VersionSupport {
		p.Version = d.version
	}
	var found []finding
	said := make(map[string]bool)
	for _, m := range list {
		if m.Severity == diag.Info {
			continue
		}
		if len(p.Diagnostics) >= maxDiagnostics {
			break
		}
		if key := m.Error(); !said[key] { // protocol auto is judged several times
			said[key] = true
			x := s.diagnostic(d, m)
			p.Diagnostics = append(p.Diagnostics, x)
			found = append(found, finding{x.Range.Start, x.Code})
		}
	}
	s.publishing.Lock()
	defer s.publishing.Unlock()
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	live.found = found
	s.mu.Unlock()
	if err := s.conn.notify("textDocument/publishDiagnostics", p); err != nil {
		s.stop(err)
	}
}

// findings are what is wrong with a document. A text that doesn't parse is not run.
func (s *server) findings(ctx context.Context, d, live *document) diag.List {
	if d.kind == script && (d.tree.file == nil || d.tree.errs.HasErrors()) {
		return d.tree.errs
	}
	select {
	case s.judging <- struct{}{}:
		defer func() { <-s.judging }()
	case <-ctx.Done():
		return nil
	}
	select { // given back when the judgment really ends
	case s.alive <- struct{}{}:
	case <-ctx.Done():
		return nil
	case <-time.After(s.o.TimeLimit):
		return s.unjudged(d, "earlier runs of scripts don't end, so this one was not begun")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.TimeLimit, errTimeLimit)
	defer cancel()
	done := make(chan diag.List, 1)
	loaded := &fileSet{names: map[string]bool{}}
	go func() {
		defer func() { <-s.alive }()
		done <- s.judge(ctx, d, loaded)
	}()
	var list diag.List
	select {
	case list = <-done:
	case <-ctx.Done():
		select {
		case list = <-done:
		case <-time.After(grace): // it is left behind
		}
	}
	if errors.Is(context.Cause(ctx), errTimeLimit) {
		list = s.unjudged(d, "running and checking it takes more than "+s.o.TimeLimit.String()+", which is too long while one types")
	}
	s.mu.Lock()
	live.loaded = loaded.all()
	s.mu.Unlock()
	return list
}

// unjudged says why there is no verdict.
func (s *server) unjudged(d *document, why string) diag.List {
	return diag.List{diag.Warningf(diag.Pos{File: d.name, Line: 1}, "not-judged", "not judged: %s", why).
		Suggest("mscclsh check %s has no such limit", d.name)}
}

// judge is Options.Judge, whose panics are defects.
func (s *server) judge(ctx context.Context, d *document, loaded *fileSet) (list diag.List) {
	defer func() {
		if v := recover(); v != nil {
			s.log.Printf("internal error while judging %s: %v\n%s", d.name, v, debug.Stack())
			list = diag.List{diag.Errorf(diag.Pos{File: d.name, Line: 1}, "internal", "internal error: %v", v).
				Suggest("this is a defect of mscclsh: please report it with the script")}
		}
	}()
	return s.o.Judge(ctx, d.name, []byte(d.text.s), func(file string) ([]byte, error) {
		loaded.add(file)
		return s.read(file)
	})
}

// fileSet collects names from any goroutine.
type fileSet struct {
	mu    sync.Mutex
	names map[string]bool
}

func (f *fileSet) add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[name] = true
}

func (f *fileSet) all() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[string]bool, len(f.names))
	for n := range f.names {
		out[n] = true
	}
	return out
}

// diagnostic puts a message into the protocol's shape. What went wrong in another
// file is said where this one leads there.
func (s *server) diagnostic(d *document, m *diag.Message) diagnostic {
	caps := &s.caps.Capabilities.TextDocument.PublishDiagnostics
	out := diagnostic{Severity: severityError, Code: m.Code, Source: "mscclsh"}
	if m.Severity == diag.Warning {
		out.Severity = severityWarning
	}
	if m.Code == "not-judged" {
		out.Severity = severityInformation
	}
	pos, notes, message := s.here(d, m)
	out.Range = d.text.span(d.extent(pos), d.end(pos), s.enc)
	for _, n := range notes {
		if n.Pos.Line > 0 && caps.RelatedInformation {
			if loc, ok := s.locate(d, n.Pos); ok {
				out.RelatedInformation = append(out.RelatedInformation, related{loc, n.Text})
				continue
			}
		}
		message += "\n" + n.Text
		if n.Pos.IsValid() {
			message += " (" + n.Pos.String() + ")"
		}
	}
	if m.Suggestion != "" {
		message += "\n" + m.Suggestion
	}
	var places []diag.Pos
	out.Message, places = d.lines(message)
	for _, p := range places {
		if loc, ok := s.locate(d, p); ok && caps.RelatedInformation {
			out.RelatedInformation = append(out.RelatedInformation, related{loc, fmt.Sprintf("line %d", p.Line)})
		}
	}
	if link := s.link(m.Code); link != "" {
		if caps.CodeDescriptionSupport {
			out.CodeDescription = &codeDescription{link}
		}
	}
	return out
}

// lines puts "line 3" in place of this file's name with line and column, and gives
// these places.
func (d *document) lines(message string) (string, []diag.Pos) {
	var places []diag.Pos
	re := regexp.MustCompile(regexp.QuoteMeta(d.name) + `:(\d+):(\d+)`)
	text := re.ReplaceAllStringFunc(message, func(found string) string {
		p := diag.Pos{File: d.name}
		if _, err := fmt.Sscanf(found[len(d.name):], ":%d:%d", &p.Line, &p.Col); err != nil {
			return found
		}
		places = append(places, p)
		return fmt.Sprintf("line %d", p.Line)
	})
	return text, places
}

func (s *server) link(code string) string {
	if s.o.Link == nil || code == "" {
		return ""
	}
	return s.o.Link(code)
}

// here is where in the document a message is said. The place in another file is a
// note then.
func (s *server) here(d *document, m *diag.Message) (diag.Pos, []diag.Note, string) {
	if m.Pos.File == d.name || m.Pos.File == "" {
		return m.Pos, m.Notes, m.Text
	}
	notes := append([]diag.Note{{Pos: m.Pos, Text: m.Text}}, m.Notes...)
	message := m.Pos.String() + ": " + m.Text
	for _, n := range m.Notes {
		if n.Pos.File == d.name && n.Pos.Line > 0 {
			return n.Pos, notes, message
		}
	}
	if d.tree != nil {
		for _, l := range d.tree.loads {
			if x := s.load(d.tree, l.ModuleName()); x != nil && x.name == m.Pos.File {
				p := d.tree.text.position(d.tree.at(l.Module.TokenPos), utf8Units)
				return diag.Pos{File: d.name, Line: int32(p.Line) + 1, Col: int32(p.Character) + 1}, notes, message
			}
		}
	}
	return diag.Pos{File: d.name, Line: 1}, notes, message
}

// extent is where what a message is about begins.
func (d *document) extent(p diag.Pos) int {
	if p.Line > 0 && p.Col == 0 {
		line := d.text.line(int(p.Line) - 1)
		return d.text.place(p.Line, int32(len(line)-len(strings.TrimLeft(line, " \t")))+1)
	}
	return d.text.place(p.Line, p.Col)
}

// end is where it ends: with the token that stands there, else with the line if it
// is all about, else one character further.
func (d *document) end(p diag.Pos) int {
	from := d.extent(p)
	n := d.text.lineOf(from)
	lineEnd := d.text.starts[n] + len(d.text.line(n))
	if p.Col == 0 {
		return max(from, lineEnd)
	}
	if d.tree != nil {
		tokens := d.tree.tokens
		if i := sort.Search(len(tokens), func(i int) bool { return tokens[i].from > from }); i > 0 && from < tokens[i-1].to {
			return min(tokens[i-1].to, max(lineEnd, from))
		}
	}
	rest := d.text.s[from:lineEnd]
	if i := strings.IndexAny(rest, " \t"); i > 0 {
		return from + i
	}
	_, size := utf8.DecodeRuneInString(rest)
	return from + size
}

// locate is the place of a note, in this file or in another one.
func (s *server) locate(d *document, p diag.Pos) (location, bool) {
	if p.File == d.name {
		return location{d.uri, d.text.span(d.extent(p), d.end(p), s.enc)}, true
	}
	data, err := s.read(p.File)
	uri := s.uriOf(p.File)
	if err != nil || uri == "" {
		return location{}, false
	}
	t := newText(string(data))
	other := &document{text: t}
	if kindOf(p.File, "", t.s) == script && len(t.s) <= maxDocument {
		other.tree = &tree{tokens: lex(t.s)}
	}
	return location{uri, t.span(other.extent(p), other.end(p), s.enc)}, true
}
