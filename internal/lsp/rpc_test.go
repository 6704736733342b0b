package lsp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestReadFrame(t *testing.T) {
	for _, tt := range []struct{ name, in, body, err string }{
		{"plain", "Content-Length: 2\r\n\r\n{}rest", "{}", ""},
		{"another header, other case", "content-type: x; charset=utf-8\r\ncontent-length:2\r\n\r\n{}", "{}", ""},
		{"nothing", "", "", "EOF"},
		{"empty body", "Content-Length: 0\r\n\r\n", "", ""},
		{"no length", "Content-Type: x\r\n\r\n{}", "", "no Content-Length"},
		{"two lengths", "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "", "twice"},
		{"negative", "Content-Length: -1\r\n\r\n{}", "", "want a number"},
		{"no number", "Content-Length: two\r\n\r\n{}", "", "want a number"},
		{"huge", "Content-Length: 67108865\r\n\r\n{}", "", "at most 67108864"},
		{"beyond numbers", "Content-Length: 99999999999999999999999\r\n\r\n{}", "", "at most 67108864"},
		{"no colon", "hello\r\n\r\n", "", "want NAME: VALUE"},
		{"a person at a terminal", "hello\n", "", "CR LF"},
		{"an empty line", "\r\n", "", "want a header"},
		{"cut header", "Content-Le", "", "ends within a header"},
		{"cut after a header", "Content-Length: 2\r\n", "", "EOF"},
		{"cut body", "Content-Length: 5\r\n\r\n{}", "", "got 2 bytes, want 5"},
		{"long header", "X: " + strings.Repeat("y", maxHeader) + "\r\n", "", "more than 4096 bytes"},
		{"endless header", strings.Repeat("y", 1<<20), "", "more than 4096 bytes"},
		{"many headers", strings.Repeat("X: y\r\n", maxHeaders+1), "", "more than 32 headers"},
	} {
		body, err := readFrame(bufio.NewReader(strings.NewReader(tt.in)))
		if got := string(body); got != tt.body {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.body)
		}
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.err)
		}
	}
}

// What was announced and doesn't come takes no memory.
func TestReadFrameTrustsNoLength(t *testing.T) {
	in := bufio.NewReader(strings.NewReader("Content-Length: 67108864\r\n\r\nxy"))
	allocated := testing.AllocsPerRun(1, func() { _, _ = readFrame(in) })
	if allocated > 100 {
		t.Errorf("got %v allocations", allocated)
	}
	var framing *FramingError
	_, err := readFrame(bufio.NewReader(strings.NewReader("Content-Length: 67108864\r\n\r\nxy")))
	if !errors.As(err, &framing) {
		t.Errorf("got %v, want a FramingError", err)
	}
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		in   string
		code int
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"x"}`, 0},
		{`{"jsonrpc":"2.0","id":"a","method":"x","params":[]}`, 0},
		{`{"jsonrpc":"2.0","id":1,"result":null}`, 0},
		{`{"jsonrpc":"2.0","method":"x"}`, 0},
		{`{"jsonrpc":`, codeParse},
		{``, codeParse},
		{`[{"jsonrpc":"2.0","id":1,"method":"x"}]`, codeInvalidRequest},
		{`7`, codeInvalidRequest},
		{`{}`, codeInvalidRequest},
		{`{"id":{},"method":"x"}`, codeInvalidRequest},
		{`{"id":[1],"method":"x"}`, codeInvalidRequest},
		{`{"id":true,"method":"x"}`, codeInvalidRequest},
		{`{"method":7}`, codeInvalidRequest},
		{strings.Repeat("[", 100000), codeParse},
	} {
		_, err := decode([]byte(tt.in))
		if got := code0(err); got != tt.code {
			t.Errorf("%.60s: got code %d, want %d", tt.in, got, tt.code)
		}
	}
}

func code0(err *rpcError) int {
	if err == nil {
		return 0
	}
	return err.Code
}

// Any bytes give messages, or an error after which nothing is read.
func FuzzReadFrame(f *testing.F) {
	for _, s := range []string{"Content-Length: 2\r\n\r\n{}", "Content-Length: 38\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}",
		"Content-Length: 99999999999\r\n\r\n", "\r\n", "Content-Type: a\r\nContent-Length:1\r\n\r\n7Content-Length: 1\r\n\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bufio.NewReader(bytes.NewReader(in))
		for total := 0; ; {
			body, err := readFrame(r)
			if err != nil {
				var framing *FramingError
				if !errors.Is(err, io.EOF) && !errors.As(err, &framing) {
					t.Fatalf("got %v, which is neither the end nor a framing error", err)
				}
				return
			}
			if total += len(body); total > len(in) {
				t.Fatalf("read %d bytes of %d", total, len(in))
			}
			if m, bad := decode(body); (m == nil) == (bad == nil) {
				t.Fatalf("decode gives %v and %v", m, bad)
			}
		}
	})
}
