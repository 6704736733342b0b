package lsp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// framed is messages as they go over the wire.
func framed(messages ...string) []byte {
	var b bytes.Buffer
	for _, m := range messages {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(m), m)
	}
	return b.Bytes()
}

// Whatever a client sends, the session ends, and all that it got are messages.
func FuzzSession(f *testing.F) {
	const init = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`
	open := `{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///w/a.star","version":1,"text":"x = chunk("}}}`
	f.Add(framed(init, open, `{"jsonrpc":"2.0","id":2,"method":"textDocument/completion","params":{"textDocument":{"uri":"file:///w/a.star"},"position":{"line":0,"character":10}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"shutdown"}`, `{"jsonrpc":"2.0","method":"exit"}`))
	f.Add(framed(init, open, `{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///w/a.star","version":2},"contentChanges":[{"range":{"start":{"line":9,"character":-1},"end":{"line":-1,"character":3}},"text":"é"}]}}`,
		`{"jsonrpc":"2.0","method":"textDocument/didClose","params":{"textDocument":{"uri":"file:///w/a.star"}}}`))
	f.Add(framed(init, `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}`, `{"jsonrpc":"2.0","id":"a","method":"textDocument/hover","params":null}`, `[]`, `{`))
	f.Add([]byte("Content-Length: 5\r\n\r\n{}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		judge := func(context.Context, string, []byte, func(string) ([]byte, error)) diag.List { return nil }
		err := Run(context.Background(), Options{In: bytes.NewReader(in), Out: &out, Judge: judge, ReadFile: readLib, Library: library})
		var framing *FramingError
		if err != nil && !errors.Is(err, ErrNoShutdown) && !errors.As(err, &framing) {
			t.Fatalf("got %v", err)
		}
		for r := bufio.NewReader(&out); ; {
			body, err := readFrame(r)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil || !json.Valid(body) {
				t.Fatalf("the server sent %q: %v", body, err)
			}
			if bytes.Contains(body, []byte("internal error")) {
				t.Fatalf("the server sent %s", body)
			}
		}
	})
}
