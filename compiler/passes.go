package compiler

import (
	"context"
	"fmt"
	"strings"
)

// pass is one row of the pipeline. Optional ones can be switched off; off, if
// there, does the little that later passes rely on.
type pass struct {
	name     string
	doc      string
	optional bool
	run      func(context.Context, *state) error
	off      func(*state) error
	show     func(*state, *Stage)
}

func showChunks(s *state, st *Stage)  { st.Chunks = s.chunks }
func showBase(s *state, st *Stage)    { st.Instrs = s.base }
func showFused(s *state, st *Stage)   { st.Instrs = s.fused }
func showProgram(s *state, st *Stage) { st.Program = s.program() }

// passes is the pipeline, in order.
var passes []pass

func init() {
	passes = []pass{
		{name: "canonical", doc: "let all ranks add in one order, if that is asked for", optional: true,
			run: canonical, show: func(s *state, st *Stage) { st.Chunks = s.source }},
		{name: "replicate", doc: "split chunks and operations into instances, each with its own channels",
			run: replicate, show: showChunks},
		{name: "split", doc: "cut counts that the target or the slots can't hold", optional: true,
			run: splitCounts, show: showChunks},
		{name: "lower", doc: "turn operations into sends, receives and local steps",
			run: lower, show: showBase},
		{name: "forward", doc: "let values skip scratch: receive into place, receive and reduce in one", optional: true,
			run: forward, off: forwardOff, show: showFused},
		{name: "fuse", doc: "join a receive and the send of what it brought: rcs, rrs, rrcs", optional: true,
			run: fuse, show: showFused},
		{name: "channels", doc: "give every message a channel; take back fusions that none can hold",
			run: assignChannels, show: showFused},
		{name: "threadblocks", doc: "give both ends of every connection one thread block",
			run: assignThreadBlocks, show: showFused},
		{name: "order", doc: "order every thread block along one run that fits the slots",
			run: order, show: showFused},
		{name: "synchronize", doc: "turn dependencies between thread blocks into waits",
			run: synchronize, show: showProgram},
		{name: "reduce", doc: "drop waits that other waits and messages imply", optional: true,
			run: reduceWaits, show: showProgram},
		{name: "scratch", doc: "lay out scratch a rank, reusing what is dead",
			run: layOutScratch, show: showProgram},
		{name: "emit", doc: "write the steps, with nops for a second wait",
			run: emit, show: showProgram},
	}
	for _, c := range constraints {
		if passIndex(c.before) < 0 || passIndex(c.after) < 0 || passIndex(c.before) >= passIndex(c.after) {
			panic(fmt.Sprintf("compiler: pass %s must come before %s: %s", c.before, c.after, c.why))
		}
	}
}

// constraints are the orders that the table must keep, with the reason; they
// are verified when the program starts.
var constraints = []struct{ before, after, why string }{
	{"canonical", "replicate", "chains are found on the chunks that the script names"},
	{"replicate", "split", "a count is final only once its chunk is"},
	{"replicate", "lower", "instances of mixed counts are consistent on chunks only"},
	{"split", "lower", "both halves of a message must be cut alike"},
	{"lower", "forward", "it works on receives and local steps"},
	{"forward", "fuse", "a receive that found its place can be joined with a send"},
	{"fuse", "channels", "a fused step needs one channel on both sides"},
	{"channels", "threadblocks", "connections are per channel"},
	{"threadblocks", "order", "a thread block runs one step at a time"},
	{"order", "synchronize", "only steps of other thread blocks are waited for"},
	{"synchronize", "reduce", "there is nothing to drop before"},
	{"reduce", "scratch", "memory is reused only along waits that stay"},
	{"scratch", "emit", "offsets are final"},
}

// PassInfo describes a pass to users.
type PassInfo struct {
	Name     string
	Doc      string
	Required bool // can't be switched off
}

// Passes lists the pipeline in order.
func Passes() []PassInfo {
	infos := make([]PassInfo, len(passes))
	for i, p := range passes {
		infos[i] = PassInfo{p.name, p.doc, !p.optional}
	}
	return infos
}

func passIndex(name string) int {
	for i := range passes {
		if passes[i].name == name {
			return i
		}
	}
	return -1
}

func passNames() string {
	names := make([]string, len(passes))
	for i := range passes {
		names[i] = passes[i].name
	}
	return strings.Join(names, ", ")
}

func optionalNames() string {
	var names []string
	for _, p := range passes {
		if p.optional {
			names = append(names, p.name)
		}
	}
	return strings.Join(names, ", ")
}
