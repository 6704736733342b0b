package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestShellScript runs the transcripts in testdata/repl: lines that are piped into
// the shell, and what it prints, writes and returns.
func TestShellScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/repl",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// talk is a shell with what it printed.
type talk struct {
	t        *testing.T
	s        *Shell
	out, err strings.Builder
}

func newTalk(t *testing.T) *talk {
	x := &talk{t: t}
	x.s = NewShell(&x.out, &x.err)
	t.Cleanup(x.s.Close)
	return x
}

// ok carries out texts that must go well, and gives what they printed.
func (x *talk) ok(texts ...string) string {
	x.t.Helper()
	x.out.Reset()
	x.err.Reset()
	for _, text := range texts {
		if err := x.s.Exec(context.Background(), text); err != nil {
			x.t.Fatalf("%s: %v\n%s", text, err, x.err.String())
		}
	}
	return x.out.String()
}

// bad carries out a text that must fail, and gives what it printed as an error.
func (x *talk) bad(text string) string {
	x.t.Helper()
	x.out.Reset()
	x.err.Reset()
	if err := x.s.Exec(context.Background(), text); err == nil {
		x.t.Fatalf("%s: no error; it printed %q", text, x.out.String())
	}
	return x.err.String()
}

func (x *talk) want(text, want string) {
	x.t.Helper()
	if got := x.ok(text); got != want {
		x.t.Errorf("%s:\n got %q\nwant %q", text, got, want)
	}
}

const openPair = `open MSCCLProgram("pair", fully_connected(2), AllReduce(2, 1, True)) as p`

// pair is a program whose outputs are all right.
var pair = []string{openPair, `c = chunk(1, "input", 0).reduce(chunk(0, "input", 0))`, "c.copy(0)"}

// The prompt follows the program, line by line.
func TestShellPrompt(t *testing.T) {
	x := newTalk(t)
	for _, step := range [][2]string{
		{"x = 1", "mscclsh> "},
		{openPair, "pair: 2 ranks, 0 ops, 0/2 right> "},
		{`c = chunk(1, "input", 0).reduce(chunk(0, "input", 0))`, "pair: 2 ranks, 1 op, 1/2 right> "},
		{"c.copy(0)", "pair: 2 ranks, 2 ops, holds> "},
		{"undo", "pair: 2 ranks, 1 op, 1/2 right> "},
		{"close", "mscclsh> "},
		{"undo", "pair: 2 ranks, 1 op, 1/2 right> "},
		{"undo 2", "mscclsh> "},
		{"x", "mscclsh> "},
		{`open MSCCLProgram("a name of more than twenty letters", ring(3), AllGather(3))`, "a name of more th...: 3 ranks, 0 ops, 0/9 right> "},
	} {
		x.ok(step[0])
		if got := x.s.Prompt(); got != step[1] {
			t.Fatalf("after %s: got %q, want %q", step[0], got, step[1])
		}
	}
	x.s.Typed()
	x.ok("def f():")
	if got := x.s.Prompt(); got != "... " || x.s.Indent() != "    " {
		t.Errorf("within a def: got %q and %q", got, x.s.Indent())
	}
}

// An error leaves everything as it was: globals, lists, the program, the lines.
func TestShellErrorKeepsState(t *testing.T) {
	x := newTalk(t)
	x.ok("l = [1]", openPair)
	got := x.bad(`l.append(chunk(0, "input", 0).copy(1, "s", 0)); l.append(2); k = 3; chunk(9, "input", 0)`)
	want := `session:3:73: chunk: rank: got 9, want 0 to 1
        l.append(chunk(0, "input", 0).copy(1, "s", 0)); l.append(2); k = 3; chunk(9, "input", 0)
                                                                            ^
    the program has 2 ranks
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := x.s.Prompt(); got != "pair: 2 ranks, 0 ops, 0/2 right> " {
		t.Errorf("prompt: got %q", got)
	}
	x.want("l", "[1]\n")
	if got := x.bad("k"); !strings.HasPrefix(got, "session:3:5: undefined: k\n        k\n        ^\n") {
		t.Errorf("got %q", got)
	}
	for text, want := range map[string]string{
		"x = = 3":      "session:3:9: syntax error: got '=', want primary expression\n        x = = 3\n            ^\n",
		"  é = $":      "session:3:10:", // columns count bytes, of the line as it is saved
		"chekc":        "did you mean the command check?",
		"schedul 0":    "did you mean the command schedule?",
		"xyzzy 3":      "help lists the commands; xyzzy is none",
		":frob":        `"frob" is no command`,
		"if 3 3: pass": "session:3:10: syntax error: got int literal, want ':'\n        if 3 3: pass\n             ^\n",
		"chunk(0)":     "session:3:5: chunk: missing argument",
		"run --sise 3": "did you mean --size?",
		"step x":       `step: got "x", want a number of moves`,
		"schedule 7":   `schedule: got rank "7", want 0 to 1`,
		"close now":    `close: unexpected argument "now"`,
		`save "x`:      `" is not closed`,
		"load":         "usage: load FILE",
		"undo(1)(2)":   "",
	} {
		if got := x.bad(text); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", text, got, want)
		}
	}
	if got := x.bad("for x"); !strings.HasSuffix(got, "\n        for x\n             ^\n") { // for is no command that is missing
		t.Errorf("got %q", got)
	}
	x.want("l", "[1]\n")
}

// What a with block opens is traced line by line, and a slip doesn't end it.
func TestShellBlock(t *testing.T) {
	x := newTalk(t)
	x.s.Typed()
	line := func(text string) error { return x.s.Line(context.Background(), text) }
	for _, text := range []string{
		`with MSCCLProgram("pair", fully_connected(2), AllReduce(2, 1, True)):`,
		`    c = chunk(1, "input", 0).reduce(chunk(0, "input", 0))`,
		"check", // a command is none of the block's lines
	} {
		if err := line(text); err != nil && text != "check" {
			t.Fatal(err)
		}
	}
	for _, slip := range []string{"chekc", "  c.copy(0)", "    c.copy(3)", "    c.copy("} {
		if err := line(slip); err == nil && !x.s.Pending() {
			t.Errorf("%s is accepted", slip)
		}
		x.s.Forget()
		if got := x.s.Prompt(); got != "pair: 2 ranks, 1 op, 1/2 right> " {
			t.Fatalf("after %s: got %q", slip, got)
		}
	}
	if got := x.s.Indent(); got != "    " {
		t.Errorf("indentation: got %q", got)
	}
	for _, text := range []string{"    for r in range(1):", "        c.copy(r)", "    ", ""} {
		if err := line(text); err != nil {
			t.Fatal(err)
		}
	}
	if got := x.s.Prompt(); got != "mscclsh> " {
		t.Errorf("after the block: got %q", got)
	}
	want := `with MSCCLProgram("pair", fully_connected(2), AllReduce(2, 1, True)):
    c = chunk(1, "input", 0).reduce(chunk(0, "input", 0))
    for r in range(1):
        c.copy(r)
`
	if got := x.ok("script"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// The line that ends a block and the end are undone as one.
	x.ok("undo")
	if err := line("x = 1"); err != nil {
		t.Fatal(err)
	}
	x.ok("undo")
	if got := x.s.Prompt(); got != "pair: 2 ranks, 2 ops, holds> " {
		t.Errorf("after undo: got %q", got)
	}
}

// A statement that fails doesn't take the line with it that ended it.
func TestShellNextLine(t *testing.T) {
	x := newTalk(t)
	for _, text := range []string{"for i in range(2):", "    oops", "y = 2"} {
		_ = x.s.Line(context.Background(), text)
	}
	if !strings.Contains(x.err.String(), "undefined: oops") {
		t.Errorf("got %q", x.err.String())
	}
	x.want("y", "2\n")
}

// A head that fails takes its block with it.
func TestShellHeadFails(t *testing.T) {
	x := newTalk(t)
	for _, text := range []string{"with MSCCLProgram('p', ring(3), AllReduce(2)):", "    chunk(0, 'input', 0)", "    x = 1", "y = 2"} {
		_ = x.s.Line(context.Background(), text)
	}
	want := "session:1:6: MSCCLProgram: the topology has 3 ranks, the collective 2\n    with MSCCLProgram('p', ring(3), AllReduce(2)):\n         ^\n"
	if got := x.err.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	x.want("y", "2\n")
}

// A paste is taken as a whole, with tabs and any line ends, or not at all.
func TestShellPaste(t *testing.T) {
	for _, end := range []string{"\n", "\r\n", "\r"} {
		x := newTalk(t)
		x.s.Typed()
		script := []string{"def f(x):", "\treturn x", "", "\ty = 1", "", `with MSCCLProgram("pair", fully_connected(2), AllReduce(2, 1, True)):`,
			"\tc = chunk(1, \"input\", f(0)).reduce(chunk(0, \"input\", 0))", "", "\tc.copy(0)", "check", "z = 3", ""}
		got := x.ok(strings.Join(script, end))
		if !strings.Contains(got, "holds: every output right") {
			t.Errorf("%q: got %q", end, got)
		}
		x.want("z", "3\n")
		if got := x.ok("undo", "script"); !strings.HasPrefix(got, "undone: def f(x): …\n") || !strings.HasSuffix(got, "undone: the end of the program\nundone: z = 3\n") {
			t.Errorf("%q: got %q", end, got)
		}
		if err := x.bad("a = 1" + end + "b = a + oops" + end + "c = 2"); !strings.HasPrefix(err, "session:2:9: undefined: oops\n    b = a + oops\n            ^\n") {
			t.Errorf("%q: got %q", end, err)
		}
		if got := x.bad("a"); !strings.Contains(got, "undefined: a") {
			t.Errorf("%q: a part of a paste that failed was kept", end)
		}
	}
}

// Ctrl-C is a context that is canceled: what runs ends, the session stays.
func TestShellInterrupt(t *testing.T) {
	x := newTalk(t)
	x.ok("l = []", pair[0], pair[1], pair[2], "close")
	for _, text := range []string{"l.append(1)\nwhile True:\n    l.append(2) if len(l) < 9 else None\n", "run 256MiB --iterations 100000"} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		x.err.Reset()
		begin := time.Now()
		err := x.s.Exec(ctx, text)
		cancel()
		if err == nil || x.err.String() != "interrupted: the session is as it was before\n" {
			t.Errorf("%s: got %v, %q", text, err, x.err.String())
		}
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("%s: ended after %s", text, took)
		}
	}
	x.want("l", "[]\n")
	if got := x.s.ExitCode(); got != exitInterrupted {
		t.Errorf("exit code: got %d", got)
	}
}

// Commands are functions too, with the same arguments, and are true if the program
// is right.
func TestShellCalls(t *testing.T) {
	x := newTalk(t)
	x.ok(pair...)
	asCommand := x.ok("check --slots 2")
	if got := x.ok("check(slots = 2)"); got != asCommand || !strings.Contains(got, "check     holds") {
		t.Errorf("got\n%swant\n%s", got, asCommand)
	}
	got := x.ok(`results = [check(), run("cpu", size = "4KiB", dtype = "bf16")]`, "results")
	if !strings.HasSuffix(got, "[True, True]\n") || strings.Count(got, "\n                    4096         2048     bf16    sum") != 1 {
		t.Errorf("got %q", got)
	}
	x.ok("undo") // of results = ...; what remains isn't carried out again
	if got := x.out.String(); got != "undone: results = [check(), run(\"cpu\", size = \"4KiB\", dtype = \"bf16\")]\n" {
		t.Errorf("got %q", got)
	}
	if got := x.bad("[undo()]"); !strings.Contains(got, "undo: it changes the session, so it must stand on a line by itself") {
		t.Errorf("got %q", got)
	}
	x.ok("undo()") // c.copy(0)
	if ok := x.ok("[check()]"); !strings.HasSuffix(ok, "[False]\n") {
		t.Errorf("got %q", ok)
	}
	if err := x.s.Exec(context.Background(), "check()"); err == nil || exitCode(err) != exitWrong {
		t.Errorf("check() of a wrong program: got %v", err)
	}
	x.ok("rank = 0")
	if got := x.ok("schedule(rank)"); got != x.ok("schedule 0") { // and no True behind it
		t.Errorf("got %q", got)
	}
	x.ok(`breakpoint("1:0:0")`)
	x.want("break", "1:0:0\n")
	x.want("time(1 + 1)", "2\n")
	if got := x.ok(`time("help undo")`); !strings.HasPrefix(got, "undo [N]\n") {
		t.Errorf("got %q", got)
	}
	x.ok("step = 4")
	x.want("step", "4\n") // the session's own name comes first
	if got := x.ok(":step"); !strings.HasPrefix(got, "#0 rank 0 tb 0 step 0: ") {
		t.Errorf("got %q", got)
	}
}

// A program of the same name takes the place of the earlier one, unless something
// needs it.
func TestShellReplaces(t *testing.T) {
	x := newTalk(t)
	x.ok(pair...)
	x.ok("close", "n = 1", openPair, "n")
	if got := x.ok("script"); got != "n = 1\nwith MSCCLProgram(\"pair\", fully_connected(2), AllReduce(2, 1, True)) as p:\n    pass\n" {
		t.Errorf("got %q", got)
	}
	x.ok("close", "name = p.name")
	if got := x.bad(openPair); !strings.Contains(got, `the script has a program "pair" already`) {
		t.Errorf("got %q", got)
	}
	x.want("name", "\"pair\"\n")
}

// A saved session makes the same programs when it is run as a script, and its lines
// are those that positions name.
func TestShellSave(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "session.star")
	x := newTalk(t)
	x.ok("ranks = 2", "ranks", "ranks + 1", "twice = _ * 2", openPair, "schedule(0) and None", "for r in range(1):\n  c = chunk(1, \"input\", 0).reduce(chunk(0, \"input\", 0))\n",
		"print(\"\"\"a\n  b\"\"\")", "c.copy(0)", "close", `open MSCCLProgram("empty", ring(3), AllReduce(3))`)
	got := x.ok("save " + file)
	want := `ranks = 2
_ = ranks + 1
twice = _ * 2
with MSCCLProgram("pair", fully_connected(2), AllReduce(2, 1, True)) as p:
#     schedule(0) and None
    for r in range(1):
      c = chunk(1, "input", 0).reduce(chunk(0, "input", 0))
    print("""a
  b""")
    c.copy(0)
with MSCCLProgram("empty", ring(3), AllReduce(3)):
    pass
`
	text, err := os.ReadFile(file)
	if err != nil || string(text) != want || got != "12 lines to "+file+"\n" {
		t.Fatalf("got %v, %q and\n%swant\n%s", err, got, text, want)
	}
	if got := x.err.String(); got != "mscclsh: left out, as only the shell understands it: schedule(0) and None\n" {
		t.Errorf("got %q", got)
	}
	if got := x.bad("chunk(0, 'inptu', 0)"); !strings.HasPrefix(got, "session:12:5:") {
		t.Errorf("got %q", got)
	}
	x.ok("reset", "load "+file+"", "program")
	if got := x.out.String(); !strings.Contains(got, "* empty: allreduce on 3 ranks, 0 operations, from "+file+":11:1\n") {
		t.Errorf("got %q", got)
	}
	// The shell's run takes more than the language's, and runs what is closed.
	x.ok("reset")
	x.ok(pair...)
	x.ok("c.copy(0)", "close", `ran = run("cpu", "4KiB")`, "after = 1")
	x.ok("save " + file)
	if text, err := os.ReadFile(file); err != nil || !strings.HasSuffix(string(text), "    c.copy(0)\n# ran = run(\"cpu\", \"4KiB\")\nafter = 1\n") {
		t.Errorf("got %v and\n%s", err, text)
	}
	// What is left out is told where the rest fails without it.
	x.ok("reset")
	x.ok(pair...)
	x.ok("right = check()", "close", "print(right)")
	if got := x.bad("save " + file); got != "mscclsh: left out, as only the shell understands it: right = check()\n"+
		"mscclsh: save: as a script the session would fail:\n"+file+":5:7: undefined: right\n" {
		t.Errorf("got %q", got)
	}
	// What a script can't say is found before anything is written.
	t.Chdir(dir)
	if err := os.WriteFile("helper.star", []byte("def f(): return 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("below", 0o755); err != nil {
		t.Fatal(err)
	}
	x.ok("reset", `load("helper.star", "f")`, "y = f()")
	if got := x.bad("save below/x.star"); !strings.HasPrefix(got, "mscclsh: save: as a script the session would fail:\nbelow/x.star:1:1: load: can't read below/helper.star") {
		t.Errorf("got %q", got)
	}
	if _, err := os.Stat("below/x.star"); err == nil {
		t.Error("a script that fails was written")
	}
}

// A file is loaded again when it is saved; a version that fails is not taken.
func TestShellAutoload(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p.star")
	now := time.Now()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second) // whatever the file system's clock does
		if err := os.Chtimes(file, now, now); err != nil {
			t.Fatal(err)
		}
	}
	program := "ranks = param('ranks', 2)\nwith MSCCLProgram('p', fully_connected(ranks), AllReduce(ranks, 1, True)):\n    chunk(0, 'input', 0).copy(1, 's', 0)\n"
	write(program)
	x := newTalk(t)
	if got := x.ok("autoload " + file + " --ranks 3"); got != "p: allreduce on 3 ranks, 1 operation, from "+file+":2:1\n" {
		t.Fatalf("got %q", got)
	}
	x.ok("mine = ranks * 10")
	write(program + "ranks = 4\n")
	if got := x.ok("mine"); !strings.HasPrefix(got, "p: allreduce on 3 ranks") || !strings.HasSuffix(got, "\n40\n") {
		t.Errorf("got %q", got)
	}
	write(program + "oops\n")
	got := x.ok("mine")
	if want := "mscclsh: " + file + " was saved, and is not taken:\n" + file + ":4:1: undefined: oops\n    oops\n    ^\n"; got != "40\n" || !strings.HasPrefix(x.err.String(), want) {
		t.Errorf("got %q and %q, want %q", got, x.err.String(), want)
	}
	write(program)
	if got := x.ok("mine"); !strings.HasSuffix(got, "\n30\n") {
		t.Errorf("got %q", got)
	}
	x.ok("autoload off")
	write("oops\n")
	x.want("mine", "30\n")
}

// What load refuses, and how its arguments are told from flags.
func TestShellLoad(t *testing.T) {
	x := newTalk(t)
	for text, want := range map[string]string{
		"load nothing.star":                              "nothing.star: no such file",
		"load @algorithms/allreduce_rign.star":           "did you mean @algorithms/allreduce_ring.star?",
		"load @algorithms/allreduce_ring.star --rnks 3":  "--ranks",
		"load @algorithms/allreduce_ring.star --slots 3": "settings --slots sets it for all commands",
		"load @algorithms/allreduce_ring.star --ranks x": `ranks: got "x", want an integer`,
		"load @algorithms/allreduce_ring.star --ranks":   "--ranks",
		"autoload @algorithms/allreduce_ring.star":       "scripts of the library don't change",
		"program ring":    "program: there is none yet",
		"check":           "there is no program yet",
		"save x.xml":      "want a name that ends in .star",
		"settings slots":  "a flag begins with --",
		"undo":            "there is nothing to take back",
		"help frobnicate": `there is nothing about "frobnicate"`,
		"time":            "an argument is missing",
		`load("@algorithms/allreduce_ring.star", "no_such")`:    "no_such",
		"open MSCCLProgram('x', ring(3), AllReduce(3)) as p, 3": "session:1:",
	} {
		if got := x.bad(text); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", text, got, want)
		}
		if len(x.s.entries) != 0 {
			t.Fatalf("%s left %d entries", text, len(x.s.entries))
		}
	}
	// Loaded again with other parameters, it takes the place of the earlier one.
	x.ok("load @algorithms/allreduce_ring.star --ranks 3", "mine = ranks + 1")
	if got := x.ok("load @algorithms/allreduce_ring.star --ranks 5", "mine"); !strings.HasPrefix(got, "allreduce_ring: allreduce on 5 ranks") || !strings.HasSuffix(got, "\n6\n") {
		t.Errorf("got %q", got)
	}
	x.bad("load @algorithms/allreduce_ring.star --ranks 0")
	x.want("mine", "6\n")
	x.ok("reset")
	if got := x.ok(`load("@algorithms/allreduce_ring.star")`); !strings.HasPrefix(got, "allreduce_ring: allreduce on ") {
		t.Errorf("got %q", got)
	}
}
