package cuda

import (
	"fmt"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// NCCL is a loaded libnccl, to be compared with.
type NCCL struct {
	lib         dynamic
	version     int32
	driverPaths []string // where the CUDA driver's library is

	getVersion  func(version *int32) int32
	errorString func(result int32) string
	initAll     func(comms *uintptr, n int32, devices *int32) int32
	destroy     func(comm uintptr) int32
	groupStart  func() int32
	groupEnd    func() int32
	allReduce   func(send, recv uintptr, count uint64, dtype, op int32, comm, stream uintptr) int32
	reduceTo    func(send, recv uintptr, count uint64, dtype, op, root int32, comm, stream uintptr) int32
	broadcast   func(send, recv uintptr, count uint64, dtype, root int32, comm, stream uintptr) int32
	allGather   func(send, recv uintptr, count uint64, dtype int32, comm, stream uintptr) int32
	scatterSum  func(send, recv uintptr, count uint64, dtype, op int32, comm, stream uintptr) int32
	send        func(from uintptr, count uint64, dtype, peer int32, comm, stream uintptr) int32
	recv        func(to uintptr, count uint64, dtype, peer int32, comm, stream uintptr) int32
	memAlloc    func(at *uintptr, bytes uint64) int32
	memFree     func(at uintptr) int32

	// From 2.27 on; nil before.
	windowRegister   func(comm, buffer uintptr, bytes uint64, window *uintptr, flags int32) int32
	windowDeregister func(comm, window uintptr) int32
}

// OpenNCCL loads libnccl from the first of the paths that has it, with multicast
// (NVLS) switched off: only what every machine has is compared.
func OpenNCCL(paths []string) (*NCCL, error) {
	if err := setEnv("NCCL_NVLS_ENABLE", "0"); err != nil {
		return nil, diag.Errorf(diag.Pos{}, "machine", "loading NCCL: %v", err)
	}
	lib, err := load(paths)
	if err != nil {
		return nil, diag.Errorf(diag.Pos{}, "machine", "loading NCCL: %v", err).
			Suggest("name libnccl.so.2 in MSCCLSH_NCCL_LIB, or install it (pip install nvidia-nccl-cu13)")
	}
	n := &NCCL{lib: lib, driverPaths: []string{driverLibrary}}
	for _, f := range []struct {
		fn   any
		name string
	}{
		{&n.getVersion, "ncclGetVersion"}, {&n.errorString, "ncclGetErrorString"},
		{&n.initAll, "ncclCommInitAll"}, {&n.destroy, "ncclCommDestroy"},
		{&n.groupStart, "ncclGroupStart"}, {&n.groupEnd, "ncclGroupEnd"},
		{&n.allReduce, "ncclAllReduce"}, {&n.reduceTo, "ncclReduce"}, {&n.broadcast, "ncclBroadcast"},
		{&n.allGather, "ncclAllGather"}, {&n.scatterSum, "ncclReduceScatter"},
		{&n.send, "ncclSend"}, {&n.recv, "ncclRecv"}, {&n.memAlloc, "ncclMemAlloc"}, {&n.memFree, "ncclMemFree"},
	} {
		if err := lib.bind(f.fn, f.name); err != nil {
			return nil, err
		}
	}
	if lib.bind(&n.windowRegister, "ncclCommWindowRegister") != nil ||
		lib.bind(&n.windowDeregister, "ncclCommWindowDeregister") != nil {
		n.windowRegister = nil
	}
	if err := n.check(n.getVersion(&n.version), "asking for its version"); err != nil {
		return nil, err
	}
	return n, nil
}

// String is NCCL's name, version and mode.
func (n *NCCL) String() string {
	v := n.version
	return fmt.Sprintf("NCCL %d.%d.%d, NVLS off", v/10000, v/100%100, v%100)
}

// Windows reports whether this NCCL has symmetric windows.
func (n *NCCL) Windows() bool { return n.windowRegister != nil }

// check makes an error of a result.
func (n *NCCL) check(result int32, doing string) error {
	if result == 0 {
		return nil
	}
	return diag.Errorf(diag.Pos{}, "machine", "NCCL: %s: %s", doing, n.errorString(result))
}

// ncclTypes and ncclOps are NCCL's numbers of ours.
var (
	ncclTypes = map[runtime.DType]int32{runtime.Int8: 0, runtime.Uint8: 1, runtime.Int32: 2, runtime.Uint32: 3,
		runtime.Int64: 4, runtime.Uint64: 5, runtime.FP16: 6, runtime.FP32: 7, runtime.FP64: 8, runtime.BF16: 9,
		runtime.FP8E4M3: 10, runtime.FP8E5M2: 11}
	ncclOps = map[runtime.ReduceOp]int32{runtime.Sum: 0, runtime.Prod: 1, runtime.Max: 2, runtime.Min: 3, runtime.Avg: 4}
)

// ncclRank is what one rank hands to NCCL.
type ncclRank struct {
	comm, stream uintptr
	send, recv   uintptr
}

// call is one collective of all ranks: what a program of the same kind does.
// count is the number of elements as nccl-tests counts them.
func (n *NCCL) call(c *ir.Collective, ranks []ncclRank, count int64, d runtime.DType, op runtime.ReduceOp) error {
	if err := n.check(n.groupStart(), "opening a group"); err != nil {
		return err
	}
	var failed error
	for r := range ranks {
		if err := n.callRank(c, ranks, r, uint64(count), d, op); err != nil && failed == nil {
			failed = err
		}
	}
	if err := n.check(n.groupEnd(), "closing a group"); failed == nil {
		failed = err
	}
	return failed
}

func (n *NCCL) callRank(c *ir.Collective, ranks []ncclRank, r int, count uint64, d runtime.DType, op runtime.ReduceOp) error {
	k, t, o := &ranks[r], ncclTypes[d], ncclOps[op]
	share, size := count/uint64(len(ranks)), uintptr(d.Size())
	root := int32(c.Root)
	var result int32
	switch c.Kind {
	case ir.AllReduce:
		result = n.allReduce(k.send, k.recv, count, t, o, k.comm, k.stream)
	case ir.ReduceTo:
		result = n.reduceTo(k.send, k.recv, count, t, o, root, k.comm, k.stream)
	case ir.Broadcast:
		result = n.broadcast(k.send, k.recv, count, t, root, k.comm, k.stream)
	case ir.AllGather:
		result = n.allGather(k.send, k.recv, share, t, k.comm, k.stream)
	case ir.ReduceScatter:
		result = n.scatterSum(k.send, k.recv, share, t, o, k.comm, k.stream)
	default:
		return n.exchange(c, k, r, len(ranks), count, size, t)
	}
	return n.check(result, "calling "+c.Kind.String())
}

// exchange makes a collective of sends and receives, as nccl-tests does where NCCL
// has no function of its own in all of its versions.
func (n *NCCL) exchange(c *ir.Collective, k *ncclRank, r, ranks int, count uint64, size uintptr, t int32) error {
	share := count / uint64(ranks)
	at := func(base uintptr, block int) uintptr { return base + uintptr(block)*uintptr(share)*size }
	send := func(from uintptr, count uint64, to int) error {
		return n.check(n.send(from, count, t, int32(to), k.comm, k.stream), "calling send")
	}
	recv := func(to uintptr, count uint64, from int) error {
		return n.check(n.recv(to, count, t, int32(from), k.comm, k.stream), "calling recv")
	}
	var errs [2]error
	switch c.Kind {
	case ir.AllToAll:
		for q := range ranks {
			if err := send(at(k.send, q), share, q); err != nil {
				return err
			}
			if err := recv(at(k.recv, q), share, q); err != nil {
				return err
			}
		}
	case ir.SendRecv:
		if r == int(c.Root) {
			errs[0] = send(k.send, count, int(c.Peer))
		}
		if r == int(c.Peer) {
			errs[1] = recv(k.recv, count, int(c.Root))
		}
	case ir.AllToNext:
		if r+1 < ranks {
			errs[0] = send(k.send, count, r+1)
		}
		if r > 0 {
			errs[1] = recv(k.recv, count, r-1)
		}
	case ir.Gather:
		errs[0] = send(k.send, share, int(c.Root))
		for q := 0; r == int(c.Root) && q < ranks && errs[1] == nil; q++ {
			errs[1] = recv(at(k.recv, q), share, q)
		}
	case ir.Scatter:
		errs[0] = recv(k.recv, share, int(c.Root))
		for q := 0; r == int(c.Root) && q < ranks && errs[1] == nil; q++ {
			errs[1] = send(at(k.send, q), share, q)
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// refuses says why NCCL can't be compared with a program, "" if it can.
func (n *NCCL) refuses(c *ir.Collective, d runtime.DType, devices int) string {
	switch c.Kind {
	case ir.AllToAllV, ir.Custom:
		return "NCCL has no " + c.String()
	}
	if devices < int(c.Ranks) {
		return fmt.Sprintf("NCCL takes one rank a GPU: %d ranks, %d GPUs", c.Ranks, devices)
	}
	if fp8 := d == runtime.FP8E4M3 || d == runtime.FP8E5M2; fp8 && n.version < 22400 {
		return "this NCCL has no " + d.String()
	}
	return ""
}
