package cuda

import (
	"bytes"
	goruntime "runtime"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// The structures of mscclsh_cuda.h, field by field. All pointers are to memory that
// a call reads before it returns.
type (
	cCommOptions struct {
		devices             *int32
		ranks, flagModulus  int32
		watchdogNanoseconds int64
		_                   *int32  // processOf; nil: all ranks are in this process, and the rest is 0
		_, _                uintptr // exchange and context, of C
		_, _                int32   // processes and process
	}
	cStep struct {
		kind, post         int32
		srcBuf, srcChunk   int32
		dstBuf, dstChunk   int32
		count              int32
		sendPeer, recvPeer int32
		channel            int32
		depStart, depEnd   int32
	}
	cDep    struct{ tb, step int32 }
	cDivide struct{ rank, chunk, count, divisor int32 }

	cProgram struct {
		tbs, stepsPerTB            *int32
		steps                      *cStep
		deps                       *cDep
		chunks, baseBuf, baseChunk *int32
		divides                    *cDivide
		nDeps, nDivides, slotBytes int64
		slots, protocol            int32
	}
	cSize struct {
		chunkBytes        int64
		regime, dtype, op int32
		threads, misalign int32
		trace             int32
	}
	cPrepared struct {
		tileBytes, tiles             int64
		threads, registers           int32
		blocksNeeded, blocksResident int32
	}
	cWait struct {
		tile, want, have        int64
		rank, tb, step          int32
		waitsFor, peer, channel int32
		timedOut, _             int32
	}
	cHeld   struct{ rank, chunk, count, _ int32 }
	cPart   struct{ rank, chunk, times, _ int32 }
	cResult struct {
		rank, buf, chunk, count int32
		firstPart               int64
		parts, _                int32
	}
	cExpectation struct {
		held                    *cHeld
		results                 *cResult
		parts                   *cPart
		nHeld, nResults, nParts int64
		dtype, op               int32
	}
	cVerdict struct {
		compared, wrong, element int64
		_, want, have            uint64 // the first is the seed
		rank, buf, chunk, _      int32
	}
	cDevice struct {
		name                          [128]byte
		memory                        int64
		multiprocessors, major, minor int32
		_                             int32
	}
)

// abiVersion is MSCCLSH_ABI.
const abiVersion = 5

// What a call returns: MSCCLSH_E*.
const (
	resultOK      = 0
	resultInvalid = 1
	resultRefused = 2
	resultDevice  = 3
	resultStuck   = 4
	resultDead    = 5
)

// Library is a loaded libmscclsh_cuda. Its communicators may be used from several
// goroutines, each from one at a time.
type Library struct {
	lib   dynamic
	build string

	abi         func() int32
	buildText   func() string
	deviceCount func(count *int32, err *byte, size int64) int32
	deviceInfo  func(device int32, info *cDevice, err *byte, size int64) int32
	create      func(o *cCommOptions, comm *uintptr, err *byte, size int64) int32
	destroy     func(comm uintptr, err *byte, size int64) int32
	load        func(comm uintptr, p *cProgram, prog *uintptr, err *byte, size int64) int32
	oneLoad     func(comm uintptr, p *cOneProgram, prog *uintptr, err *byte, size int64) int32
	unload      func(prog uintptr, err *byte, size int64) int32
	prepare     func(prog uintptr, s *cSize, out *cPrepared, err *byte, size int64) int32
	attach      func(prog uintptr, rank, buf int32, memory uintptr, n int64, err *byte, size int64) int32
	alloc       func(comm uintptr, rank int32, n int64, memory *uintptr, err *byte, size int64) int32
	release     func(comm uintptr, rank int32, memory uintptr, err *byte, size int64) int32
	upload      func(prog uintptr, rank, buf int32, offset int64, from *byte, n int64, err *byte, size int64) int32
	download    func(prog uintptr, rank, buf int32, offset int64, to *byte, n int64, err *byte, size int64) int32
	fill        func(prog uintptr, rank, buf, value int32, err *byte, size int64) int32
	guards      func(prog uintptr, err *byte, size int64) int32
	run         func(prog uintptr, launches int32, ns *float64, err *byte, size int64) int32
	capture     func(prog uintptr, launches int32, err *byte, size int64) int32
	captureMany func(progs *uintptr, n, launches int32, err *byte, size int64) int32
	replay      func(prog uintptr, replays int32, ns *float64, err *byte, size int64) int32
	events      func(prog uintptr, events *cEvent, n int64, have *int64, err *byte, size int64) int32
	waits       func(comm uintptr, waits *cWait, n int64, have *int64, err *byte, size int64) int32
	enqueue     func(prog uintptr, launches int32, err *byte, size int64) int32
	sync        func(comm uintptr, err *byte, size int64) int32
	expect      func(prog uintptr, e *cExpectation, err *byte, size int64) int32
	generate    func(prog uintptr, seed uint64, err *byte, size int64) int32
	verify      func(prog uintptr, seed uint64, err *byte, size int64) int32
	verdict     func(prog uintptr, v *cVerdict, err *byte, size int64) int32
}

// Open loads libmscclsh_cuda from the first of the paths that has it. It needs no
// GPU yet.
func Open(paths []string) (*Library, error) {
	lib, err := load(paths)
	if err != nil {
		return nil, diag.Errorf(diag.Pos{}, "machine", "the GPU library libmscclsh_cuda.so can't be used: %v", err).
			Suggest("build it with make cuda, or name it in MSCCLSH_CUDA_LIB; --backend cpu needs neither")
	}
	l := &Library{lib: lib}
	for _, f := range []struct {
		fn   any
		name string
	}{
		{&l.abi, "abi"}, {&l.buildText, "build"}, {&l.deviceCount, "devices"}, {&l.deviceInfo, "device_info"},
		{&l.create, "comm_create"}, {&l.destroy, "comm_destroy"}, {&l.load, "load"}, {&l.oneLoad, "one_load"}, {&l.unload, "unload"},
		{&l.prepare, "prepare"}, {&l.upload, "upload"}, {&l.download, "download"}, {&l.fill, "fill"},
		{&l.guards, "check_guards"}, {&l.run, "run"}, {&l.capture, "capture"}, {&l.replay, "replay"}, {&l.waits, "waits"}, {&l.events, "events"},
		{&l.attach, "attach"}, {&l.alloc, "alloc"}, {&l.release, "free"}, {&l.captureMany, "capture_many"},
		{&l.enqueue, "enqueue"}, {&l.sync, "sync"}, {&l.expect, "expect"}, {&l.generate, "generate"}, {&l.verify, "verify"},
		{&l.verdict, "verdict"},
	} {
		if err := lib.bind(f.fn, "mscclsh_"+f.name); err != nil {
			return nil, err
		}
	}
	if got := l.abi(); got != abiVersion {
		return nil, diag.Errorf(diag.Pos{}, "machine", "%s has version %d of the interface, want %d", lib.path, got, abiVersion).
			Suggest("rebuild it with make cuda")
	}
	l.build = l.buildText()
	return l, nil
}

// Build tells how the library was built.
func (l *Library) Build() string { return l.build }

// Path is where the library was found.
func (l *Library) Path() string { return l.lib.path }

// errorSize is the room for an error's sentence, in bytes.
const errorSize = 1024

// failure is the result of a call that failed.
type failure struct {
	result int32
	text   string
}

// call runs a function of the library, which must not move between threads while
// it sets the thread's device.
func (l *Library) call(f func(err *byte, size int64) int32) *failure {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	buf := make([]byte, errorSize)
	result := f(&buf[0], errorSize)
	if result == resultOK {
		return nil
	}
	text, _, _ := bytes.Cut(buf, []byte{0})
	return &failure{result, strings.TrimSuffix(strings.TrimSpace(string(text)), ".")}
}

// err is the failure as a message for a person; nil stays nil.
func (f *failure) err(doing string) error {
	if f == nil {
		return nil
	}
	code := "machine"
	switch f.result {
	case resultInvalid:
		code = "program"
	case resultStuck:
		code = "deadlock"
	}
	return diag.Errorf(diag.Pos{}, code, "run: %s: %s", doing, f.text)
}

// Device describes a GPU.
type Device struct {
	Name            string
	Memory          int64 // bytes
	Multiprocessors int
	Major, Minor    int // compute capability
}

// Devices lists the GPUs; a machine without one, or without a driver, is an error.
func (l *Library) Devices() ([]Device, error) {
	var n int32
	if f := l.call(func(err *byte, size int64) int32 { return l.deviceCount(&n, err, size) }); f != nil {
		if _, err := load([]string{driverLibrary}); err != nil {
			return nil, diag.Errorf(diag.Pos{}, "machine", "no GPU can be used: there is no NVIDIA driver here, %s can't be loaded", driverLibrary).
				Suggest("--backend cpu needs none")
		}
		return nil, diag.Errorf(diag.Pos{}, "machine", "no GPU can be used: %s", f.text).
			Suggest("--backend cpu needs none")
	}
	if n == 0 {
		return nil, diag.Errorf(diag.Pos{}, "machine", "this machine has no GPU").Suggest("--backend cpu needs none")
	}
	out := make([]Device, n)
	for i := range out {
		var info cDevice
		f := l.call(func(err *byte, size int64) int32 { return l.deviceInfo(int32(i), &info, err, size) })
		if f != nil {
			return nil, diag.Errorf(diag.Pos{}, "machine", "GPU %d can't be used: %s", i, f.text)
		}
		name, _, _ := bytes.Cut(info.name[:], []byte{0})
		out[i] = Device{string(name), info.memory, int(info.multiprocessors), int(info.major), int(info.minor)}
	}
	return out, nil
}
