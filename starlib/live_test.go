package starlib

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// liveLines runs pieces as a session would: the next one begins where the last
// one that was accepted ended.
type liveLines struct {
	t     *testing.T
	l     *Live
	line  int32
	out   []string
	calls []string
}

func newLines(t *testing.T) *liveLines {
	x := &liveLines{t: t, line: 1}
	x.l = NewLive(LiveOptions{
		Options: Options{Print: func(_ diag.Pos, text string) { x.out = append(x.out, text) },
			Host: Host{Check: func(p *Program) (bool, error) { x.calls = append(x.calls, "Check"); return len(p.DAG.Ops) > 0, nil }}},
		Calls: []string{"schedule", "run"},
		Call: func(_ context.Context, _ diag.Pos, name string, args []string) (bool, error) {
			x.calls = append(x.calls, name+" "+strings.Join(args, " "))
			return true, nil
		},
	})
	return x
}

func (x *liveLines) run(text string) (*Ran, error) {
	p := Piece{Line: x.line, Text: text + "\n", Indented: strings.HasPrefix(text, " ")}
	do := x.l.Exec
	if strings.HasPrefix(text, "with ") && strings.HasSuffix(text, "pass") {
		do = x.l.Open
	}
	ran, err := do(context.Background(), p)
	if err == nil {
		x.line += int32(strings.Count(p.Text, "\n"))
	}
	return ran, err
}

func (x *liveLines) ok(text string) *Ran {
	x.t.Helper()
	ran, err := x.run(text)
	if err != nil {
		x.t.Fatalf("%s: %v", text, err)
	}
	return ran
}

func (x *liveLines) value(text, want string) {
	x.t.Helper()
	if got := x.ok(text).Value; got != want {
		x.t.Errorf("%s: got %q, want %q", text, got, want)
	}
}

// Globals are those of one file: functions see them as they are when they run.
func TestLiveGlobals(t *testing.T) {
	x := newLines(t)
	x.ok("ranks = 4")
	x.ok("def twice(): return 2 * ranks")
	x.value("twice()", "8")
	x.ok("ranks = 8")
	x.value("twice()", "16")
	x.ok("def first(): return second() + 1")
	if _, err := x.run("first()"); err == nil || !strings.Contains(err.Error(), "undefined: second") {
		t.Fatalf("first() before second(): got %v", err)
	}
	x.ok("def second(): return 1")
	x.value("first()", "2")
	x.ok("for i in range(3):\n    ranks += i")
	x.value("ranks", "11")
	x.value("i", "2")
	x.value("[ranks for ranks in range(2)]", "[0, 1]")
	x.value("ranks", "11")
	x.value("_ + 1", "12")
	x.ok("if True:\n    def inner(): return ranks")
	x.value("inner()", "11")
	x.value("(lambda a, ranks = ranks: a + ranks)(1)", "12")
	x.ok("sum = 3")
	x.value("sum", "3")
	x.ok("a, (b, c) = 1, [2, 3]")
	x.value("[a, b, c]", "[1, 2, 3]")
	x.ok("d = {'k': a}\nd['k'] += 1")
	x.value("d", `{"k": 2}`)
}

// Undefined names outside functions are found before anything runs.
func TestLiveUndefined(t *testing.T) {
	x := newLines(t)
	x.ok("channels = 1")
	_, err := x.run("print(chanels)")
	want := "session:2:7: undefined: chanels\n    did you mean channels?"
	if err == nil || err.Error() != want || x.l.Spoiled() {
		t.Errorf("got %v, spoiled %v, want %s", err, x.l.Spoiled(), want)
	}
	if _, err = x.run("1 / 0"); err == nil || !x.l.Spoiled() {
		t.Errorf("got %v, spoiled %v, want an error that spoils", err, x.l.Spoiled())
	}
}

// A program stays open between pieces.
func TestLiveProgram(t *testing.T) {
	x := newLines(t)
	if x.l.Current() != nil {
		t.Fatal("a program is open at the start")
	}
	x.ok("with MSCCLProgram('pair', fully_connected(2), AllReduce(2, 1, True)) as p: pass")
	x.ok("    c = chunk(1, 'input', 0).reduce(chunk(0, 'input', 0))")
	cur := x.l.Current()
	if cur == nil || cur.Name != "pair" || cur.Ranks != 2 || cur.Ops != 1 || cur.Right != 1 || cur.Demanded != 2 || !cur.Known {
		t.Fatalf("got %+v", cur)
	}
	_, err := x.run("    chunk(3, 'input', 0)")
	if err == nil || !strings.HasPrefix(err.Error(), "session:3:5: chunk: ") {
		t.Fatalf("a wrong rank: got %v", err)
	}
	x.ok("    with parallelize(2):\n        c.copy(0, 'scratch', 0)")
	x.ok("    c.copy(0)")
	if got := strings.Join(x.l.Buffers(), " "); got != "input output scratch" {
		t.Errorf("buffers: got %s", got)
	}
	prog, err := x.l.Current().Program()
	if err != nil || len(prog.DAG.Ops) != 3 || len(prog.Contents(0, ir.FirstScratch, 0)) != 2 {
		t.Fatalf("got %v, %v", prog, err)
	}
	if err := x.l.Close(); err != nil || x.l.Current() != nil {
		t.Fatalf("closing: %v", err)
	}
	if list := x.l.Programs(); len(list) != 1 || len(list[0].DAG.Ops) != 3 || list[0].Pos.String() != "session:1:1" {
		t.Fatalf("got %+v", list)
	}
	x.value("p.name", `"pair"`)
}

// Answers of the host are asked for once.
func TestLiveTape(t *testing.T) {
	x := newLines(t)
	x.ok("with MSCCLProgram('pair', fully_connected(2), AllReduce(2, 1, True)): pass")
	ran := x.ok("[Check(), run('cpu', size = '1MiB'), schedule(0, True)]")
	if ran.Value != "[False, True, True]" || strings.Join(ran.Calls, " ") != "run schedule" {
		t.Errorf("got %+v", ran)
	}
	if got := strings.Join(x.calls, "; "); got != "Check; run cpu --size 1MiB; schedule 0 true" {
		t.Errorf("calls: got %s", got)
	}
	y := newLines(t)
	y.ok("with MSCCLProgram('pair', fully_connected(2), AllReduce(2, 1, True)): pass")
	again, err := y.l.Exec(context.Background(), Piece{Line: 2, Text: "[Check(), run(), schedule()]\nprint(1)\n", Tape: ran.Tape, Silent: true})
	if err != nil || len(y.calls) > 0 || len(y.out) > 0 {
		t.Errorf("got %+v, %v, calls %v, out %v", again, err, y.calls, y.out)
	}
}

// Columns count bytes, also of earlier lines and of indented ones.
func TestLiveColumns(t *testing.T) {
	x := newLines(t)
	x.ok("s = 'é'")
	if _, err := x.run("print('éé', nothing)"); err == nil || !strings.HasPrefix(err.Error(), "session:2:15: undefined") {
		t.Errorf("got %v", err)
	}
	x.ok("with MSCCLProgram('pair', fully_connected(2), AllReduce(2, 1, True)): pass")
	if _, err := x.run("    print('éé', nothing)"); err == nil || !strings.HasPrefix(err.Error(), "session:3:19: undefined") {
		t.Errorf("got %v", err)
	}
}

// A canceled context ends what runs.
func TestLiveInterrupt(t *testing.T) {
	x := newLines(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := x.l.Exec(ctx, Piece{Line: 1, Text: "while True: pass\n"}); err == nil || !x.l.Spoiled() {
		t.Errorf("got %v", err)
	}
}

func TestCallOf(t *testing.T) {
	for text, want := range map[string]string{
		"run()": "run", `run("cpu", size = "1MiB", iterations = 3)`: "run|cpu|--size|1MiB|--iterations|3",
		"schedule(-1, chunk)": "schedule|-1|chunk", "f(x = None, dry_run = True)": "f|--dry-run|true",
		"f(x)": "", "f(g())": "", "f": "", "a.f()": "", "f(": "",
	} {
		name, args, ok := CallOf(text)
		if got := strings.Join(append([]string{name}, args...), "|"); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// A piece costs what it has, however many lines stand before it, and what is wrong in
// it is told where it stands.
func TestLivePieceFarBehind(t *testing.T) {
	const line = 20_000_000
	l := NewLive(LiveOptions{})
	for text, want := range map[string]diag.Pos{
		"x = = 1\n":                  {File: "far.star", Line: line, Col: 5},
		"x = (1,\n     2\ny = 3\n":   {File: "far.star", Line: line + 2, Col: 1},
		"x = 1\nwith\n":              {File: "far.star", Line: line + 1, Col: 5},
		"x = 1\n\ny = x + nothing\n": {File: "far.star", Line: line + 2, Col: 9},
		"x = 1 //\n":                 {File: "far.star", Line: line, Col: 9},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := l.Exec(context.Background(), Piece{File: "far.star", Line: line, Text: text})
		runtime.ReadMemStats(&after)
		if list := diag.Messages(err); len(list) != 1 || list[0].Pos != want {
			t.Errorf("%q: got %v, want an error at %v", text, err, want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > line/2 {
			t.Errorf("%q: took %d bytes of memory", text, n)
		}
	}
}
