package ir_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mscclsh/mscclsh/ir"
)

// traceHead declares two ranks: rank 0 with a memory and a port channel to rank 1,
// a semaphore and two chunks of scratch, rank 1 with one memory channel and two
// chunks of scratch. A switch joins the outputs.
const traceHead = `onetrace "t"
collective allgather ranks 2 factor 1 split 1
topology none
protocol LL
policy auto instances 2 interleaved fusion
window min 16 max 1024
one-sided threads 512 align 32 double-scratch
group o: 0 1 ; t.star:2:1
loop unit 1024 chunks 1
gpu 0 scratch=2
channel memory 1
channel port 1 ; t.star:3:1
semaphore 1
gpu 1 scratch=2
channel memory 0
`

func parseTrace(t *testing.T, ops string) (*ir.OneTrace, error) {
	t.Helper()
	return ir.ParseOneTrace(strings.NewReader(traceHead+ops), "t.txt")
}

// Every kind of operation is read and written back as it was.
func TestOneTraceText(t *testing.T) {
	ops := `0 rank 0 put memory on 0 i[0] x1 -> 1.s[1] x1 tb 3 ; t.star:4:1
1 rank 0 pws port on 1 i[0] x1 -> 1.s[1] x1
2 rank 0 pwsf port on 1 i[0] x1 -> 1.s[1] x1 tb 0
3 rank 0 ppkt memory on 0 i[0] x1 -> 1.s[1] x1 packets tb 0 1 2
4 rank 0 ppkt port on 1 s[0] x1 packets -> 1.s[1] x1 packets tb 0
5 rank 0 rppkt memory on 0 s[0] x1 packets -> 1.s[1] x1 packets
6 rank 0 get memory on 0 1.i[0] x1 -> o[1] x1
7 rank 0 copy i[0] x1 -> o[0] x1 loop 0
8 rank 0 cpkt i[0] x1 -> s[0] x1 packets
9 rank 0 upkt s[0] x1 packets -> o[0] x1
10 rank 0 re min i[0] x1, o[0] x1 -> o[1] x1
11 rank 0 repkt i[0] x1, s[0] x1 packets, s[1] x1 packets -> o[1] x1
12 rank 0 rre memory sum on 0 i[0] x1, 1.i[0] x1 -> o[1] x1
13 rank 0 glre switch max on 0 group 0.o[0] x2 -> s[0] x2
14 rank 0 gstore switch on 0 s[0] x2 -> group 0.o[0] x2
15 rank 0 nop tb 1
16 rank 0 barrier tb 0 1
17 rank 0 barrier
18 rank 0 signal memory on 0 sync both
19 rank 0 rlxsignal memory on 0 tb 1 sync none
20 rank 1 wait memory on 0 sync before
21 rank 1 rlxwait memory on 0 sync after
22 rank 0 flush port on 1 sync both
23 rank 0 sem_acquire on 0 sync both
24 rank 0 sem_release on 0 sync both
`
	tr, err := parseTrace(t, ops)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(traceHead+ops, text(t, tr)); diff != "" {
		t.Error(diff)
	}
	if c := tr.GPUs[0].Channels; c[0].Pair != 0 || c[1].Pair != ir.None {
		t.Errorf("channels of rank 0 are paired as %v, want the memory channel alone with channel 0 of rank 1", c)
	}
	put := &tr.Ops[0]
	if tr.Pos(put.Pos).String() != "t.star:4:1" || tr.BlocksOf(put)[0] != 3 || tr.Destinations(put)[0].Rank != 1 {
		t.Errorf("operation 0 is %v", put)
	}
	if got := tr.OpString(3); got != "rank 0 ppkt memory on 0 i[0] x1 -> 1.s[1] x1 packets tb 0 1 2" {
		t.Errorf("operation 3 is %q", got)
	}
}

// What a trace can't be is refused with the reason.
func TestOneTraceRefuses(t *testing.T) {
	for _, tc := range []struct{ ops, want string }{
		{"0 rank 2 nop", "rank 2 is not one of 2"},
		{"0 rank 0 put port on 0 i[0] x1 -> 1.s[0] x1", "channel 0 is a memory channel"},
		{"0 rank 0 put memory on 2 i[0] x1 -> 1.s[0] x1", "there is no channel 2"},
		{"0 rank 0 put memory on 0 i[0] x1 -> 0.s[0] x1", "got group -1 and rank 0, want a remote rank"},
		{"0 rank 0 put memory on 0 i[0] x1", "put: got 0 destinations"},
		{"0 rank 0 put memory on 0 i[0] x1, i[0] x1 -> 1.s[0] x1, 1.s[1] x1", "want one move"},
		{"0 rank 0 put memory on 0 i[0] x1 -> 1.s[2] x1", "chunks 2 to 3 are not within the 2 of rank 1"},
		{"0 rank 0 put memory on 0 i[0] x1 -> 1.s[0] x2", "got sizes 1 and 2, want the same"},
		{"0 rank 0 ppkt memory on 0 i[0] x1 -> 1.s[0] x1", "got packets false, want true"},
		{"0 rank 0 cpkt i[0] x1 -> o[0] x1 packets", "packets are in scratch only"},
		{"0 rank 0 copy on 0 i[0] x1 -> o[0] x1", "it has no channel, got 0"},
		{"0 rank 0 copy sum i[0] x1 -> o[0] x1", "it reduces nothing"},
		{"0 rank 0 copy i[0] x1 -> o[0] x1 tb 65536", "got thread block 65536, want 0 to 65535"},
		{"0 rank 0 copy i[0] x1 -> o[0] x1 tb 1 2 1", "thread block 1 is named twice"},
		{"0 rank 0 signal memory on 0 tb 0 1 sync both", "got 2 thread blocks, want one"},
		{"0 rank 0 signal memory on 0", `want "sync"`},
		{"0 rank 0 sem_acquire on 1 sync both", "there is no semaphore 1"},
		{"0 rank 0 gstore switch on 1 o[0] x1 -> group 1.o[0] x1", "there is no group 1"},
		{"0 rank 0 gstore switch on 0 o[0] x1 -> group 0.i[0] x1", "want those of group 0"},
		{"0 rank 0 gstore switch on 0 o[0] x1 -> group 0.o[2] x1", "chunks 2 to 3 are not within the 2 of rank 0"},
		{"0 rank 0 copy i[0] x1 -> o[0] x1 loop 1", "there is no loop 1"},
		{"0 rank 0 nop loop 0\n1 rank 0 nop\n2 rank 0 nop loop 0", "operation 2: the operations of loop 0 don't stand together"},
		{"0 rank 0 pipeline", "is unknown"},
		{"0 rank 0 frob", `unknown name "frob"`},
		{"1 rank 0 nop", "want 0"},
		{"channel memory 1", "gpu 1 channel 1: got kind memory and peer 1"},
		{"semaphore -1", "want a number from 0"},
		{"gpu 2 scratch=0", "got 3 ranks, want 2"},
	} {
		_, err := parseTrace(t, tc.ops+"\n")
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s\n got %v\nwant %s", tc.ops, err, tc.want)
		}
	}
}

func TestOneTraceHeaderIsChecked(t *testing.T) {
	for _, tc := range []struct{ was, is, want string }{
		{"protocol LL", "protocol LL128", "a one-sided program has Simple or LL"},
		{"threads 512", "threads 0", "want a number from 1"},
		{"min 16 max 1024", "min 16 max 8", "sizes from 16 to 8 are no window"},
		{"group o: 0 1", "group o: 1 0", "group 0: ranks [1 0] are not ascending ranks of 2"},
		{"group o:", "group x:", `got buffer "x", want i, o or s`},
		{"unit 1024", "unit 0", "want a number from 1"},
		{"scratch=2", "scratch=134217729", "chunks in all buffers up to here"},
	} {
		_, err := ir.ParseOneTrace(strings.NewReader(strings.Replace(traceHead, tc.was, tc.is, 1)), "t.txt")
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", tc.is, err, tc.want)
		}
	}
}

// Only what is well formed is written.
func TestOneTraceIsCheckedBeforeItIsWritten(t *testing.T) {
	tr, err := parseTrace(t, "0 rank 0 nop\n")
	if err != nil {
		t.Fatal(err)
	}
	tr.Ops[0].Rank = 5
	var b strings.Builder
	if err := tr.WriteText(&b); err == nil || b.Len() > 0 {
		t.Errorf("got error %v after %d bytes", err, b.Len())
	}
}

func FuzzParseOneTrace(f *testing.F) {
	f.Add([]byte(traceHead + "0 rank 0 put memory on 0 i[0] x1 -> 1.s[1] x1 tb 3 ; t.star:4:1\n1 rank 0 glre switch max on 0 group 0.o[0] x2 -> s[0] x2\n"))
	fuzzText(f, ir.ParseOneTrace)
}
