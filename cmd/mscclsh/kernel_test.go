package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mscclsh/mscclsh/internal/jupyter"
	"github.com/mscclsh/mscclsh/internal/jupyter/jupytertest"
	"github.com/mscclsh/mscclsh/internal/notebook"
)

// startKernel runs the shell as a kernel and connects to it.
func startKernel(t *testing.T) (client *jupytertest.Client, done <-chan error) {
	t.Helper()
	conn := jupytertest.FreeConnection(t)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ready := make(chan struct{})
	go func() {
		ended <- jupyter.Serve(ctx, conn, jupyter.Options{Engine: newKernelEngine(), Info: kernelInfo(), Log: os.Stderr, Ready: func() { close(ready) }})
	}()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	return jupytertest.Dial(t, conn), ended
}

// result is the value that a cell gave, "" for none.
func result(t *testing.T, said []*jupyter.Message) string {
	t.Helper()
	list := jupytertest.Find(t, said, "execute_result")
	if len(list) == 0 {
		return ""
	}
	return list[0]["data"].(map[string]any)["text/plain"].(string)
}

// kernelPair is a program of two ranks that holds: each has one chunk, which becomes the
// sum of both.
const kernelPair = `with MSCCLProgram("pair", fully_connected(2), AllReduce(2, 1, True)):
    c = chunk(1, "input", 0).reduce(chunk(0, "input", 0))
    c.copy(0, "input", 0)
`

// The acceptance of the kernel: cells, a stream, a picture, an error with its place,
// completion, an endless loop that is interrupted, and the end.
func TestKernelSession(t *testing.T) {
	k, done := startKernel(t)
	if reply, said := k.Execute(kernelPair + "check"); reply["status"] != "ok" || !strings.Contains(jupytertest.Text(t, said, "stdout"), "check     holds") {
		t.Errorf("check: got %v, %v", reply, jupytertest.Text(t, said, "stdout"))
	}
	// The session goes on from cell to cell; positions count its lines: three of the
	// program, two of the next cell, none of a value that was looked at.
	if _, said := k.Execute("x = 6 * 7\nprint(x)"); jupytertest.Text(t, said, "stdout") != "42\n" {
		t.Errorf("print: got %q", jupytertest.Text(t, said, "stdout"))
	}
	if _, said := k.Execute("x + 1"); result(t, said) != "43" {
		t.Errorf("a value: got %q", result(t, said))
	}
	reply, said := k.Execute("y = 1\ny = x.none")
	failed := jupytertest.Find(t, said, "error")
	if len(failed) != 1 || reply["status"] != "error" || jupytertest.Text(t, said, "stderr") != "" {
		t.Fatalf("an error: got %v, %v", reply, said)
	}
	var trace []string
	for _, line := range failed[0]["traceback"].([]any) {
		trace = append(trace, line.(string))
	}
	if got := strings.Join(trace, "\n"); !strings.HasPrefix(got, "session:7:7: ") || !strings.Contains(got, "\n    y = x.none\n          ^") {
		t.Errorf("an error: got\n%s", got)
	}
	if _, said := k.Execute("y"); len(jupytertest.Find(t, said, "error")) != 1 {
		t.Error("a cell that failed has left something behind")
	}
	reply, _ = k.Ask("complete_request", map[string]any{"code": "é = 1\nfully_con", "cursor_pos": 15})
	if got := fmt.Sprint(reply["matches"], reply["cursor_start"], reply["cursor_end"]); got != "[fully_connected] 6 15" {
		t.Errorf("completion: got %s", got)
	}
	reply, _ = k.Ask("inspect_request", map[string]any{"code": "c = chunk(0, ", "cursor_pos": 13})
	if text := fmt.Sprint(reply["data"]); !strings.Contains(text, "chunk(rank, buffer, index, size=1)") {
		t.Errorf("inspection: got %s", text)
	}

	k.Send("shell", "execute_request", map[string]any{"code": "print(\"begins\")\ndef forever():\n    while True:\n        pass\nforever()"})
	for k.Receive("iopub").Header.Type != "stream" {
	}
	k.Send("control", "interrupt_request", map[string]any{})
	if c := jupytertest.Content(t, k.Receive("shell")); c["ename"] != "Interrupted" {
		t.Errorf("an interrupt: got %v", c)
	}
	if _, said := k.Execute("x"); result(t, said) != "42" {
		t.Errorf("after the interrupt x is %q", result(t, said))
	}
	k.Send("control", "shutdown_request", map[string]any{"restart": false})
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the kernel doesn't end")
	}
}

// Each command that draws shows a picture instead of printing it, beside the text
// that the shell prints.
func TestKernelPictures(t *testing.T) {
	k, _ := startKernel(t)
	k.Execute(kernelPair)
	var out bytes.Buffer
	plain := NewShell(&out, io.Discard)
	if err := plain.Exec(context.Background(), kernelPair); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line, title string
		pictures    int
	}{
		{"dag", "pair: chunks", 1},
		{"schedule 0", "pair: schedule", 1},
		{"connections", "pair: topology", 1},
		{"instructions", "pair: instructions", 2},
		{"timeline", "pair: timeline", 1},
		{"dag(0)", "pair: chunks", 1},
	} {
		_, said := k.Execute(c.line)
		shown := jupytertest.Find(t, said, "display_data")
		if len(shown) != c.pictures || strings.TrimSpace(jupytertest.Text(t, said, "stdout")) != "" {
			t.Errorf("%s: got %d pictures, want %d, and printed %q", c.line, len(shown), c.pictures, jupytertest.Text(t, said, "stdout"))
			continue
		}
		data := shown[0]["data"].(map[string]any)
		if title := svgTitle(t, data["image/svg+xml"].(string)); title != c.title {
			t.Errorf("%s: the picture is called %q, want %q", c.line, title, c.title)
		}
		out.Reset()
		if err := plain.Exec(context.Background(), c.line); err != nil {
			t.Fatal(err)
		}
		if text := data["text/plain"].(string); c.line != "timeline" && !strings.HasPrefix(out.String(), text) {
			t.Errorf("%s: got the text\n%swant\n%s", c.line, text, out.String())
		}
	}
}

// svgTitle reads a drawing as XML and gives its title.
func svgTitle(t *testing.T, text string) string {
	t.Helper()
	var drawing struct {
		XMLName xml.Name `xml:"http://www.w3.org/2000/svg svg"`
		Title   string   `xml:"title"`
	}
	if err := xml.Unmarshal([]byte(text), &drawing); err != nil {
		t.Fatalf("it is no SVG: %v", err)
	}
	return drawing.Title
}

// notes is the output of a cell, as one text.
type notes struct {
	out, err strings.Builder
	pictures int
}

func (n *notes) Stdout() io.Writer         { return &n.out }
func (n *notes) Stderr() io.Writer         { return &n.err }
func (n *notes) Display(map[string]string) { n.pictures++ }

// Cells hold statements and commands, which have marks or not; the last statement's
// value is the cell's.
func TestKernelCells(t *testing.T) {
	for _, c := range []struct {
		what  string
		cells []string
		value string // of the last cell
		out   string // that it begins with
		fails bool
	}{
		{"an expression", []string{"1 + 2"}, "3", "", false},
		{"the last of several", []string{"1\nx = 4\nx"}, "4", "", false},
		{"not the last", []string{"x = 4\nx\ny = 1"}, "", "", false},
		{"None", []string{"print(7)"}, "", "7\n", false},
		{"a command after it", []string{"4\nprogram"}, "", "", true},
		{"in a block", []string{kernelPair}, "", "", false},
		{"after a block", []string{kernelPair + "5"}, "5", "", false},
		{"one line of a block", []string{strings.SplitAfter(kernelPair, "\n")[0], "    chunk(0, \"input\", 0)"}, `chunk(0, "input", 0)`, "", false},
		{"a marked command", []string{kernelPair + "%program"}, "", "* pair", false},
		{"as scripts mark it", []string{kernelPair + "# %program"}, "", "* pair", false},
		{"as the shell marks it", []string{kernelPair + ":program"}, "", "* pair", false},
		{"a mark in a string", []string{"x = \"\"\"\n%program\n\"\"\"\nx"}, `"\n%program\n"`, "", false},
		{"a name of a command", []string{"check = 3\ncheck"}, "3", "", false},
		{"a name of a command, over two lines", []string{"run = 3\nrun -len(\n[1])"}, "2", "", false},
		{"line ends", []string{"x = 1\r\nx\r\n"}, "1", "", false},
		{"a command of several lines", []string{"open MSCCLProgram(\"o\",\n  fully_connected(2),\n  AllReduce(2, 1, True))\nprogram"}, "", "* o: ", false},
		{"a failing command keeps what is before it", []string{"x = 8\nstep 3", "x"}, "8", "", false},
		{"a failing statement doesn't", []string{"x = 8\nnone(3)", "x"}, "", "", true},
	} {
		e := newKernelEngine()
		var r jupyter.Result
		var said notes
		for _, code := range c.cells {
			said = notes{}
			r = e.Execute(context.Background(), code, &said)
		}
		if r.Value != c.value || !strings.HasPrefix(said.out.String(), c.out) || (r.Err != nil) != c.fails {
			t.Errorf("%s: got %q, %q, %v, want %q, %q", c.what, r.Value, said.out.String(), r.Err, c.value, c.out)
		}
	}
}

// The cells of the lessons run, and fail where they are meant to.
func TestKernelLessons(t *testing.T) {
	t.Chdir("../../tutorials")
	pictures := 0
	for _, l := range allLessons(t) {
		e := newKernelEngine()
		for i := range l.Cells {
			c := &l.Cells[i]
			if c.Kind != notebook.Code || c.Has(notebook.TagGPU) {
				continue
			}
			var said notes
			r := e.Execute(context.Background(), c.Source, &said)
			// Whether an exercise is solved is for the lesson's own shell to say.
			if (r.Err != nil) != c.Has(notebook.TagFails) && !c.Has(notebook.TagExercise) {
				t.Errorf("%s:%d: got %v\n%s%s", l.File, c.Line, r.Err, said.out.String(), said.err.String())
			}
			pictures += said.pictures
		}
	}
	if pictures < 10 {
		t.Errorf("the lessons show %d pictures", pictures)
	}
}

// What goes wrong in a judged program is told on the streams; the cell fails.
func TestKernelWrongProgram(t *testing.T) {
	k, _ := startKernel(t)
	k.Execute("with MSCCLProgram(\"half\", fully_connected(2), AllReduce(2, 1, True)):\n    chunk(0, \"input\", 0).copy(1, \"input\", 0)\n")
	reply, said := k.Execute("check")
	text := jupytertest.Text(t, said, "stdout") + jupytertest.Text(t, said, "stderr")
	if reply["status"] != "error" || reply["ename"] != "wrong" || !strings.Contains(text, "rank 0 output[0] holds input[0] of rank 0") {
		t.Errorf("got %v and %s", reply, text)
	}
	// What stands in a block that failed isn't run as if it stood alone.
	reply, _ = k.Execute("with nothing:\n    print(1)\nprint(2)")
	if reply["status"] != "error" {
		t.Errorf("got %v", reply)
	}
	k.Execute("x = 0") // the block is at its end
	k.Execute("with nothing:")
	if _, said := k.Execute("    print(3)"); len(said) == 1 {
		t.Error("a cell is skipped because the one before failed")
	}
}

func TestKernelIsComplete(t *testing.T) {
	const head = `with MSCCLProgram("p", fully_connected(2), AllReduce(2, 1, True)):`
	fresh := newKernelEngine()
	within := newKernelEngine()
	if err := within.shell.Exec(context.Background(), head); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		engine *kernelEngine
		code   string
		whole  bool
		indent string
	}{
		{fresh, "x = 1", true, ""},
		{fresh, "", true, ""},
		{fresh, "check", true, ""},
		{fresh, "x = (1,", false, ""},
		{fresh, "x = \"\"\"a", false, ""},
		{fresh, "for i in range(3):", false, "    "},
		{fresh, "for i in range(3):\n  print(i)", false, "  "},
		{fresh, "for i in range(3):\n    if i:", false, "        "},
		{fresh, "for i in range(3):\n    print(i)\n", true, ""},
		{fresh, head, false, "    "},
		{fresh, head + "\n  c = 1", false, "  "},
		{fresh, head + "\n  c = 1\n", true, ""},
		{within, "    c = 1", true, ""},
		{within, "x = 1", true, ""},
	} {
		if whole, indent := c.engine.IsComplete(c.code); whole != c.whole || indent != c.indent {
			t.Errorf("%q: got %v, %q, want %v, %q", c.code, whole, indent, c.whole, c.indent)
		}
	}
	if fresh.shell.Pending() || fresh.shell.split.block || len(fresh.shell.entries) > 0 {
		t.Error("asking has changed the session")
	}
}

// A kernel ends when the process is gone that started it.
func TestWatchParent(t *testing.T) {
	for _, c := range []struct {
		named string
		pids  []int // one an inquiry; the last for ever
		ends  bool
	}{
		{"77", []int{77, 1}, true},
		{"77", []int{77, 77, 1}, true},
		{"", []int{77, 1}, false},
		{"0", []int{0, 1}, false},
		{"78", []int{77, 1}, false}, // started by something in between
	} {
		asked, ended := 0, false
		parent := func() int {
			asked++
			return c.pids[min(asked, len(c.pids))-1]
		}
		watchParent(context.Background(), c.named, parent, func() { ended = true })
		if ended != c.ends {
			t.Errorf("%q, %v: got %v, want %v", c.named, c.pids, ended, c.ends)
		}
	}
}

// TestJupyterClient talks to the command with Jupyter's own client.
func TestJupyterClient(t *testing.T) {
	python := installed(t, "MSCCLSH_JUPYTER", "jupyter", "needs python3, and the network once for jupyter_client")
	tool := filepath.Join(t.TempDir(), "mscclsh")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	client := exec.CommandContext(ctx, python, "testdata/jupyter/notebook.py", tool)
	client.Env = append(os.Environ(), "JUPYTER_DATA_DIR="+t.TempDir(), "JUPYTER_PATH=", "JUPYTER_RUNTIME_DIR="+t.TempDir())
	if out, err := client.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
