package plan_test

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files of this package")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func file(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func read(text string, literal bool) (*plan.Imported, error) {
	return plan.Read(strings.NewReader(text), plan.Options{File: "f.json", Literal: literal})
}

func mustRead(t *testing.T, text string, literal bool) *plan.Imported {
	t.Helper()
	im, err := read(text, literal)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// two.json uses each kind of list, out of order and with indices that differ from
// what they stand for; two.program was checked by hand against it.
func TestReadCurrent(t *testing.T) {
	im := mustRead(t, file(t, "two.json"), false)
	golden(t, "two.program", programText(t, im.Program))
	if im.Dialect != plan.Current || len(im.Notes) != 0 || im.Bytes == 0 {
		t.Errorf("got dialect %s, %d bytes and notes\n%v", im.Dialect, im.Bytes, im.Notes)
	}
	// A switch channel that says buff is of the early dialect, and means the same.
	text := strings.ReplaceAll(file(t, "two.json"), "buffer_type", "buff")
	early := mustRead(t, text, false)
	if early.Dialect != plan.Early || len(early.Notes) != 1 {
		t.Errorf("got dialect %s and notes %v, want %s and one", early.Dialect, early.Notes, plan.Early)
	}
	if diff := cmp.Diff(programText(t, withoutPlaces(im.Program)), programText(t, withoutPlaces(early.Program))); diff != "" {
		t.Error(diff)
	}
}

// old.json has every operation of the first dialect once.
func TestReadOriginal(t *testing.T) {
	im := mustRead(t, file(t, "old.json"), false)
	golden(t, "old.program", programText(t, im.Program))
	if im.Dialect != plan.Original {
		t.Errorf("got dialect %s", im.Dialect)
	}
	var codes []string
	for _, n := range im.Notes {
		codes = append(codes, n.Code)
	}
	if diff := cmp.Diff([]string{"plan-dialect", "plan-output", "plan-nop"}, codes); diff != "" {
		t.Error(diff)
	}
}

// minimal is a plan of two ranks, of which %s is replaced by operations of rank 0.
const minimal = `{"name": "m", "collective": "allreduce", "protocol": "Simple", "inplace": true, "gpus": [
{"id": 0, "input_chunks": 4, "output_chunks": 4, "scratch_chunks": 2, "threadblocks": [{"id": 0, "ops": [
%s
], "channels": [{"channel_type": "memory", "channel_ids": [0]}, {"channel_type": "port", "channel_ids": [0]}],
"remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}, {"access_channel_type": "port", "remote_buffer_ids": [0]}]}],
"channels": [{"channel_type": "memory", "connected_to": [1]}, {"channel_type": "port", "connected_to": [1]}],
"remote_buffers": [{"rank": 1, "type": "i", "access_channel_types": ["memory", "port"]}], "semaphores": [{"init_value": 0}]},
{"id": 1, "input_chunks": 4, "output_chunks": 4, "scratch_chunks": 2, "threadblocks": [], "channels": [], "remote_buffers": []}]}`

func with(ops string) string { return strings.Replace(minimal, "%s", ops, 1) }

func local(buf string, index int) string {
	return `{"type": "` + buf + `", "index": ` + string(rune('0'+index)) + `, "size": 1}`
}

func remote(index int) string {
	return `{"buffer_id": 0, "index": ` + string(rune('0'+index)) + `, "size": 1}`
}

func move(name, via, src, dst string) string {
	return `{"name": "` + name + `", "channel_type": "` + via + `", "channel_ids": [0], "src_buff": [` + src + `], "dst_buff": [` + dst + `]}`
}

// What the executor makes of an operation where it differs from what it says.
func TestLiteral(t *testing.T) {
	flush := `{"name": "flush", "channel_type": "port", "channel_ids": [0]}`
	for _, c := range []struct{ op, strict, literal, code string }{
		{flush, "flush port on 1", "", "plan-literal-flush"},
		{move("get", "memory", remote(1), local("s", 0)), "get memory 1.i[1] x1 -> s[0] x1", "get memory 1.i[0] x1 -> s[1] x1", "plan-literal-get"},
		{move("get", "memory", remote(1), local("s", 1)), "get memory 1.i[1] x1 -> s[1] x1", "get memory 1.i[1] x1 -> s[1] x1", ""},
		{move("put", "memory", local("i", 0)+","+local("s", 1), remote(0)+","+remote(1)),
			"put memory i[0] x1, s[1] x1 -> 1.i[0] x1, 1.i[1] x1", "put memory i[0] x1, i[1] x1 -> 1.i[0] x1, 1.i[1] x1", "plan-literal-put"},
		{move("put", "port", local("s", 0), remote(0)), "put port on 1 s[0] x1 -> 1.i[0] x1", "put port on 1 s[0] x1 -> 1.i[0] x1", ""},
		{strings.Replace(move("re", "none", local("i", 0)+","+local("i", 1), local("o", 0)), `"name"`, `"reduce_op": "min", "name"`, 1),
			"re min i[0] x1, i[1] x1 -> o[0] x1", "re sum i[0] x1, i[1] x1 -> o[0] x1", "plan-literal-reduce"},
	} {
		for _, literal := range []bool{false, true} {
			want, code := c.strict, ""
			if literal {
				want, code = c.literal, c.code
			}
			im := mustRead(t, with(c.op), literal)
			got, gotCode := "", ""
			if len(im.Program.OneSided.Ops) > 0 {
				got = im.Program.OpString(0, 0)
			}
			if len(im.Notes) > 0 {
				gotCode = im.Notes[0].Code
			}
			if got != want || gotCode != code {
				t.Errorf("literal %t: got %q with note %q, want %q with %q", literal, got, gotCode, want, code)
			}
		}
	}
	if _, err := read(file(t, "old.json"), true); err == nil || !strings.Contains(err.Error(), "present executor cannot load") {
		t.Errorf("old dialect: got %v", err)
	}
	many := with(strings.Repeat(`{"name": "nop"},`, 64) + `{"name": "nop"}`)
	if _, err := read(many, false); err != nil {
		t.Errorf("65 operations: %v", err)
	}
	var l diag.List
	if _, err := read(many, true); !errors.As(err, &l) || l[0].Code != "plan-limit" {
		t.Errorf("65 operations literally: got %v, want code plan-limit", err)
	}
}

func TestReadErrors(t *testing.T) {
	swap := func(old, new string) string {
		text := with(`{"name": "nop"}`)
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in the plan", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for _, c := range []struct{ text, code, want string }{
		{"", "plan-syntax", "f.json:1:1: got the end of the file, want a plan"},
		{"[]", "plan-syntax", "f.json:1:1: got a list, want a plan"},
		{"\x00\x01\x02", "plan-syntax", `f.json:1:1: got "\x00", want a plan`},
		{"{}", "plan-value", `f.json:1:1: the plan has no "name"`},
		{with(`{"name": "nop"}`)[:500], "plan-syntax", `the string does not end`},
		{swap(`"name": "m"`, `"name": "m", "name": "n"`), "plan-syntax", `f.json:1:15: second "name" in one object`},
		{swap(`"inplace": true`, `"inplace": 1`), "plan-value", `got "1", want true or false`},
		{swap(`"input_chunks": 4`, `"input_chunks": NaN`), "plan-value", `f.json:2:27: got "NaN", want a number from 0 to 2147483647`},
		{swap(`"input_chunks": 4`, `"input_chunks": 4.5`), "plan-value", `got "4.5", want a number`},
		{swap(`"input_chunks": 4`, `"input_chunks": -4`), "plan-value", `got "-4", want a number`},
		{swap(`"input_chunks": 4`, `"input_chunks": 5`), "plan-value", "allreduce on 2 ranks: got several numbers of input and 4 output chunks a rank"},
		{swap(`"input_chunks": 4`, `"inputChunks": 4`), "plan-value", "of different dialects"},
		{strings.ReplaceAll(with(""), `_chunks": 4`, `_chunks": 1000000000`), "plan-value", "chunk factor 1000000000 times split 1 on 2 ranks is out of range"},
		{strings.ReplaceAll(with(""), `_chunks": 2`, `_chunks": 1000000000`), "plan-value", "2000000016 chunks in all buffers, want at most"},
		{strings.ReplaceAll(strings.Replace(with(""), "allreduce", "test", 1), `_chunks": 4`, `_chunks": 1000000000`), "plan-value", "chunks in all inputs and outputs, want at most"},
		{swap(`"allreduce"`, `"allgather"`), "plan-value", "allgather on 2 ranks: got 4 input and 4 output chunks a rank"},
		{swap(`"id": 1`, `"id": 0`), "plan-value", "f.json:8:1: GPU 1 has id 0, want them in order from 0"},
		{swap(`[{"id": 0`, `[{"id": 1`), "plan-value", "thread block 0 has id 1"},
		{swap(`"connected_to": [1]`, `"connected_to": [0]`), "plan-value", "a channel of rank 0 goes to rank 0"},
		{swap(`"connected_to": [1]`, `"connected_to": [2]`), "plan-value", "goes to rank 2, want another one of 2"},
		{swap(`"channel_ids": [0]`, `"channel_ids": [1]`), "plan-value", "rank 0 has no memory channel 1"},
		{swap(`"remote_buffer_ids": [0]`, `"remote_buffer_ids": [7]`), "plan-value", "rank 0 has no remote buffer 7"},
		{swap(`["memory", "port"]`, `["port"]`), "plan-value", "rank 0 has no remote buffer 0 that is reached via a memory channel"},
		{swap(`"rank": 1`, `"rank": 9`), "plan-value", "remote buffer 0 is of rank 9"},
		{swap(`"init_value"`, `"value"`), "plan-value", `the semaphore has no "init_value"`},
		{swap(`"channel_type": "memory"`, `"channel_type": "optic"`), "plan-value", `got "optic", want channel type memory, port, switch or none`},
		{swap(`"gpus"`, `"min_message_size": 9, "max_message_size": 8, "gpus"`), "plan-value", "no size is between"},
		{swap(`{"name": "nop"}`, `{"name": "glre", "channel_type": "switch"}`), "plan-op", "f.json:3:1: MSCCL++'s executor has no operation \"glre\"\n    its compiler writes glre"},
		{with(`{"name": "nop"}, {"name": "rrcs"}`), "plan-op", `f.json:3:18: MSCCL++'s executor has no operation "rrcs"`},
		{with(`{}`), "plan-value", `f.json:3:1: the operation has no "name"`},
		{with(move("put", "switch", local("i", 0), remote(0))), "plan-value", "put: got channel type switch, want memory"},
		{with(move("pws", "memory", local("i", 0), remote(0))), "plan-value", "pws: got channel type memory, want port"},
		{with(move("put", "memory", remote(0), remote(0))), "plan-value", "put: got a remote buffer, want a local one"},
		{with(move("put", "memory", local("i", 0), local("o", 0))), "plan-value", "put: got a local buffer, want a remote one"},
		{with(move("put", "memory", local("i", 0), "")), "plan-value", "put: got 0 destinations"},
		{with(move("put", "port", local("i", 0)+","+local("i", 1), remote(0)+","+remote(1))), "plan-value", "put: got 1 channels"},
		{with(move("copy", "none", `{"type": "i", "index": 0, "size": 2}`, local("o", 0))), "plan-value", "copy: got sizes 2 and 1"},
		{with(move("cpkt", "none", local("i", 0), local("s", 0))), "plan-value", "packets need protocol LL"},
		{with(move("copy", "none", `{"type": "i", "buffer_id": 0, "index": 0, "size": 2}`, local("o", 0))), "plan-value", "more than one of type, buffer_id"},
		{with(move("put", "memory", local("i", 0), `{"buffer_id": 1, "index": 0, "size": 1}`)), "plan-value", "no remote buffer 1 via memory channels"},
		{with(`{"name": "signal", "channel_type": "memory", "channel_ids": [1]}`), "plan-value", "the thread block has no memory channel 1"},
		{with(`{"name": "signal", "channel_type": "memory"}`), "plan-value", "signal: got 0 channels"},
		{with(`{"name": "sem_acquire", "semaphore_ids": [1]}`), "plan-value", "there is no channel, semaphore or barrier 1"},
		{with(`{"name": "barrier", "barrier_id": 0}`), "plan-value", "barrier: it needs barrier_id and num_threadblocks"},
		{with(`{"name": "pipeline", "ops": []}`), "plan-value", `pipeline: it has no "iter_context"`},
		{with(`{"name": "pipeline", "iter_context": {"unit_size": 1, "num_chunks": 1}, "ops": [{"name": "pipeline", "ops": []}]}`), "plan-value", "a pipeline within a pipeline"},
		{with(`{"name": "nop", "tbg_info": {"tb_id": 2, "tbg_size": 2}}`), "plan-value", "thread block 2 of a group of 2"},
	} {
		_, err := read(c.text, false)
		var m *diag.Message
		if !errors.As(err, &m) || m.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s: %s", err, c.code, c.want)
		}
	}
	if _, err := plan.Read(strings.NewReader(with("")), plan.Options{File: "f.json", MaxFile: 100}); err == nil || !strings.Contains(err.Error(), "more than 100 bytes") {
		t.Errorf("a long file: got %v", err)
	}
}

// Sizes by hand, from the table in MSCCL++'s documentation of collectives.
func TestCollectives(t *testing.T) {
	for _, c := range []struct {
		name    string
		in, out string
		inPlace string
		want    string // kind, factor, and whose memory input 0 and output 0 of rank 1 are; or the error
	}{
		{"allreduce", "4", "4", "false", "allreduce 4 i[0] o[0]"},
		{"allreduce", "4", "0", "true", "allreduce 4 i[0] i[0]"},
		{"allreduce", "4", "0", "false", "got 4 input and 0 output"},
		{"allgather", "3", "6", "true", "allgather 3 o[3] o[0]"},
		{"reducescatter", "6", "3", "true", "reduce_scatter 3 i[0] i[3]"},
		{"reducescatter", "6", "3", "false", "reduce_scatter 3 i[0] o[0]"},
		{"reducescatter", "5", "2", "false", "got 5 input and 2 output"},
		{"alltoall", "4", "4", "true", "alltoall 2 i[0] i[0]"},
		{"alltoall", "3", "3", "true", "got 3 input"},
		{"broadcast", "2", "2", "false", "broadcast 1 i[0] o[0]"},
		{"test", "2", "1", "false", "test 1 i[0] o[0]"},
	} {
		text := strings.ReplaceAll(with(""), `"output_chunks": 4`, `"output_chunks": `+c.out)
		text = strings.ReplaceAll(text, `"input_chunks": 4`, `"input_chunks": `+c.in)
		text = strings.Replace(strings.Replace(text, "true", c.inPlace, 1), `"allreduce"`, `"`+c.name+`"`, 1)
		im, err := read(text, false)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %s", c.name, err, c.want)
			}
			continue
		}
		coll := im.Program.Coll
		place := func(b ir.BufferID) string {
			b, i := coll.Canon(1, b, 0)
			return " " + map[ir.BufferID]string{ir.Input: "i", ir.Output: "o"}[b] + "[" + string(rune('0'+i)) + "]"
		}
		if got := coll.String() + " " + string(rune('0'+coll.ChunkFactor)) + place(ir.Input) + place(ir.Output); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// Who sends to whom is found from where data can flow: here from rank 0 to rank
// 1 through scratch, and nothing to rank 0.
func TestSendRecv(t *testing.T) {
	text := strings.Replace(strings.Replace(with(
		move("put", "memory", local("i", 2), remote(1))), `"rank": 1, "type": "i"`, `"rank": 1, "type": "s"`, 1), "allreduce", "sendrecv", 1)
	text = strings.Replace(text, "true", "false", 1)
	text = strings.Replace(text, `"threadblocks": []`, `"threadblocks": [{"id": 0, "channels": [], "ops": [`+move("copy", "none", local("s", 1), local("o", 3))+`]}]`, 1)
	custom := mustRead(t, text, false).Program.Coll.Custom
	want := [][][]ir.Contribution{{nil, nil, nil, nil}, {{{Rank: 0, Index: 0}}, {{Rank: 0, Index: 1}}, {{Rank: 0, Index: 2}}, {{Rank: 0, Index: 3}}}}
	if diff := cmp.Diff(want, custom.Expect); diff != "" {
		t.Error(diff)
	}
}

// Whatever is accepted has a text, and what is written reads back the same.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"two.json", "old.json"} {
		f.Add([]byte(file(f, name)), false)
	}
	f.Add([]byte(with(move("put", "port", local("s", 0), remote(0)))), true)
	f.Add([]byte(strings.Replace(with(""), "allreduce", "sendrecv", 1)), false)
	f.Add([]byte(`{"name": "", "collective": "own", "protocol": "", "inplace": true, "gpus": [{"id": 0, "input_chunks": 2, "output_chunks": 0,`+
		`"scratch_chunks": 0, "threadblocks": [], "channels": []}]}`), false)
	f.Fuzz(func(t *testing.T, data []byte, literal bool) {
		im, err := plan.Read(bytes.NewReader(data), plan.Options{File: "f", Literal: literal})
		if err != nil {
			return
		}
		programText(t, im.Program)
		var first bytes.Buffer
		if plan.Write(&first, im.Program) != nil {
			return
		}
		again, err := plan.Read(bytes.NewReader(first.Bytes()), plan.Options{File: "again"})
		if err != nil {
			t.Fatalf("%v\n%s", err, first.String())
		}
		was, now := programText(t, withoutPlaces(im.Program)), programText(t, withoutPlaces(again.Program))
		if im.Dialect == plan.Current && was != now {
			t.Fatal(cmp.Diff(was, now))
		}
	})
}

// Files with a few bytes changed, dropped or repeated are read or refused, and
// never worse. A fixed seed: the fuzz target is for finding more.
func TestSpoiledFiles(t *testing.T) {
	seeds := []string{file(t, "two.json"), file(t, "old.json")}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1500 {
		data := []byte(seeds[r.IntN(len(seeds))])
		for range 1 + r.IntN(3) {
			at := r.IntN(len(data) - 20)
			switch r.IntN(4) {
			case 0:
				data[at] = byte(r.IntN(256))
			case 1:
				data[at] = byte('0' + r.IntN(10))
			case 2:
				data = slices.Delete(data, at, at+r.IntN(20))
			case 3:
				data = slices.Insert(data, at, data[at:at+r.IntN(20)]...)
			}
		}
		im, err := plan.Read(bytes.NewReader(data), plan.Options{File: "f.json"})
		if err != nil {
			if m := diag.Messages(err); len(m) == 0 || m[0].Code == "" || m[0].Pos.File != "f.json" {
				t.Fatalf("got %v, want a message with code and place\n%s", err, data)
			}
			continue
		}
		programText(t, im.Program)
	}
}
