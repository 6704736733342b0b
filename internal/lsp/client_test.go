package lsp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/starlib"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// client is the other end of a session.
type client struct {
	t    *testing.T
	in   *io.PipeWriter
	done chan error
	log  *lockedBuffer
	s    *server

	mu        sync.Mutex
	next      int
	answers   map[string]chan *message
	published map[string]chan publishParams
	strays    chan *message // errors without an id
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// traceOnly judges as far as running the script does.
func traceOnly(ctx context.Context, file string, text []byte, read func(string) ([]byte, error)) diag.List {
	_, err := starlib.Load(ctx, starlib.Options{File: file, Source: text, ReadFile: read, MaxSteps: 1_000_000})
	return diag.Messages(err)
}

// start begins a session; change changes its options or the server.
func start(t *testing.T, o Options, change func(*server)) *client {
	t.Helper()
	fromClient, in := io.Pipe()
	out, toClient := io.Pipe()
	c := &client{t: t, in: in, done: make(chan error, 1), log: &lockedBuffer{}, answers: map[string]chan *message{},
		published: map[string]chan publishParams{}, strays: make(chan *message, 100)}
	o.In, o.Out, o.Log = fromClient, toClient, c.log
	if o.Judge == nil {
		o.Judge = traceOnly
	}
	c.s = newServer(o)
	if change != nil {
		change(c.s)
	}
	go func() {
		err := c.s.run(context.Background())
		_ = toClient.Close()
		c.done <- err
	}()
	go c.receive(out)
	t.Cleanup(func() {
		_ = in.Close()
		_ = out.Close()
	})
	return c
}

func (c *client) receive(out io.Reader) {
	r := bufio.NewReader(out)
	for {
		body, err := readFrame(r)
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			c.t.Errorf("the server sent %q: %v", body, err)
			return
		}
		switch {
		case m.Method == "textDocument/publishDiagnostics":
			var p publishParams
			if err := json.Unmarshal(m.Params, &p); err != nil {
				c.t.Errorf("the server published %s: %v", m.Params, err)
			}
			c.channel(p.URI) <- p
		case m.Method != "":
			c.t.Errorf("the server sent %q, which no test expects", body)
		case len(m.ID) == 0 || string(m.ID) == "null":
			c.strays <- &m
		default:
			c.answer(string(m.ID)) <- &m
		}
	}
}

func (c *client) channel(uri string) chan publishParams {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.published[uri] == nil {
		c.published[uri] = make(chan publishParams, 1000)
	}
	return c.published[uri]
}

func (c *client) answer(id string) chan *message {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers[id] == nil {
		c.answers[id] = make(chan *message, 10)
	}
	return c.answers[id]
}

// raw sends bytes.
func (c *client) raw(s string) {
	if _, err := io.WriteString(c.in, s); err != nil {
		c.t.Logf("sending: %v", err)
	}
}

func (c *client) send(v any) {
	body, err := json.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	c.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
}

func (c *client) notify(method string, params any) {
	c.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// begin sends a request and returns its id.
func (c *client) begin(method string, params any) string {
	c.mu.Lock()
	c.next++
	id := c.next
	c.mu.Unlock()
	c.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return fmt.Sprint(id)
}

// wait is the answer to a request.
func (c *client) wait(id string) *message {
	c.t.Helper()
	select {
	case m := <-c.answer(id):
		return m
	case <-time.After(patience):
		c.t.Fatalf("no answer to request %s; log: %s", id, c.log)
		return nil
	}
}

// call sends a request and reads its result into a value.
func (c *client) call(method string, params, result any) *rpcError {
	c.t.Helper()
	m := c.wait(c.begin(method, params))
	if m.Error != nil {
		return m.Error
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			c.t.Fatalf("%s answers %s: %v", method, m.Result, err)
		}
	}
	return nil
}

// initialize begins a session with a client that knows everything.
func (c *client) initialize() {
	c.t.Helper()
	var params initializeParams
	x := &params.Capabilities.TextDocument
	x.PublishDiagnostics.RelatedInformation = true
	x.PublishDiagnostics.VersionSupport = true
	x.PublishDiagnostics.CodeDescriptionSupport = true
	x.DocumentSymbol.Hierarchical = true
	x.Hover.ContentFormat = []string{"markdown"}
	if err := c.call("initialize", params, nil); err != nil {
		c.t.Fatal(err)
	}
	c.notify("initialized", struct{}{})
}

func uri(name string) string { return "file:///w/" + name }

func (c *client) open(name, text string) {
	c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{
		"uri": uri(name), "languageId": "starlark", "version": 1, "text": text}})
}

func (c *client) change(name string, version int, text string) {
	c.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": uri(name), "version": version},
		"contentChanges": []any{map[string]any{"text": text}}})
}

// diagnostics waits for what is published next about a document.
func (c *client) diagnostics(name string) publishParams {
	c.t.Helper()
	select {
	case p := <-c.channel(uri(name)):
		return p
	case <-time.After(patience):
		c.t.Fatalf("nothing is published about %s; log: %s", name, c.log)
		return publishParams{}
	}
}

func at(name string, line, character int) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": uri(name)}, "position": map[string]any{"line": line, "character": character}}
}

// end finishes the session as a client should, and gives what run returns.
func (c *client) end() error {
	c.t.Helper()
	if err := c.call("shutdown", nil, nil); err != nil {
		c.t.Error(err)
	}
	c.notify("exit", nil)
	return c.result()
}

func (c *client) result() error {
	c.t.Helper()
	select {
	case err := <-c.done:
		return err
	case <-time.After(patience):
		c.t.Fatal("the server doesn't end")
		return nil
	}
}
