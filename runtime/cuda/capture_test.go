package cuda

import (
	"bytes"
	"os"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// A graph of two programs runs the first before the second, which copies on what the
// first has copied; it is of no more use when one of them has moved its tables.
func TestGraphOfPrograms(t *testing.T) {
	path := "lib/build/libmscclsh_cuda_host.so"
	if named := os.Getenv("MSCCLSH_CUDA_LIB"); named != "" {
		path = named
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there: make cuda-host builds it", path)
	}
	lib, err := Open([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	comm, err := lib.NewComm(1, CommOptions{})
	if err != nil {
		t.Fatal(err)
	}
	st := ir.Step{Kind: ir.Copy, Src: ir.Place{Buf: ir.Input}, Dst: ir.Place{Buf: ir.Output}, Count: 1, SendPeer: ir.None, RecvPeer: ir.None}
	p := &ir.Program{Spec: &ir.Spec{Name: "copy", Coll: ir.NewCollective(ir.AllGather, 1, 1, false), Instances: 1},
		Transport: ir.Transport{Slots: 1, SlotBytes: 64},
		GPUs:      []ir.GPU{{Input: 1, Output: 1, TBs: []ir.ThreadBlock{{Send: ir.None, Recv: ir.None, Steps: []ir.Step{st}}}}}}
	var between uintptr // the first one's output and the second one's input
	must := func(what string, f *failure) {
		t.Helper()
		if f != nil {
			t.Fatalf("%s: %s", what, f.text)
		}
	}
	must("alloc", lib.call(func(e *byte, size int64) int32 { return lib.alloc(comm.handle, 0, 64, &between, e, size) }))
	var all [2]*runner
	for i := range all {
		x, err := comm.Load(p)
		if err != nil {
			t.Fatal(err)
		}
		if all[i], err = x.newRunner(Options{Bytes: 64, DType: runtime.FP32}); err != nil {
			t.Fatal(err)
		}
		shared := int32([]ir.BufferID{ir.Output, ir.Input}[i])
		must("attach", lib.call(func(e *byte, size int64) int32 { return lib.attach(x.handle, 0, shared, between, 64, e, size) }))
		if err := all[i].prepareSize(0); err != nil {
			t.Fatal(err)
		}
	}
	handles := []uintptr{all[0].handle, all[1].handle}
	capture := func(launches int32) *failure {
		return lib.call(func(e *byte, size int64) int32 { return lib.captureMany(&handles[0], 2, launches, e, size) })
	}
	replay := func() *failure {
		ns := 0.0
		return lib.call(func(e *byte, size int64) int32 { return lib.replay(handles[0], 1, &ns, e, size) })
	}
	want, got := bytes.Repeat([]byte("words"), 13)[:64], make([]byte, 64)
	must("upload", lib.call(func(e *byte, size int64) int32 { return lib.upload(handles[0], 0, 0, 0, &want[0], 64, e, size) }))
	must("capture", capture(1))
	must("replay", replay())
	must("download", lib.call(func(e *byte, size int64) int32 { return lib.download(handles[1], 0, 1, 0, &got[0], 64, e, size) }))
	if !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := all[1].prepareSize(0); err != nil {
		t.Fatal(err)
	}
	if f := replay(); f == nil || f.text != "a program of the graph was prepared anew or unloaded" {
		t.Errorf("prepared anew: got %v", f)
	}
	must("capture", capture(3))
	must("replay", replay())
	if err := all[1].Close(); err != nil {
		t.Fatal(err)
	}
	if f := replay(); f == nil || f.text != "a program of the graph was prepared anew or unloaded" {
		t.Errorf("unloaded: got %v", f)
	}
	if f := lib.call(func(e *byte, size int64) int32 { return lib.captureMany(&handles[0], 0, 1, e, size) }); f == nil || f.result != resultInvalid {
		t.Errorf("no programs: got %v", f)
	}
	if err := all[0].Close(); err != nil {
		t.Error(err)
	}
	must("free", lib.call(func(e *byte, size int64) int32 { return lib.release(comm.handle, 0, between, e, size) }))
	if err := comm.Close(); err != nil {
		t.Error(err)
	}
}
