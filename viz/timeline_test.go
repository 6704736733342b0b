package viz_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/viz"
)

// entries reads a trace as a viewer would: by the format's own names.
func entries(t *testing.T, text []byte) (about map[string]string, list []map[string]any) {
	t.Helper()
	var file struct {
		Unit   string            `json:"displayTimeUnit"`
		About  map[string]string `json:"otherData"`
		Events []map[string]any  `json:"traceEvents"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if file.Unit != "ns" {
		t.Errorf("got unit %q", file.Unit)
	}
	return file.About, file.Events
}

func only(list []map[string]any, phases string) []map[string]any {
	var out []map[string]any
	for _, e := range list {
		if strings.Contains(phases, e["ph"].(string)) {
			out = append(out, e)
		}
	}
	return out
}

func TestTimeline(t *testing.T) {
	p := parsed(t, ir.ParseProgram, "program "+header+steps)
	events := []ir.Event{
		{Rank: 0, Step: 0, Begin: 0, End: 1500},
		{Rank: 0, Step: 0, Tile: 1, Begin: 1600, End: 2001},
		{Rank: 1, Step: 0, Begin: 250, End: 2750},
		{Rank: 1, TB: 1, Step: 0, Begin: 2750, End: 2750},
		{Rank: 2, Step: 0, Begin: 7, End: 1002007},
	}
	var b bytes.Buffer
	if err := viz.Timeline(&b, p, events, [][2]string{{"program", `a "b"`}, {"bytes", "64"}}); err != nil {
		t.Fatal(err)
	}
	about, list := entries(t, b.Bytes())
	if diff := cmp.Diff(map[string]string{"program": `a "b"`, "bytes": "64"}, about); diff != "" {
		t.Error(diff)
	}
	// A name and a place in the order of each of 3 ranks and their 4 thread blocks.
	if n := len(only(list, "M")); n != 14 {
		t.Errorf("got %d entries of names, want 14", n)
	}
	want := []map[string]any{
		{"ph": "X", "name": "s", "pid": 0.0, "tid": 0.0, "ts": 0.0, "dur": 1.5, "args": map[string]any{"step": 0.0, "tile": 0.0,
			"does": "s i[0] x1 to 1 at s[0]", "to": 1.0, "channel": 0.0, "source": "input[0:1]", "at": "relay.star:4:9"}},
		{"ph": "X", "name": "s", "pid": 0.0, "tid": 0.0, "ts": 1.6, "dur": 0.401, "args": map[string]any{"step": 0.0, "tile": 1.0,
			"does": "s i[0] x1 to 1 at s[0]", "to": 1.0, "channel": 0.0, "source": "input[0:1]", "at": "relay.star:4:9"}},
		{"ph": "X", "name": "rcs", "pid": 1.0, "tid": 0.0, "ts": 0.25, "dur": 2.5, "args": map[string]any{"step": 0.0, "tile": 0.0,
			"does": "rcs -> s[0] x1 from 0 to 2 at o[0] post", "from": 0.0, "to": 2.0, "channel": 0.0, "destination": "scratch[0:1]"}},
		{"ph": "X", "name": "cpy", "pid": 1.0, "tid": 1.0, "ts": 2.75, "dur": 0.0, "args": map[string]any{"step": 0.0, "tile": 0.0,
			"does": "cpy i[1] -> s[0] x1 wait 0:0 9:9", "source": "input[1:2]", "destination": "scratch[0:1]"}},
		{"ph": "X", "name": "r", "pid": 2.0, "tid": 0.0, "ts": 0.007, "dur": 1002.0, "args": map[string]any{"step": 0.0, "tile": 0.0,
			"does": "r -> o[0] x1 from 1", "from": 1.0, "channel": 0.0, "destination": "output[0:1]"}},
	}
	if diff := cmp.Diff(want, only(list, "X")); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
	// Rank 0's first send reaches rank 1, which hands it on to rank 2; the send of tile 1
	// has no receive among the events.
	wantArrows := []map[string]any{
		{"ph": "s", "name": "message", "cat": "message", "id": 1.0, "pid": 0.0, "tid": 0.0, "ts": 0.0},
		{"ph": "f", "name": "message", "cat": "message", "id": 1.0, "pid": 1.0, "tid": 0.0, "ts": 2.749, "bp": "e"},
		{"ph": "s", "name": "message", "cat": "message", "id": 2.0, "pid": 1.0, "tid": 0.0, "ts": 0.25},
		{"ph": "f", "name": "message", "cat": "message", "id": 2.0, "pid": 2.0, "tid": 0.0, "ts": 1002.006, "bp": "e"},
	}
	if diff := cmp.Diff(wantArrows, only(list, "sf")); diff != "" {
		t.Errorf("arrows (-want +got):\n%s", diff)
	}
	if err := viz.Timeline(brokenPipe{}, p, events, nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v, want the writer's error", err)
	}
}

// A run of a plan has the plan's operations, by their number among all of them.
func TestTimelineOfPlan(t *testing.T) {
	p := parsed(t, ir.ParseProgram, `program "swap"
collective custom ranks 2 factor 1 split 1
input 1*2
output 1*2
topology none
protocol Simple
policy auto instances 1
window min 0 max 0
one-sided threads 32 align 16
gpu 0 input=1 output=1 scratch=0
channels memory 1
tb 0
  0 put memory i[0] x1 -> 1.o[0] x1 ; swap.star:2:5
gpu 1 input=1 output=1 scratch=0
channels memory 0
tb 0
  0 nop
`)
	var b bytes.Buffer
	if err := viz.Timeline(&b, p, []ir.Event{{Rank: 0, Step: 0, Begin: 1000, End: 2000}, {Rank: 1, Step: 1, Begin: 500, End: 600}}, nil); err != nil {
		t.Fatal(err)
	}
	_, list := entries(t, b.Bytes())
	want := []map[string]any{
		{"ph": "X", "name": "put", "pid": 0.0, "tid": 0.0, "ts": 1.0, "dur": 1.0, "args": map[string]any{"step": 0.0, "tile": 0.0,
			"does": "put memory i[0] x1 -> 1.o[0] x1", "at": "swap.star:2:5"}},
		{"ph": "X", "name": "nop", "pid": 1.0, "tid": 0.0, "ts": 0.5, "dur": 0.1,
			"args": map[string]any{"step": 1.0, "tile": 0.0, "does": "nop"}},
	}
	if diff := cmp.Diff(want, only(list, "Xsf")); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
}

func TestTimelineRefuses(t *testing.T) {
	p := parsed(t, ir.ParseProgram, "program "+header+steps)
	for _, e := range []ir.Event{{Rank: 3}, {Rank: -1}, {TB: 1}, {Step: 2}, {Step: -1}} {
		if err := viz.Timeline(io.Discard, p, []ir.Event{e}, nil); err == nil {
			t.Errorf("%+v was taken", e)
		}
	}
}
