package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/checker"
	"github.com/mscclsh/mscclsh/internal/lsp"
	"github.com/mscclsh/mscclsh/ir"
)

// editor is the client of a server in this process. It knows the protocol by itself.
type editor struct {
	t      *testing.T
	folder string
	in     io.WriteCloser
	out    *bufio.Reader
	end    chan error
	next   int
	text   map[string]string
}

// startEditor begins a session about the files of a new folder.
func startEditor(t *testing.T, change func(*lsp.Options)) *editor {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fromEditor, in := io.Pipe()
	out, toEditor := io.Pipe()
	s := NewSession(toEditor, io.Discard)
	o := s.editorOptions(fromEditor)
	o.Debounce = 0
	if change != nil {
		change(&o)
	}
	e := &editor{t: t, folder: folder, in: in, out: bufio.NewReader(out), end: make(chan error, 1), text: map[string]string{}}
	go func() {
		err := lsp.Run(context.Background(), o)
		_ = toEditor.Close()
		e.end <- err
	}()
	t.Cleanup(func() {
		_ = in.Close()
		_ = out.Close()
	})
	return e
}

func (e *editor) send(m map[string]any) {
	e.t.Helper()
	m["jsonrpc"] = "2.0"
	body, err := json.Marshal(m)
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(e.in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		e.t.Fatal(err)
	}
}

// receive is the next message of the server.
func (e *editor) receive() map[string]any {
	e.t.Helper()
	got := make(chan map[string]any, 1)
	go func() {
		defer close(got)
		line, err := e.out.ReadString('\n')
		if err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "Content-Length:")))
		if err != nil {
			return
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(e.out, body); err != nil {
			return
		}
		var m map[string]any
		if json.Unmarshal(body, &m) == nil {
			got <- m
		}
	}()
	select {
	case m := <-got:
		if m == nil {
			e.t.Fatal("the server sent no message")
		}
		return m
	case <-time.After(time.Minute):
		e.t.Fatal("the server says nothing")
		return nil
	}
}

// request waits for the answer; what is published meanwhile would be an error.
func (e *editor) request(method string, params any) map[string]any {
	e.t.Helper()
	e.next++
	e.send(map[string]any{"id": e.next, "method": method, "params": params})
	m := e.receive()
	if m["id"] != float64(e.next) {
		e.t.Fatalf("%s: got %v, want the answer", method, m)
	}
	return m
}

func (e *editor) notify(method string, params any) {
	e.t.Helper()
	e.send(map[string]any{"method": method, "params": params})
}

func (e *editor) uri(name string) string {
	return "file://" + filepath.ToSlash(filepath.Join(e.folder, name))
}

func (e *editor) initialize() map[string]any {
	e.t.Helper()
	m := e.request("initialize", map[string]any{"capabilities": map[string]any{"textDocument": map[string]any{
		"publishDiagnostics": map[string]any{"relatedInformation": true, "versionSupport": true, "codeDescriptionSupport": true},
		"documentSymbol":     map[string]any{"hierarchicalDocumentSymbolSupport": true},
		"hover":              map[string]any{"contentFormat": []string{"markdown"}}}}})
	e.notify("initialized", map[string]any{})
	return m
}

// finding is a diagnostic in short.
type finding struct {
	line          int // from 1
	code, message string
}

// open opens a document and gives what is found in it.
func (e *editor) open(name, text string) []finding {
	e.t.Helper()
	e.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": e.uri(name), "languageId": "starlark", "version": 1, "text": text}})
	return e.published(name)
}

func (e *editor) published(name string) []finding {
	e.t.Helper()
	m := e.receive()
	params, _ := m["params"].(map[string]any)
	if m["method"] != "textDocument/publishDiagnostics" || params["uri"] != e.uri(name) {
		e.t.Fatalf("got %v, want what is found in %s", m, name)
	}
	var list []finding
	for _, d := range params["diagnostics"].([]any) {
		d := d.(map[string]any)
		at := d["range"].(map[string]any)["start"].(map[string]any)["line"].(float64)
		code, _ := d["code"].(string)
		list = append(list, finding{int(at) + 1, code, d["message"].(string)})
	}
	return list
}

// finish ends the session, and gives what Run returned.
func (e *editor) finish() error {
	e.t.Helper()
	e.request("shutdown", nil)
	e.notify("exit", nil)
	return <-e.end
}

// Every algorithm of the library opens without a word.
func TestEditorLibrary(t *testing.T) {
	e := startEditor(t, nil)
	e.initialize()
	for _, name := range algorithms.Names() {
		text, err := algorithms.FS.ReadFile(name + ".star")
		if err != nil {
			t.Fatal(err)
		}
		if list := e.open(name+".star", string(text)); len(list) > 0 {
			t.Errorf("%s: got %v", name, list)
		}
	}
	if err := e.finish(); err != nil {
		t.Error(err)
	}
}

// A program in its text form shows the finding that the checker's example of it is
// about, at the line that the checker names.
func TestEditorExamples(t *testing.T) {
	e := startEditor(t, nil)
	e.initialize()
	for _, x := range checker.Explanations() {
		if x.Example == "" {
			t.Errorf("%s has no example", x.Code)
			continue
		}
		if x.Severity.String() == "info" || x.Code == checker.CodeFit { // no diagnostics; needs a GPU's name
			if list := e.open(x.Code+".txt", x.Example); len(list) > 0 {
				t.Errorf("%s: got %v", x.Code, list)
			}
			continue
		}
		p, err := ir.ParseProgramHere(strings.NewReader(x.Example), x.Code+".txt")
		if err != nil {
			t.Fatal(err)
		}
		rep, err := checker.Check(context.Background(), p, checker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, m := range rep.Messages {
			if m.Code == x.Code {
				want = max(int(m.Pos.Line), 1)
				break
			}
		}
		found := false
		got := e.open(x.Code+".txt", x.Example)
		for _, f := range got {
			found = found || f.code == x.Code && f.line == want
		}
		if !found {
			t.Errorf("%s: got %v, want it on line %d", x.Code, got, want)
		}
	}
	if err := e.finish(); err != nil {
		t.Error(err)
	}
}

// Wrong scripts in testdata/lsp/wrong: a comment "# want CODE" stands on each line
// that is found wrong, "# want CODE: TEXT" if the text matters.
func TestEditorWrongScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/lsp/wrong/*.star")
	if err != nil || len(files) < 8 {
		t.Fatalf("got %d scripts, %v", len(files), err)
	}
	e := startEditor(t, nil)
	e.initialize()
	mark := regexp.MustCompile(`# want ([a-z-]+)(?:: (.*))?$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var want []finding
		for i, line := range strings.Split(string(text), "\n") {
			if m := mark.FindStringSubmatch(line); m != nil {
				want = append(want, finding{i + 1, m[1], m[2]})
			}
		}
		got := e.open(filepath.Base(file), string(text))
		for _, w := range want {
			found := false
			for _, g := range got {
				found = found || g.line == w.line && g.code == w.code && strings.Contains(g.message, w.message)
			}
			if !found {
				t.Errorf("%s: got %v, want %v", file, got, w)
			}
		}
		for _, g := range got {
			expected := false
			for _, w := range want {
				expected = expected || g.line == w.line && g.code == w.code
			}
			if !expected {
				t.Errorf("%s: got %v, which no line wants", file, g)
			}
		}
		if len(want) == 0 {
			t.Errorf("%s wants nothing", file)
		}
	}
	if err := e.finish(); err != nil {
		t.Error(err)
	}
}

// Scripts without an end, and very long ones, don't hold the server up.
func TestEditorLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for limits")
	}
	e := startEditor(t, func(o *lsp.Options) { o.TimeLimit = 10 * time.Second })
	e.initialize()
	million := `with MSCCLProgram("big", fully_connected(2), AllReduce(2, 64, True)):
    for i in range(1000000):
        chunk(0, "input", 0).copy(1, "s", i % 64)
`
	for _, x := range []struct{ name, text, code string }{
		{"loop.star", "x = 0\nwhile True:\n    x += 1\n", "not-judged"},
		{"recursion.star", "def f(n):\n    return f(n + 1) + 1\nf(0)\n", "script-error"},
		{"memory.star", "x = [0]\nwhile True:\n    x = x + x\n", "memory-limit"},
		{"million.star", million, "wrong-result"}, // or a limit
		{"fine.star", "x = 1\n", ""},
	} {
		before := time.Now()
		list := e.open(x.name, x.text)
		if d := time.Since(before); d > 30*time.Second {
			t.Errorf("%s: took %s", x.name, d)
		}
		// What was given up may take a while to end; then scripts are judged again.
		for i := 0; x.code == "" && len(list) > 0 && i < 10; i++ {
			list = e.open(x.name, x.text)
		}
		// Which limit is reached first is up to the machine.
		ok := slices.ContainsFunc(list, func(f finding) bool {
			limit := slices.Contains([]string{"not-judged", "step-limit", "memory-limit"}, f.code)
			return f.code == x.code || limit && x.code != "script-error"
		})
		if x.code == "" && len(list) > 0 || x.code != "" && !ok {
			t.Errorf("%s: got %.300v, want %q", x.name, list, x.code)
		}
		before = time.Now()
		e.request("textDocument/hover", map[string]any{"textDocument": map[string]any{"uri": e.uri(x.name)}, "position": map[string]any{"line": 0, "character": 0}})
		if d := time.Since(before); d > 5*time.Second {
			t.Errorf("%s: an answer took %s", x.name, d)
		}
	}
	if err := e.finish(); err != nil {
		t.Error(err)
	}
}

// The exit code says how a session ended.
func TestEditorExitCodes(t *testing.T) {
	frame := func(s string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(s), s) }
	initialize := frame(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	shutdown := frame(`{"jsonrpc":"2.0","id":2,"method":"shutdown"}`)
	exit := frame(`{"jsonrpc":"2.0","method":"exit"}`)
	for _, x := range []struct {
		name, in string
		code     int
		said     string
	}{
		{"as it should be", initialize + shutdown + exit, exitOK, ""},
		{"no shutdown", initialize + exit, exitWrong, "without a shutdown"},
		{"a closed pipe", initialize, exitWrong, "without a shutdown"},
		{"a person", "hello\n", exitCall, "an editor starts this command"},
		{"a huge message", "Content-Length: 99999999999\r\n\r\n", exitCall, "at most"},
	} {
		var out bytes.Buffer
		s := NewSession(&out, io.Discard)
		err := s.serveEditor(context.Background(), strings.NewReader(x.in))
		if code := exitCode(err); code != x.code {
			t.Errorf("%s: got exit code %d (%v), want %d", x.name, code, err, x.code)
		}
		if x.said != "" && !strings.Contains(err.Error(), x.said) {
			t.Errorf("%s: got %q, want %q", x.name, err, x.said)
		}
	}
	// Clients add --stdio unasked.
	root := newRoot(NewSession(io.Discard, io.Discard))
	if c, rest, err := root.Find([]string{"lsp", "--stdio"}); err != nil || c.ParseFlags(rest) != nil {
		t.Errorf("--stdio: got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	never, w := io.Pipe()
	defer w.Close()
	s := NewSession(io.Discard, io.Discard)
	if code := exitCode(s.serveEditor(ctx, never)); code != exitInterrupted {
		t.Errorf("interrupted: got exit code %d, want %d", code, exitInterrupted)
	}
}
