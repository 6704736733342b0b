// Package jupytertest is a client of kernels for tests, over real sockets.
package jupytertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/mscclsh/mscclsh/internal/jupyter"
)

// patience is how long an answer may take on a machine that does other things too.
const patience = 30 * time.Second

// Client talks to one kernel.
type Client struct {
	t       *testing.T
	conn    *jupyter.Connection
	codec   jupyter.Codec
	sockets map[string]zmq4.Socket
	got     map[string]chan *jupyter.Message
	count   int
}

// FreeConnection names ports of this machine that nobody uses.
func FreeConnection(t *testing.T) *jupyter.Connection {
	t.Helper()
	var ports [5]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // all at once, so that they differ
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return &jupyter.Connection{Transport: "tcp", IP: "127.0.0.1", Shell: ports[0], Control: ports[1], Stdin: ports[2], IOPub: ports[3],
		Heartbeat: ports[4], Key: "0b5f-a key", Scheme: "hmac-sha256"}
}

// Dial connects to a kernel, and waits until it hears its broadcasts.
func Dial(t *testing.T, c *jupyter.Connection) *Client {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	x := &Client{t: t, conn: c, codec: jupyter.Codec{Key: []byte(c.Key)}, sockets: map[string]zmq4.Socket{}, got: map[string]chan *jupyter.Message{}}
	for name, port := range map[string]int{"shell": c.Shell, "control": c.Control, "stdin": c.Stdin, "iopub": c.IOPub, "hb": c.Heartbeat} {
		make := zmq4.NewDealer
		switch name {
		case "iopub":
			make = zmq4.NewSub
		case "hb":
			make = zmq4.NewReq
		}
		s := make(ctx, zmq4.WithLogger(log.New(io.Discard, "", 0)), zmq4.WithDialerMaxRetries(60))
		if err := s.Dial(c.Endpoint(port)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		x.sockets[name] = s
	}
	if err := x.sockets["iopub"].SetOption(zmq4.OptionSubscribe, ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shell", "control", "iopub"} {
		x.got[name] = make(chan *jupyter.Message, 1000)
		go x.receive(ctx, name)
	}
	x.join()
	return x
}

func (x *Client) receive(ctx context.Context, name string) {
	for ctx.Err() == nil {
		raw, err := x.sockets[name].Recv()
		if err != nil {
			return // the kernel or the test is over
		}
		m, err := x.codec.Decode(raw.Frames)
		if err != nil {
			x.t.Errorf("%s: %v", name, err)
			return
		}
		x.got[name] <- m
	}
}

// join asks until a broadcast arrives: those before the subscription are lost.
func (x *Client) join() {
	x.t.Helper()
	for range 100 {
		id := x.Send("shell", "kernel_info_request", map[string]any{})
		if r := x.Receive("shell"); r.ParentID() != id {
			x.t.Fatalf("got an answer to %s, want one to %s", r.ParentID(), id)
		}
		for {
			select {
			case m := <-x.got["iopub"]:
				if m.ParentID() == id && string(m.Content) == `{"execution_state":"idle"}` {
					return
				}
				continue
			case <-time.After(200 * time.Millisecond):
			}
			break
		}
	}
	x.t.Fatal("no broadcast arrives")
}

// Send sends a request and gives its name.
func (x *Client) Send(socket, kind string, content any) string {
	x.t.Helper()
	body, err := json.Marshal(content)
	if err != nil {
		x.t.Fatal(err)
	}
	x.count++
	m := &jupyter.Message{Header: jupyter.Header{ID: fmt.Sprintf("request-%d", x.count), Session: "client", Username: "test",
		Date: "2026-01-01T00:00:00.000000Z", Type: kind, Version: "5.3"}, Content: body}
	frames, err := x.codec.Encode(m)
	if err != nil {
		x.t.Fatal(err)
	}
	x.SendFrames(socket, frames)
	return m.Header.ID
}

// SendFrames sends frames as they are.
func (x *Client) SendFrames(socket string, frames [][]byte) {
	x.t.Helper()
	if err := x.sockets[socket].SendMulti(zmq4.NewMsgFrom(frames...)); err != nil {
		x.t.Fatalf("sending to %s: %v", socket, err)
	}
}

// Receive waits for the next message of a socket.
func (x *Client) Receive(socket string) *jupyter.Message {
	x.t.Helper()
	select {
	case m := <-x.got[socket]:
		return m
	case <-time.After(patience):
		x.t.Fatalf("%s: nothing arrives", socket)
		return nil
	}
}

// Quiet reports whether nothing arrives for a while.
func (x *Client) Quiet(socket string, d time.Duration) bool {
	select {
	case m := <-x.got[socket]:
		x.t.Logf("%s: got a %s", socket, m.Header.Type)
		return false
	case <-time.After(d):
		return true
	}
}

// Until gives the broadcasts about a request up to the idle state, which isn't among
// them, nor is busy.
func (x *Client) Until(id string) []*jupyter.Message {
	x.t.Helper()
	var list []*jupyter.Message
	for busy := false; ; {
		m := x.Receive("iopub")
		switch {
		case m.ParentID() != id:
		case m.Header.Type != "status" && !busy:
			x.t.Fatalf("got a %s before the state busy", m.Header.Type)
		case m.Header.Type != "status":
			list = append(list, m)
		case string(m.Content) == `{"execution_state":"idle"}`:
			return list
		default:
			busy = true
		}
	}
}

// Ask sends a request over the shell socket, and gives the answer's content and the
// broadcasts.
func (x *Client) Ask(kind string, content any) (map[string]any, []*jupyter.Message) {
	x.t.Helper()
	id := x.Send("shell", kind, content)
	said := x.Until(id)
	r := x.Receive("shell")
	if r.ParentID() != id {
		x.t.Fatalf("got an answer to %s, want one to %s", r.ParentID(), id)
	}
	return Content(x.t, r), said
}

// Execute runs a cell.
func (x *Client) Execute(code string) (map[string]any, []*jupyter.Message) {
	x.t.Helper()
	return x.Ask("execute_request", map[string]any{"code": code})
}

// Beat sends a heartbeat and gives what comes back.
func (x *Client) Beat(text string) string {
	x.t.Helper()
	if err := x.sockets["hb"].Send(zmq4.NewMsgString(text)); err != nil {
		x.t.Fatal(err)
	}
	m, err := x.sockets["hb"].Recv()
	if err != nil {
		x.t.Fatal(err)
	}
	return string(m.Bytes())
}

// Content is the content of a message.
func Content(t *testing.T, m *jupyter.Message) map[string]any {
	t.Helper()
	var c map[string]any
	if err := json.Unmarshal(m.Content, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Find gives the contents of those messages that are of a kind.
func Find(t *testing.T, list []*jupyter.Message, kind string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, m := range list {
		if m.Header.Type == kind {
			out = append(out, Content(t, m))
		}
	}
	return out
}

// Text is the text of a stream, all its messages together.
func Text(t *testing.T, list []*jupyter.Message, name string) string {
	t.Helper()
	text := ""
	for _, c := range Find(t, list, "stream") {
		if c["name"] == name {
			text += c["text"].(string)
		}
	}
	return text
}
