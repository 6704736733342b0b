package jupyter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/internal/jupyter"
	"github.com/mscclsh/mscclsh/internal/jupyter/jupytertest"
)

// fake is a language whose cells are one word and its argument.
type fake struct{}

func (fake) Execute(ctx context.Context, code string, out jupyter.Output) jupyter.Result {
	word, arg, _ := strings.Cut(code, " ")
	switch word {
	case "say":
		_, _ = io.WriteString(out.Stdout(), arg)
	case "warn":
		_, _ = io.WriteString(out.Stderr(), arg)
	case "value":
		return jupyter.Result{Value: arg}
	case "draw":
		out.Display(map[string]string{"text/plain": "o", "image/svg+xml": "<svg/>"})
	case "fail":
		_, _ = io.WriteString(out.Stdout(), "before")
		return jupyter.Result{Err: &jupyter.CellError{Name: "Bad", Value: arg, Trace: []string{"f:1:1: " + arg, "^"}}}
	case "wait":
		_, _ = io.WriteString(out.Stdout(), "waiting")
		<-ctx.Done()
		return jupyter.Result{Err: &jupyter.CellError{Name: "Interrupted"}}
	case "stay":
		_, _ = io.WriteString(out.Stdout(), "staying")
		select {}
	case "sleep":
		time.Sleep(300 * time.Millisecond)
	case "panic":
		panic(arg)
	case "quit":
		return jupyter.Result{Quit: true}
	}
	return jupyter.Result{}
}

func (fake) Evaluate(expr string) (string, error) {
	if expr == "bad" {
		return "", errors.New("no such thing")
	}
	return "value of " + expr, nil
}

func (fake) Complete(code string, cursor int) ([]string, int) {
	if code == "panic" {
		panic("complete")
	}
	return []string{code[:cursor] + "1", code[:cursor] + "2"}, cursor - 1
}

func (fake) Inspect(code string, _ int) string {
	return strings.TrimPrefix("about "+code, "about nothing")
}

func (fake) IsComplete(code string) (bool, string) { return !strings.HasSuffix(code, ":"), "  " }

// log is what a kernel says of itself, while it does.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

type kernel struct {
	*jupytertest.Client
	log  log
	wake chan struct{}
	stop context.CancelFunc
	done chan error
}

// start runs a kernel until the test is over, and connects to it.
func start(t *testing.T) *kernel {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k := &kernel{wake: make(chan struct{}), stop: cancel, done: make(chan error, 1)}
	conn := jupytertest.FreeConnection(t)
	ready := make(chan struct{})
	go func() {
		k.done <- jupyter.Serve(ctx, conn, jupyter.Options{Engine: fake{}, Log: &k.log, Wake: k.wake, Ready: func() { close(ready) },
			Info: jupyter.Info{Implementation: "fake", Version: "7", Banner: "hello", Language: jupyter.Language{Name: "words", Extension: ".w"}}})
	}()
	select {
	case <-ready:
	case err := <-k.done:
		t.Fatal(err)
	}
	k.Client = jupytertest.Dial(t, conn)
	t.Cleanup(func() {
		cancel()
		if t.Failed() {
			t.Logf("the kernel said: %s", k.log.String())
		}
	})
	return k
}

// ended waits for the kernel's end.
func (k *kernel) ended(t *testing.T, within time.Duration) {
	t.Helper()
	select {
	case err := <-k.done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(within):
		t.Fatalf("the kernel doesn't end")
	}
}

// show is what a request gave, on one line.
func show(t *testing.T, reply map[string]any, said []*jupyter.Message) string {
	t.Helper()
	var parts []string
	for _, m := range said {
		c := jupytertest.Content(t, m)
		switch m.Header.Type {
		case "stream":
			parts = append(parts, fmt.Sprintf("%s %q", c["name"], c["text"]))
		case "execute_result":
			parts = append(parts, fmt.Sprintf("result %v %v", c["execution_count"], c["data"].(map[string]any)["text/plain"]))
		case "error":
			parts = append(parts, fmt.Sprintf("error %s %s %v", c["ename"], c["evalue"], c["traceback"]))
		case "execute_input":
			parts = append(parts, fmt.Sprintf("[%v]", c["execution_count"]))
		default:
			parts = append(parts, m.Header.Type)
		}
	}
	count := ""
	if n, there := reply["execution_count"]; there {
		count = fmt.Sprintf(" %v", n)
	}
	return strings.Join(append(parts, fmt.Sprint(reply["status"])+count), "; ")
}

func TestExecute(t *testing.T) {
	k := start(t)
	for _, c := range []struct {
		what    string
		request map[string]any
		want    string
	}{
		{"a stream", map[string]any{"code": "say hi"}, `[1]; stdout "hi"; ok 1`},
		{"the other", map[string]any{"code": "warn oh"}, `[2]; stderr "oh"; ok 2`},
		{"a picture", map[string]any{"code": "draw"}, `[3]; display_data; ok 3`},
		{"an error", map[string]any{"code": "fail x"}, `[4]; stdout "before"; error Bad x [f:1:1: x ^]; error 4`},
		{"not stored", map[string]any{"code": "say a", "store_history": false}, `[4]; stdout "a"; ok 4`},
		{"silent", map[string]any{"code": "say b", "silent": true}, `ok 4`},
		{"a silent picture", map[string]any{"code": "draw", "silent": true, "store_history": true}, `ok 4`},
		{"a silent error", map[string]any{"code": "fail y", "silent": true}, `error 4`},
		{"a panic", map[string]any{"code": "panic oh"}, `[5]; error InternalError the kernel failed [internal error: oh: please report it, with what the kernel has logged]; error 5`},
		{"nothing", map[string]any{"code": ""}, `[6]; ok 6`},
		{"a value", map[string]any{"code": "value 3"}, `[7]; result 7 3; ok 7`},
		{"a silent value", map[string]any{"code": "value 3", "silent": true}, `ok 7`},
	} {
		reply, said := k.Ask("execute_request", c.request)
		got := show(t, reply, said)
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
	}
	_, said := k.Execute("draw")
	data := jupytertest.Find(t, said, "display_data")[0]["data"].(map[string]any)
	if data["image/svg+xml"] != "<svg/>" || data["text/plain"] != "o" {
		t.Errorf("display_data: got %v", data)
	}
	reply, _ := k.Ask("execute_request", map[string]any{"code": "", "user_expressions": map[string]any{"a": "x", "b": "bad"}})
	if got, want := fmt.Sprint(reply["user_expressions"]),
		"map[a:map[data:map[text/plain:value of x] metadata:map[] status:ok] b:map[ename:ValueError evalue:no such thing status:error traceback:[no such thing]]]"; got != want {
		t.Errorf("user_expressions: got %s, want %s", got, want)
	}
}

func TestQuestions(t *testing.T) {
	k := start(t)
	k.Execute("say 1")
	k.Execute("say 2")
	for _, c := range []struct {
		kind    string
		request map[string]any
		want    string
	}{
		{"complete_request", map[string]any{"code": "éa", "cursor_pos": 2}, "map[cursor_end:2 cursor_start:1 matches:[éa1 éa2] metadata:map[] status:ok]"},
		{"inspect_request", map[string]any{"code": "x", "cursor_pos": 1}, "map[data:map[text/plain:about x] found:true metadata:map[] status:ok]"},
		{"inspect_request", map[string]any{"code": "nothing", "cursor_pos": 1}, "map[data:map[] found:false metadata:map[] status:ok]"},
		{"is_complete_request", map[string]any{"code": "x"}, "map[indent: status:complete]"},
		{"is_complete_request", map[string]any{"code": "x:"}, "map[indent:   status:incomplete]"},
		{"history_request", map[string]any{"hist_access_type": "tail", "n": 1, "output": false}, "map[history:[[0 2 say 2]] status:ok]"},
		{"comm_info_request", map[string]any{}, "map[comms:map[] status:ok]"},
		{"complete_request", map[string]any{"code": 3}, "map[ename:KernelError"},
		{"complete_request", map[string]any{"code": "panic"}, "map[ename:KernelError evalue:internal error: complete"},
	} {
		reply, _ := k.Ask(c.kind, c.request)
		if c.want[:4] != "map[" || !strings.HasPrefix(fmt.Sprint(without(reply, "execution_count")), c.want) {
			t.Errorf("%s %v: got %v, want %s", c.kind, c.request, reply, c.want)
		}
	}
	info, _ := k.Ask("kernel_info_request", map[string]any{})
	if info["protocol_version"] != "5.3" || info["implementation"] != "fake" || info["banner"] != "hello" || info["language_info"].(map[string]any)["name"] != "words" {
		t.Errorf("kernel_info: got %v", info)
	}
	said := k.Until(k.Send("shell", "comm_open", map[string]any{"comm_id": "c1", "target_name": "x"}))
	if c := jupytertest.Find(t, said, "comm_close"); len(c) != 1 || c[0]["comm_id"] != "c1" {
		t.Errorf("comm_open: got %v", c)
	}
	if got := k.Beat("tick"); got != "tick" {
		t.Errorf("heartbeat: got %q", got)
	}
}

func without(m map[string]any, key string) map[string]any {
	delete(m, key)
	return m
}

// Cells that wait when one fails are not run, unless it was asked for.
func TestAbort(t *testing.T) {
	for _, c := range []struct {
		first map[string]any
		want  string
	}{
		{map[string]any{"code": "fail x"}, "error aborted ok aborted"},
		{map[string]any{"code": "fail x", "stop_on_error": false}, "error ok ok ok"},
		{map[string]any{"code": "say x"}, "ok ok ok ok"},
	} {
		k := start(t)
		k.Send("shell", "execute_request", c.first)
		k.Send("shell", "execute_request", map[string]any{"code": "say 1"})
		k.Send("shell", "comm_info_request", map[string]any{})
		k.Send("shell", "execute_request", map[string]any{"code": "say 2"})
		var got []string
		for range 4 {
			got = append(got, jupytertest.Content(t, k.Receive("shell"))["status"].(string))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%v: got %s, want %s", c.first, text, c.want)
		}
		if reply, _ := k.Execute("say 3"); reply["status"] != "ok" {
			t.Errorf("%v: a later cell: got %v", c.first, reply)
		}
	}
}

// What isn't signed with the key is dropped, and nothing else stops.
func TestSignatures(t *testing.T) {
	k := start(t)
	header := `{"msg_id":"1","session":"s","username":"u","date":"","msg_type":"execute_request","version":"5.3"}`
	for _, sign := range []string{"", strings.Repeat("0", 64)} {
		k.SendFrames("shell", [][]byte{[]byte("<IDS|MSG>"), []byte(sign), []byte(header), []byte("{}"), []byte("{}"), []byte(`{"code":"say no"}`)})
	}
	k.SendFrames("control", [][]byte{[]byte("garbage")})
	if !k.Quiet("shell", 300*time.Millisecond) || !k.Quiet("iopub", 0) {
		t.Error("something without a signature was answered")
	}
	if said := k.log.String(); strings.Count(said, "dropped a message: its signature is wrong") != 2 || !strings.Contains(said, "of 2 frames") {
		t.Errorf("the kernel said %q", said)
	}
	if reply, said := k.Execute("say yes"); show(t, reply, said) != `[1]; stdout "yes"; ok 1` {
		t.Error("what is signed isn't answered any more")
	}
}

func TestInterrupt(t *testing.T) {
	k := start(t)
	for i, how := range []string{"message", "signal"} {
		id := k.Send("shell", "execute_request", map[string]any{"code": "wait"})
		for m := k.Receive("iopub"); m.Header.Type != "stream"; m = k.Receive("iopub") {
			// Control requests are served beside cells, so that the end of one may be told late.
			if m.ParentID() != id && m.Header.Type != "status" {
				t.Fatalf("got a %s about %s", m.Header.Type, m.ParentID())
			}
		}
		if how == "message" {
			asked := k.Send("control", "interrupt_request", map[string]any{})
			if m := k.Receive("control"); m.Header.Type != "interrupt_reply" || m.ParentID() != asked {
				t.Errorf("got a %s", m.Header.Type)
			}
		} else {
			k.wake <- struct{}{}
		}
		if c := jupytertest.Content(t, k.Receive("shell")); c["ename"] != "Interrupted" || c["execution_count"] != float64(2*i+1) {
			t.Errorf("%s: got %v", how, c)
		}
		// Nothing runs: there is nothing to interrupt.
		k.Send("control", "interrupt_request", map[string]any{})
		k.Receive("control")
		if reply, _ := k.Execute("say x"); reply["status"] != "ok" {
			t.Errorf("%s: afterwards: got %v", how, reply)
		}
	}
}

func TestShutdown(t *testing.T) {
	for _, c := range []struct {
		what, cell, socket string
		within             time.Duration
	}{
		{"idle", "", "control", 2 * time.Second},
		{"over the shell socket", "", "shell", 2 * time.Second},
		{"while a cell runs", "wait", "control", 2 * time.Second},
		{"while one runs that doesn't end", "stay", "control", 6 * time.Second},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			k := start(t)
			if c.cell != "" {
				k.Send("shell", "execute_request", map[string]any{"code": c.cell})
				for k.Receive("iopub").Header.Type != "stream" {
				}
			}
			id := k.Send(c.socket, "shutdown_request", map[string]any{"restart": true})
			m := k.Receive(c.socket)
			if content := jupytertest.Content(t, m); m.Header.Type != "shutdown_reply" || m.ParentID() != id || content["restart"] != true {
				t.Errorf("got a %s: %v", m.Header.Type, content)
			}
			if said := jupytertest.Find(t, k.Until(id), "shutdown_reply"); len(said) != 1 {
				t.Errorf("told others %d times of it", len(said))
			}
			k.ended(t, c.within)
		})
	}
}

func TestQuit(t *testing.T) {
	k := start(t)
	reply, _ := k.Execute("quit")
	if got := fmt.Sprint(reply["payload"]); got != "[map[keepkernel:false source:ask_exit]]" {
		t.Errorf("payload: got %s", got)
	}
	k.ended(t, 2*time.Second)
}

// The end of the context ends a kernel that nobody shuts down.
func TestCancel(t *testing.T) {
	k := start(t)
	k.stop()
	k.ended(t, 2*time.Second)
	if said := k.log.String(); said != "" {
		t.Errorf("the kernel said %q", said)
	}
}

// A port that somebody has is an error that names the socket, and no panic.
func TestPortInUse(t *testing.T) {
	conn := jupytertest.FreeConnection(t)
	conn.IOPub = conn.Stdin
	err := jupyter.Serve(context.Background(), conn, jupyter.Options{Engine: fake{}, Log: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "opening the iopub socket") {
		t.Errorf("got %v", err)
	}
}

// Requests that aren't for the control socket, and those of no known type, are
// noted and not answered.
func TestUnknown(t *testing.T) {
	k := start(t)
	k.Send("control", "execute_request", map[string]any{"code": "say x"})
	k.Send("shell", "debug_request", map[string]any{})
	if !k.Quiet("control", 200*time.Millisecond) || !k.Quiet("shell", 0) || !k.Quiet("iopub", 0) {
		t.Error("it was answered")
	}
	if said := k.log.String(); !strings.Contains(said, "got debug_request") || !strings.Contains(said, "got execute_request on the control socket") {
		t.Errorf("the kernel said %q", said)
	}
}
