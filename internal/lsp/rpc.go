package lsp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// Limits of what a client may send, in bytes. A message holds a whole document, and
// documents above maxDocument are not looked at.
const (
	maxMessage = 64 << 20
	maxHeader  = 4 << 10 // one line of a header
	maxHeaders = 32      // lines
)

// Error codes of JSON-RPC and of the protocol.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeNotInitialized = -32002
	codeCanceled       = -32800
)

// message is a request, a notification or a response.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// rpcError is an error as it goes over the wire.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return e.Message }

func rpcErrorf(code int, format string, args ...any) *rpcError {
	return &rpcError{code, fmt.Sprintf(format, args...)}
}

// FramingError says that the stream is no longer known to begin with a message:
// nothing after it can be understood.
type FramingError struct{ Reason string }

func (e *FramingError) Error() string { return "reading a message: " + e.Reason }

func framing(format string, args ...any) error { return &FramingError{fmt.Sprintf(format, args...)} }

// readFrame reads the next message's content. The error is io.EOF where the stream
// ends between messages.
func readFrame(r *bufio.Reader) ([]byte, error) {
	length := -1
	for n := 0; ; n++ {
		line, err := headerLine(r)
		if errors.Is(err, io.EOF) && n == 0 && line == "" {
			return nil, io.EOF
		}
		if err != nil {
			return nil, err
		}
		if line == "" {
			if n == 0 {
				return nil, framing("got an empty line, want a header")
			}
			break
		}
		if n >= maxHeaders {
			return nil, framing("got more than %d headers", maxHeaders)
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, framing("got the header %.40q, want NAME: VALUE", line)
		}
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue // Content-Type, which has one meaning
		}
		if length >= 0 {
			return nil, framing("got Content-Length twice")
		}
		if length, err = contentLength(strings.TrimSpace(value)); err != nil {
			return nil, err
		}
	}
	if length < 0 {
		return nil, framing("got no Content-Length")
	}
	// What is announced may never come, so the buffer grows with what does.
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(length)); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, framing("got %d bytes, want %d", body.Len(), length)
		}
		return nil, fmt.Errorf("reading a message: %w", err)
	}
	return body.Bytes(), nil
}

func contentLength(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n > maxMessage:
		return 0, framing("got Content-Length %.40s, want at most %d", text, maxMessage)
	case err != nil:
		return 0, framing("got Content-Length %.40q, want a number", text)
	}
	return int(n), nil
}

// headerLine reads a line that ends in CR LF, without it.
func headerLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxHeader {
			return "", framing("got a header of more than %d bytes", maxHeader)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			if len(line) > 0 {
				return "", framing("the stream ends within a header")
			}
			return "", io.EOF
		case err != nil:
			return "", fmt.Errorf("reading a message: %w", err)
		}
		text, ok := strings.CutSuffix(string(line), "\r\n")
		if !ok {
			return "", framing("got a header that doesn't end in CR LF")
		}
		return text, nil
	}
}

// decode understands a message's content.
func decode(body []byte) (*message, *rpcError) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		if trimmed := bytes.TrimSpace(body); json.Valid(body) && len(trimmed) > 0 {
			return nil, rpcErrorf(codeInvalidRequest, "got %.40s, want a message with a method", trimmed)
		}
		return nil, rpcErrorf(codeParse, "the message is no JSON: %s", err)
	}
	if m.isRequest() && !validID(m.ID) {
		return nil, rpcErrorf(codeInvalidRequest, "got an id that is neither a string nor a number")
	}
	if m.Method == "" && m.Result == nil && m.Error == nil {
		return nil, rpcErrorf(codeInvalidRequest, "got a message without a method")
	}
	return &m, nil
}

// isRequest reports whether m wants an answer.
func (m *message) isRequest() bool { return len(m.ID) > 0 && string(m.ID) != "null" }

func validID(id json.RawMessage) bool {
	return len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
}

// conn writes messages, one at a time.
type conn struct {
	mu sync.Mutex
	w  io.Writer
	// broken is the first error of writing; nothing is written after it.
	broken error
}

func (c *conn) send(m *message) error {
	m.JSONRPC = "2.0"
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	text := bytes.TrimSuffix(body.Bytes(), []byte("\n"))
	frame := append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(text)), text...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		_, c.broken = c.w.Write(frame)
	}
	return c.broken
}

// notify sends a notification.
func (c *conn) notify(method string, params any) error {
	raw, err := encode(params)
	if err != nil {
		return err
	}
	return c.send(&message{Method: method, Params: raw})
}

// reply answers a request.
func (c *conn) reply(id json.RawMessage, result any, failed *rpcError) error {
	m := &message{ID: id, Error: failed}
	if len(id) == 0 {
		m.ID = json.RawMessage("null")
	}
	if failed == nil {
		raw, err := encode(result)
		if err != nil {
			return err
		}
		m.Result = raw
	}
	return c.send(m)
}

func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding a message: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
