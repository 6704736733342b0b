package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestLifecycle(t *testing.T) {
	c := start(t, Options{}, nil)
	if err := c.call("textDocument/hover", at("a.star", 0, 0), nil); code0(err) != codeNotInitialized {
		t.Errorf("before initialize: got %v, want code %d", err, codeNotInitialized)
	}
	c.notify("textDocument/didOpen", 7) // is passed over
	c.initialize()
	if err := c.call("initialize", initializeParams{}, nil); code0(err) != codeInvalidRequest {
		t.Errorf("initialize twice: got %v", err)
	}
	for _, tt := range []struct {
		method string
		params any
		code   int
	}{
		{"textDocument/rename", nil, codeNoMethod},
		{"$/unknown", nil, codeNoMethod},
		{"textDocument/hover", nil, codeInvalidParams},
		{"textDocument/hover", []int{1}, codeInvalidParams},
		{"textDocument/hover", map[string]any{"position": "x"}, codeInvalidParams},
		{"textDocument/hover", at("closed.star", 0, 0), codeInvalidParams},
		{"completionItem/resolve", 3, codeInvalidParams},
	} {
		if err := c.call(tt.method, tt.params, nil); code0(err) != tt.code {
			t.Errorf("%s %v: got %v, want code %d", tt.method, tt.params, err, tt.code)
		}
	}
	// What can't be understood of a notification is passed over, and logged.
	c.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": uri("closed.star")}})
	c.notify("textDocument/didOpen", "x")
	c.notify("workspace/unknown", nil)
	if err := c.call("shutdown", nil, nil); err != nil {
		t.Error(err)
	}
	if err := c.call("textDocument/hover", at("a.star", 0, 0), nil); code0(err) != codeInvalidRequest {
		t.Errorf("after shutdown: got %v, want code %d", err, codeInvalidRequest)
	}
	c.notify("exit", nil)
	if err := c.result(); err != nil {
		t.Errorf("the end: got %v", err)
	}
	if !strings.Contains(c.log.String(), "closed.star: the document isn't open") {
		t.Errorf("the log says %q", c.log)
	}
}

func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(*client)
		want string // of the error, "" for none
	}{
		{"exit at once", func(c *client) { c.notify("exit", nil) }, "without a shutdown"},
		{"the stream ends", func(c *client) { _ = c.in.Close() }, "without a shutdown"},
		{"the stream ends after shutdown", func(c *client) {
			c.initialize()
			_ = c.call("shutdown", nil, nil)
			_ = c.in.Close()
		}, ""},
		{"no header", func(c *client) { c.raw("hello\r\n\r\n") }, "want NAME: VALUE"},
		{"a huge message", func(c *client) { c.raw("Content-Length: 9999999999\r\n\r\n") }, "at most"},
		{"half a message", func(c *client) { c.raw("Content-Length: 9\r\n\r\n{}"); _ = c.in.Close() }, "got 2 bytes, want 9"},
	} {
		c := start(t, Options{}, nil)
		tt.do(c)
		err := c.result()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
		if tt.name == "no header" {
			if m := <-c.strays; m.Error.Code != codeParse {
				t.Errorf("%s: the client was told %v", tt.name, m.Error)
			}
		}
	}
}

// A message that is no JSON is answered, and the next one counts again.
func TestBadMessages(t *testing.T) {
	c := start(t, Options{}, nil)
	for _, tt := range []struct {
		body string
		code int
	}{{"{", codeParse}, {"[]", codeInvalidRequest}, {"{}", codeInvalidRequest}, {`{"id":{"a":1},"method":"x"}`, codeInvalidRequest}} {
		c.raw(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(tt.body), tt.body))
		if m := <-c.strays; m.Error == nil || m.Error.Code != tt.code {
			t.Errorf("%s: got %v, want code %d", tt.body, m.Error, tt.code)
		}
	}
	c.initialize()
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// slow adds a request that is answered when released, and one that panics.
func slow(release <-chan struct{}) func(*server) {
	return func(s *server) {
		s.make["test/slow"] = func(json.RawMessage) (handler, error) {
			return func(ctx context.Context) (any, error) {
				select {
				case <-release:
					return "done", nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}, nil
		}
		s.make["test/panic"] = func(json.RawMessage) (handler, error) {
			return func(context.Context) (any, error) { return []int{}[len(s.docs)+5], nil }, nil
		}
		s.make["test/early"] = func(json.RawMessage) (handler, error) { panic("early") }
	}
}

func TestConcurrentRequests(t *testing.T) {
	release := make(chan struct{})
	c := start(t, Options{}, slow(release))
	c.initialize()
	c.open("a.star", "x = 1\n")
	var ids []string
	for range maxRequests - 1 {
		ids = append(ids, c.begin("test/slow", nil))
	}
	var h hoverResult // goes past those that wait
	if err := c.call("textDocument/hover", at("a.star", 0, 0), &h); err != nil || !strings.Contains(h.Contents.Value, "x = 1") {
		t.Errorf("got %v %v", h, err)
	}
	close(release)
	for _, id := range ids {
		if m := c.wait(id); string(m.Result) != `"done"` {
			t.Errorf("request %s: got %s %v", id, m.Result, m.Error)
		}
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

func TestCancelRequest(t *testing.T) {
	c := start(t, Options{}, slow(nil))
	c.initialize()
	var ids []string
	for range 2 * maxRequests { // some of them wait for their turn
		ids = append(ids, c.begin("test/slow", nil))
	}
	c.notify("$/cancelRequest", map[string]any{"id": "no such"})
	c.notify("$/cancelRequest", nil)
	for i := range ids {
		id := ids[len(ids)-1-i]
		c.notify("$/cancelRequest", map[string]any{"id": json.RawMessage(id)})
		if m := c.wait(id); m.Error == nil || m.Error.Code != codeCanceled {
			t.Errorf("request %s: got %s %v", id, m.Result, m.Error)
		}
	}
	first := c.begin("test/slow", nil)
	c.send(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(first), "method": "test/slow"})
	if m := c.wait(first); m.Error == nil || m.Error.Code != codeInvalidRequest {
		t.Errorf("an id that is taken: got %s %v", m.Result, m.Error)
	}
	c.notify("$/cancelRequest", map[string]any{"id": json.RawMessage(first)})
	c.wait(first)
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// A panic is an error of one request, with its stack in the log.
func TestPanics(t *testing.T) {
	c := start(t, Options{}, slow(nil))
	c.initialize()
	for _, method := range []string{"test/panic", "test/early"} {
		err := c.call(method, nil, nil)
		if code0(err) != codeInternal || !strings.Contains(err.Message, "please report it") {
			t.Errorf("%s: got %v", method, err)
		}
		if !strings.Contains(c.log.String(), "internal error in "+method) || !strings.Contains(c.log.String(), "server_test.go") {
			t.Errorf("the log says %q", c.log)
		}
	}
	if err := c.end(); err != nil {
		t.Error(err)
	}
}

// A client that went away ends the session.
func TestBrokenPipe(t *testing.T) {
	c := start(t, Options{}, func(s *server) { s.conn.w = brokenWriter{} })
	c.send(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initializeParams{}})
	if err := c.result(); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
}

var errBroken = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

// The client decides whether columns are bytes.
func TestEncodings(t *testing.T) {
	for _, tt := range []struct {
		offered []string
		want    string
		column  int // of nope behind a grin
	}{{nil, "utf-16", 11}, {[]string{"utf-16"}, "utf-16", 11}, {[]string{"utf-32", "utf-8", "utf-16"}, "utf-8", 13}, {[]string{"utf-32"}, "utf-16", 11}} {
		c := start(t, Options{}, nil)
		var params initializeParams
		params.Capabilities.General.PositionEncodings = tt.offered
		var got initializeResult
		if err := c.call("initialize", params, &got); err != nil || got.Capabilities.PositionEncoding != tt.want {
			t.Errorf("%v: got %q %v, want %q", tt.offered, got.Capabilities.PositionEncoding, err, tt.want)
		}
		c.open("a.star", "a = \"\U0001F600\" + nope\n")
		p := c.diagnostics("a.star")
		if len(p.Diagnostics) != 1 || p.Diagnostics[0].Range.Start.Character != tt.column || p.Diagnostics[0].Range.End.Character != tt.column+4 {
			t.Errorf("%v: got %+v, want columns %d to %d", tt.offered, p.Diagnostics, tt.column, tt.column+4)
		}
		if err := c.end(); err != nil {
			t.Error(err)
		}
	}
}

// A judgment that is running doesn't hold up the end.
func TestEndWhileJudging(t *testing.T) {
	began := make(chan struct{})
	c := start(t, Options{Judge: untilCanceled(began)}, nil)
	c.initialize()
	c.open("a.star", "x = 1\n")
	<-began
	before := time.Now()
	if err := c.end(); err != nil {
		t.Error(err)
	}
	if d := time.Since(before); d > 5*time.Second {
		t.Errorf("the end took %s", d)
	}
}
