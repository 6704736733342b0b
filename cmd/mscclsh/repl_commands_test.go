package main

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Stepping goes forwards and backwards, stops at breakpoints and changes, and begins
// anew when the program has changed.
func TestShellStepping(t *testing.T) {
	x := newTalk(t)
	x.ok(pair...)
	for _, step := range [][2]string{
		{"step", "#0 rank 0 tb 0 step 0: s i[0] x1 to 1 at i[0]\n1 move made, 1 of 3 steps done, 0 of 2 places as demanded\n"},
		{"slots", "0 -> 1 ch 0 #0 from tb 0:0 for tb 0:0: 0.0\n"},
		{"blocked", "rank 0 tb 0 step 1 (r) waits for message 1 of 1 on 1 -> 0 ch 0, to be sent by\n    rank 1 tb 0 step 0 (rrcs)\n"},
		{"display 1:input[0]", "rank 1 input[0] holds 1.0\n"},
		{"until 1:input[0]=", "stopped: rank 1 input[0] holds 0.0+1.0, as demanded\n2 moves made, 2 of 3 steps done, 1 of 2 places as demanded\n"},
		{"display 1 input", "rank 1 input\n  0= 0.0+1.0\n"},
		{"break 0:0:1", ""},
		{"break", "0:0:1\n"},
		{"back", "back before #1: rrcs i[0] -> i[0] x1 from 0 to 0 at i[0]\n1 move made, 1 of 3 steps done, 0 of 2 places as demanded\n"},
		{"back start", "0 moves made, 0 of 3 steps done, 0 of 2 places as demanded\n"},
		{"until", "stopped before rank 0 tb 0 step 1: r -> i[0] x1 from 1 at i[0]\n2 moves made, 2 of 3 steps done, 1 of 2 places as demanded\n"},
		{"until end", "3 moves made, 3 of 3 steps done, 2 of 2 places as demanded; every thread block has ended\n"},
		{"break clear", ""},
		{"back 1:0:0", "stopped before rank 1 tb 0 step 0: rrcs i[0] -> i[0] x1 from 0 to 0 at i[0]\n1 move made, 1 of 3 steps done, 0 of 2 places as demanded\n"},
	} {
		x.want(step[0], step[1])
	}
	for _, text := range []string{"break 5:0:0", "break x", "until 0:input[9]", "until 0:inptu[0]", "display 0 inptu", "step 0:0:0:0", "back -1"} {
		x.bad(text)
	}
	x.ok("c.copy(1, \"s\", 0)", "where")
	if got := x.err.String(); got != "mscclsh: the program has changed: stepping begins anew\n" || !strings.HasPrefix(x.out.String(), "") {
		t.Errorf("got %q", got)
	}
}

// Flags of GPUs go with the word that names them, as with --backend, whatever stands first.
// Here is no library for GPUs, which is what they end with.
func TestShellBackendWord(t *testing.T) {
	t.Setenv("MSCCLSH_CUDA_LIB", filepath.Join(t.TempDir(), "none.so"))
	x := newTalk(t)
	x.ok(pair...)
	for _, text := range []string{"run cuda --devices 0,1", "run --devices 0,1 cuda", "run --backend cuda --devices 0,1", "time run cuda --devices 0,1",
		"bench cuda --devices 0,1 --graph --sizes 1KiB"} {
		x.bad(text)
		if got := x.err.String(); !strings.Contains(got, "none.so") {
			t.Errorf("%s: got %q", text, got)
		}
	}
	x.bad("run cpu --devices 0,1")
	if got := x.err.String(); !strings.Contains(got, "--devices is for GPUs; this runs on the CPU") {
		t.Errorf("got %q", got)
	}
}

// Every command has a line of help and an example that runs or is refused with a
// message, never with a defect.
func TestShellHelp(t *testing.T) {
	for _, c := range shellCommandTable() {
		if c.Short == "" || len(c.Examples) == 0 || c.Run == nil || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s lacks a line, an example or a function", c.Name)
		}
		x := newTalk(t)
		got := x.ok("help " + c.Name)
		if !strings.Contains(got, c.usage()) || !strings.Contains(got, c.Examples[0]) {
			t.Errorf("help %s: got %q", c.Name, got)
		}
		for _, line := range strings.Split(got, "\n") {
			if len([]rune(line)) > 80 && !strings.Contains(line, "open ") {
				t.Errorf("help %s: more than 80 columns: %s", c.Name, line)
			}
		}
		for _, f := range c.Flags {
			if findFlag(flagTable(), f) == nil {
				t.Errorf("%s: no flag %s", c.Name, f)
			}
		}
		for _, e := range c.Examples {
			if strings.ContainsAny(e, ".") && c.Files || c.Name == "bench" {
				continue // of a file that isn't there, or long
			}
			y := newTalk(t)
			y.ok(pair...)
			y.ok("close")
			_ = y.s.Exec(context.Background(), e)
			if strings.Contains(y.err.String(), "internal error") {
				t.Errorf("%s: %s", e, y.err.String())
			}
		}
	}
	x := newTalk(t)
	x.ok(pair...)
	for text, want := range map[string]string{
		"help(chunk)":   "chunk(rank, buffer, index, size=1) -> ref",
		"chunk?":        "chunk(rank, buffer, index, size=1) -> ref",
		"?chunk":        "chunk(rank, buffer, index, size=1) -> ref",
		"help copy":     "ref.copy(dst, buffer=None",
		"help c.copy":   "ref.copy(dst, buffer=None",
		"c.reduce?":     "ref.reduce(other",
		"help c":        "c: ref, chunk(1, \"input\", 0)",
		"help run":      "run(size=None", // the command, then the function
		"?":             "commands",
		"help(\"dag\")": "dag [RANK] [full]",
		"help len":      "len(x)\n  How many elements",
		"help(json)":    "json: module, <module \"json\">",
	} {
		if got := x.ok(text); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", text, got, want)
		}
	}
}

// Flags of a stepping command hold for it and for those that follow without any.
func TestShellSteppingFlags(t *testing.T) {
	x := newTalk(t)
	x.ok(pair...)
	x.want("step 2 --slots 4", "#0 rank 0 tb 0 step 0: s i[0] x1 to 1 at i[0]\n#1 rank 1 tb 0 step 0: rrcs i[0] -> i[0] x1 from 0 to 0 at i[0]\n"+
		"  1.i[0]= 0.0+1.0, was 1.0\n2 moves made, 2 of 3 steps done, 1 of 2 places as demanded\n")
	x.ok("back")
	x.ok("step --slots 4")
	if got := x.ok("where"); !strings.HasPrefix(got, "2 moves made") || x.err.Len() > 0 {
		t.Errorf("got %q, %q", got, x.err.String())
	}
	if got := x.ok("step --disable fuse"); !strings.HasSuffix(got, "\n1 move made, 1 of 4 steps done, 0 of 2 places as demanded\n") ||
		x.err.String() != "mscclsh: it is compiled with other flags: stepping begins anew\n" {
		t.Errorf("got %q, %q", got, x.err.String())
	}
}

// Programs that were read have no trace, but everything else.
func TestShellReadProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pair.xml")
	x := newTalk(t)
	x.ok(pair...)
	x.ok("xml " + file)
	x.ok("reset")
	if got := x.ok("load " + file); got != "pair: allreduce on 2 ranks, 3 steps, from "+file+"\n" {
		t.Errorf("got %q", got)
	}
	if got := x.ok("check"); !strings.Contains(got, "read      MSCCL XML") || !strings.Contains(got, "check     holds") {
		t.Errorf("got %q", got)
	}
	if got := x.ok("buffers 0"); !strings.HasPrefix(got, "rank 0 input\n  i[0]= 0.0+1.0\n") {
		t.Errorf("got %q", got)
	}
	x.ok("run 4KiB", "schedule 0", "step", "xml", "text", "connections")
	for _, text := range []string{"dag", "instructions", "load " + file + " --ranks 3"} {
		x.bad(text)
	}
	x.ok("undo")
	x.bad("check")
}

// Settings hold for all commands until they are cleared.
func TestShellSettings(t *testing.T) {
	x := newTalk(t)
	x.ok(pair...)
	x.ok("settings --target rccl --slots 3")
	if got := x.ok("check"); !strings.Contains(got, "for rccl") {
		t.Errorf("got %q", got)
	}
	x.want("settings", "--target rccl --slots 3\n")
	x.ok("settings clear")
	x.want("settings", "no flags are set\n")
	if got := x.ok("run 4KiB"); !strings.Contains(got, "for native") {
		t.Errorf("got %q", got)
	}
	x.ok("time x = 1")
	if !regexp.MustCompile(`^mscclsh: that took [0-9.]+[nµm]?s\n$`).MatchString(x.err.String()) {
		t.Errorf("got %q", x.err.String())
	}
	x.want("x", "1\n")
}

func TestShellComplete(t *testing.T) {
	x := newTalk(t)
	x.ok(pair...)
	x.ok(`c.copy(1, "tmp", 0)`, "ranks = 2")
	for line, want := range map[string]string{
		"sched":                         "schedule",
		"ran":                           "range ranks",
		"x = ran":                       "range ranks",
		"c.":                            "c.buffer c.copy c.get_dst_index c.get_dst_rank c.get_origin_index c.get_origin_rank c.group c.index c.print_chunk_info c.rank c.reduce c.size c.split",
		"c.co":                          "c.copy",
		"p.topo.li":                     "p.topo.link p.topo.links",
		`chunk(0, "input", 0).re`:       ".reduce",
		`c.reduce(chunk(0, "x", 0)).gr`: ".group",
		`chunk(0, "`:                    "input output tmp",
		`c.copy(1, buffer = "t`:         "tmp",
		"c.copy(0, se":                  "sendtb =  set settings",
		"AllReduce(2, ch":               "check chr chunk chunk_factor = ",
		"MSCCLProgram(\"a\", thr":       "threadblock_policy = ",
		"run --dt":                      "--dtype",
		"run --dtype bf":                "bf16",
		"run c":                         "cpu cuda",
		"load @algorithms/allreduce_ri": "@algorithms/allreduce_ring.star @algorithms/allreduce_ring_channels.star",
		"load @algorithms/allgather_ring.star --ran": "--ranks",
		"instructions sy": "synchronize",
		"schedule ":       "0 1 full",
		"program ":        "pair",
		"help ref.c":      "ref.copy",
		"open MSCCLP":     "MSCCLProgram",
		"time sched":      "schedule",
		"print(\"sched":   "",
		"xyz":             "",
	} {
		_, got := x.s.Complete(line)
		if line == "load @algorithms/allreduce_ri" { // the library grows
			if len(got) == 0 || got[0] != "@algorithms/allreduce_ring.star" {
				t.Errorf("%q: got %q", line, got)
			}
			continue
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
