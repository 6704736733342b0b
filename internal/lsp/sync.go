package lsp

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	"github.com/mscclsh/mscclsh/starlib"
)

// document is a document that the client has open. Only the goroutine that reads
// messages changes one, under the server's lock.
type document struct {
	uri     string
	name    string // the file, as load() and positions have it
	lang    string // what the client calls its language
	kind    documentKind
	version *int32
	tree    *tree // of a script
	good    *tree // the latest that parsed
	text    *text
	cancel  context.CancelFunc // of the judgment that is due or running, or nil
	loaded  map[string]bool    // files that the latest judgment read
	found   []finding          // what the latest judgment found
}

// finding is where something was found, and its code.
type finding struct {
	at   position
	code string
}

// documentKind is what a document is to this server.
type documentKind uint8

const (
	script  documentKind = iota
	program              // in its text form: judged, no more
	foreign              // nothing that this server knows
)

// kindOf tells a document by its name, an unsaved one by what the client calls its
// language, and a program by how it begins.
func kindOf(name, language, text string) documentKind {
	switch strings.ToLower(path.Ext(name)) {
	case ".star":
		return script
	case "":
		if strings.HasPrefix(name, "untitled:") && language == "starlark" {
			return script
		}
	case ".txt":
		for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				if strings.HasPrefix(line, `program "`) {
					return program
				}
				break
			}
		}
	}
	return foreign
}

// set gives a document its text.
func (d *document) set(t *text) {
	d.text = t
	d.kind = kindOf(d.name, d.lang, t.s)
	if d.kind != script {
		return
	}
	d.tree = parse(d.name, t)
	if d.tree.file != nil && !hasSyntaxError(d.tree) {
		d.good = d.tree
	}
}

func hasSyntaxError(x *tree) bool {
	for _, m := range x.errs {
		if m.Code == "syntax" {
			return true
		}
	}
	return false
}

// view is the document as a request sees it: of a text of which nothing parses, the
// names are those of the latest that did.
func (d *document) view() *tree {
	if d.tree == nil || d.tree.file != nil || d.good == nil {
		return d.tree
	}
	v := *d.tree
	v.file, v.source, v.calls, v.defs, v.loads = d.good.file, d.good.source, d.good.calls, d.good.defs, d.good.loads
	return &v
}

func (s *server) didOpen(params json.RawMessage) error {
	var p documentParams
	if err := unmarshal(params, &p); err != nil {
		return err
	}
	d := &document{uri: p.TextDocument.URI, name: s.fileOf(p.TextDocument.URI), lang: p.TextDocument.LanguageID, version: p.TextDocument.Version}
	d.set(newText(p.TextDocument.Text))
	s.mu.Lock()
	if old := s.docs[d.uri]; old != nil && old.cancel != nil {
		old.cancel()
	}
	s.docs[d.uri] = d
	s.mu.Unlock()
	s.changed(d)
	return nil
}

func (s *server) didChange(params json.RawMessage) error {
	var p changeParams
	if err := unmarshal(params, &p); err != nil {
		return err
	}
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return err
	}
	t := d.text
	for _, c := range p.ContentChanges {
		t = t.apply(c, s.enc)
	}
	s.mu.Lock()
	d.version = p.TextDocument.Version
	d.set(t)
	s.mu.Unlock()
	s.changed(d)
	return nil
}

func (s *server) didSave(params json.RawMessage) error {
	var p documentParams
	if err := unmarshal(params, &p); err != nil {
		return err
	}
	s.rejudge(map[string]bool{s.fileOf(p.TextDocument.URI): true})
	return nil
}

func (s *server) didClose(params json.RawMessage) error {
	var p documentParams
	if err := unmarshal(params, &p); err != nil {
		return err
	}
	d, err := s.document(p.TextDocument.URI)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if d.cancel != nil {
		d.cancel()
	}
	delete(s.docs, d.uri)
	s.mu.Unlock()
	s.publishing.Lock()
	defer s.publishing.Unlock()
	if err := s.conn.notify("textDocument/publishDiagnostics", publishParams{URI: d.uri, Diagnostics: []diagnostic{}}); err != nil {
		return err
	}
	s.rejudge(map[string]bool{d.name: true}) // by what the disk has
	return nil
}

func (s *server) didChangeFiles(params json.RawMessage) error {
	var p watchedParams
	if err := unmarshal(params, &p); err != nil {
		return err
	}
	files := make(map[string]bool)
	for _, c := range p.Changes {
		files[s.fileOf(c.URI)] = true
	}
	s.rejudge(files)
	return nil
}

func (s *server) document(uri string) (*document, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.docs[uri]; d != nil {
		return d, nil
	}
	return nil, rpcErrorf(codeInvalidParams, "%s: the document isn't open", uri)
}

// closeAll ends all judgments.
func (s *server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.docs {
		if d.cancel != nil {
			d.cancel()
		}
	}
}

// changed judges a document anew, and those that load it.
func (s *server) changed(d *document) {
	s.schedule(d)
	s.rejudge(map[string]bool{d.name: true})
}

// rejudge judges the open documents that load one of the files.
func (s *server) rejudge(files map[string]bool) {
	s.mu.Lock()
	var due []*document
	for _, d := range s.docs {
		for f := range files {
			if d.loaded[f] && d.name != f {
				due = append(due, d)
				break
			}
		}
	}
	s.mu.Unlock()
	for _, d := range due {
		s.schedule(d)
	}
}

// open is the tree of a file that a document loads: as the client has it open, else
// as it is on disk or in the library; nil if there is none.
func (s *server) open(file string) *tree {
	s.mu.Lock()
	for _, d := range s.docs {
		if d.name == file && d.tree != nil {
			v := d.view()
			s.mu.Unlock()
			return v
		}
	}
	s.mu.Unlock()
	data, err := s.read(file)
	if err != nil {
		return nil
	}
	return parse(file, newText(string(data)))
}

// load is the tree of what load(name) means in a document.
func (s *server) load(x *tree, name string) *tree {
	file, err := starlib.ResolveLoad(x.name, name)
	if err != nil {
		return nil
	}
	return s.open(file)
}

// query is a request about a place.
type query struct {
	tree   *tree
	doc    *document
	offset int
}

// onPosition makes handlers of requests about a document, with a place or without.
func (s *server) onPosition(h func(q query) any) func(json.RawMessage) (handler, error) {
	return func(params json.RawMessage) (handler, error) {
		var p positionParams
		if err := unmarshal(params, &p); err != nil {
			return nil, err
		}
		d, err := s.document(p.TextDocument.URI)
		if err != nil {
			return nil, err
		}
		if d.kind != script {
			return func(context.Context) (any, error) { return nil, nil }, nil
		}
		q := query{tree: d.view(), doc: d}
		q.offset = q.tree.text.offset(p.Position, s.enc)
		return func(context.Context) (any, error) { return h(q), nil }, nil
	}
}
