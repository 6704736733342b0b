package cuda

import (
	"cmp"
	"fmt"
	goruntime "runtime"
	"slices"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime"
)

// Rival runs NCCL's collective of a program's kind on the same devices, one rank a
// GPU. It is used from one goroutine at a time.
type Rival struct {
	nccl    *NCCL
	driver  *driver
	coll    *ir.Collective
	dtype   runtime.DType
	devices []int32
	comms   []uintptr
	streams []uintptr
	begin   []uintptr // events
	end     []uintptr
	modes   []rivalMode
	calls   []Call
}

// rivalMode is a way to call NCCL: buffers of the largest size, on each rank.
type rivalMode struct {
	name       string
	why        string // it can't be used, if not ""
	send, recv []uintptr
	windows    [][2]uintptr // registered, of each rank; nil in the default mode
}

// The names of NCCL's two modes.
const (
	DefaultMode   = "NCCL"
	SymmetricMode = "NCCL windows"
)

// NewRival makes communicators and buffers for collectives of up to maxBytes, as
// nccl-tests counts them, that NCCL is called for in some ways; Whole if none is named.
func (n *NCCL) NewRival(c *ir.Collective, devices []int32, maxBytes int64, d runtime.DType, calls ...Call) (*Rival, error) {
	why := n.refuses(c, d, len(devices))
	if len(calls) == 0 {
		calls = []Call{Whole}
	}
	for _, call := range calls {
		why = cmp.Or(why, call.refuses(c))
	}
	if why != "" {
		return nil, diag.Errorf(diag.Pos{}, "against", "--against nccl: %s", why)
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	drv, err := openDriver(n.driverPaths, devices)
	if err != nil {
		return nil, err
	}
	v := &Rival{nccl: n, driver: drv, coll: c, dtype: d, devices: devices, calls: calls, comms: make([]uintptr, len(devices))}
	if err := n.check(n.initAll(&v.comms[0], int32(len(devices)), &devices[0]), "making communicators"); err != nil {
		return nil, err
	}
	if err := v.open(maxBytes); err != nil {
		v.Close()
		return nil, err
	}
	return v, nil
}

// open makes streams, clocks and buffers.
func (v *Rival) open(maxBytes int64) error {
	for _, device := range v.devices {
		if err := v.addDevice(device); err != nil {
			return err
		}
	}
	// A size is rounded up to an element a rank where it is smaller.
	maxBytes = max(maxBytes, 1<<20)
	v.modes = make([]rivalMode, 2)
	if err := v.plainBuffers(&v.modes[0], maxBytes); err != nil {
		return err
	}
	v.symmetricBuffers(&v.modes[1], maxBytes)
	for m := range v.modes {
		if v.modes[m].why != "" {
			continue
		}
		if err := v.fill(&v.modes[m], maxBytes); err != nil {
			return err
		}
	}
	return nil
}

func (v *Rival) addDevice(device int32) error {
	var stream, begin, end uintptr
	if err := v.driver.use(device); err != nil {
		return err
	}
	const nonBlocking = 1
	for _, err := range []error{
		v.driver.check(v.driver.newStream(&stream, nonBlocking), "making a stream"),
		v.driver.check(v.driver.newEvent(&begin, 0), "making an event"),
		v.driver.check(v.driver.newEvent(&end, 0), "making an event"),
	} {
		if err != nil {
			return err
		}
	}
	v.streams, v.begin, v.end = append(v.streams, stream), append(v.begin, begin), append(v.end, end)
	return nil
}

// plainBuffers are for the default mode.
func (v *Rival) plainBuffers(m *rivalMode, bytes int64) error {
	m.name = DefaultMode
	return v.each(func(int) error {
		return m.allocate(func(at *uintptr) error {
			return v.driver.check(v.driver.memAlloc(at, uint64(bytes)), "allocating")
		})
	})
}

// allocate makes a rank's two buffers, and keeps the first if the second fails.
func (m *rivalMode) allocate(one func(at *uintptr) error) error {
	for _, list := range []*[]uintptr{&m.send, &m.recv} {
		var at uintptr
		if err := one(&at); err != nil {
			return err
		}
		*list = append(*list, at)
	}
	return nil
}

// symmetricBuffers are registered as windows of all ranks. What NCCL can't do makes
// the mode unusable, not the comparison.
func (v *Rival) symmetricBuffers(m *rivalMode, bytes int64) {
	m.name = SymmetricMode
	n := v.nccl
	if !n.Windows() {
		m.why = "this NCCL has no windows"
		return
	}
	// Windows are whole pages of the driver's.
	const page = 2 << 20
	size := uint64((bytes + page - 1) / page * page)
	err := v.each(func(int) error {
		return m.allocate(func(at *uintptr) error { return n.check(n.memAlloc(at, size), "allocating") })
	})
	m.windows = make([][2]uintptr, len(v.devices))
	for i := 0; i < 2 && err == nil; i++ {
		err = v.register(m, i, size)
	}
	if err != nil {
		m.why = err.Error()
		return
	}
	for _, w := range m.windows {
		if w[0] == 0 || w[1] == 0 {
			m.why = "registering succeeds but gives no window"
		}
	}
}

// register makes windows of all send buffers (i is 0) or receive buffers (1): a
// collective call.
func (v *Rival) register(m *rivalMode, i int, size uint64) error {
	const collSymmetric = 1
	n := v.nccl
	if err := n.check(n.groupStart(), "opening a group"); err != nil {
		return err
	}
	var failed error
	for r := range v.devices {
		at := [2]uintptr{m.send[r], m.recv[r]}[i]
		if failed == nil {
			failed = n.check(n.windowRegister(v.comms[r], at, size, &m.windows[r][i], collSymmetric), "registering a window")
		}
	}
	if err := n.check(n.groupEnd(), "closing a group"); failed == nil {
		failed = err
	}
	return failed
}

// fill writes ordinary numbers to the send buffers: speed can depend on what the
// bits are.
func (v *Rival) fill(m *rivalMode, bytes int64) error {
	const piece = 1 << 20
	pattern := ir.NewCollective(ir.AllReduce, int32(len(v.devices)), 1, true)
	layout, err := runtime.NewLayout(pattern, v.dtype, piece)
	if err != nil {
		return err
	}
	inputs, err := runtime.Generate(layout, runtime.Sum, 1, false)
	if err != nil {
		return err
	}
	data := runtime.Alloc(piece)
	for r, device := range v.devices {
		inputs.Fill(data, ir.Rank(r), 0)
		if err := v.driver.use(device); err != nil {
			return err
		}
		for off := int64(0); off < bytes; off += piece {
			n := uint64(min(piece, bytes-off))
			if err := v.driver.check(v.driver.toDevice(m.send[r]+uintptr(off), &data[0], n), "copying"); err != nil {
				return err
			}
		}
	}
	return nil
}

// Modes are the names of the ways in which NCCL is called.
func (v *Rival) Modes() []string {
	var names []string
	for _, c := range v.calls {
		names = append(names, DefaultMode+c.suffix(), SymmetricMode+c.suffix())
	}
	return names
}

// CannotCompare reports whether err says that NCCL can't do what was asked of it,
// which ends no measurement of ours.
func CannotCompare(err error) bool {
	return slices.ContainsFunc(diag.Messages(err), func(m *diag.Message) bool { return m.Code == "against" })
}

// Timing says how to measure.
type Timing struct {
	Repetitions, Warmup, Launches int
	Graph                         bool
}

// Time measures one mode at a layout's size: nanoseconds of one call, of each
// repetition, by events of the device that took longest.
func (v *Rival) Time(mode int, l *runtime.Layout, op runtime.ReduceOp, o Timing) ([]float64, error) {
	m, way := &v.modes[mode%len(v.modes)], v.calls[mode/len(v.modes)]
	if m.why != "" {
		return nil, diag.Errorf(diag.Pos{}, "against", "%s: %s", m.name, m.why)
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	count := l.Bytes() / int64(v.dtype.Size())
	ranks := make([]ncclRank, len(v.devices))
	for r := range ranks {
		ranks[r] = ncclRank{v.comms[r], v.streams[r], m.send[r], m.recv[r]}
		v.overlap(&ranks[r], r, count)
	}
	calls := func() error {
		for range o.Launches {
			if err := v.call(way, ranks, count, op); err != nil {
				return err
			}
		}
		return nil
	}
	if !o.Graph {
		return v.repeat(o, calls)
	}
	// A first call outside of the graph: NCCL connects what it needs then.
	if err := v.call(way, ranks, count, op); err != nil {
		return nil, err
	}
	if err := v.wait(); err != nil {
		return nil, err
	}
	graphs, err := v.capture(calls)
	if err != nil {
		return nil, err
	}
	times, err := v.repeat(o, func() error {
		return v.each(func(r int) error {
			return v.driver.check(v.driver.launchGraph(graphs[r], v.streams[r]), "launching a graph")
		})
	})
	for _, g := range graphs {
		if free := v.driver.check(v.driver.freeExec(g), "freeing a graph"); err == nil {
			err = free
		}
	}
	return times, err
}

// overlap makes the call in place where the program is and NCCL can.
func (v *Rival) overlap(k *ncclRank, r int, count int64) {
	if !v.coll.InPlace {
		return
	}
	own := uintptr(r) * uintptr(count/int64(len(v.devices))) * uintptr(v.dtype.Size())
	switch v.coll.Kind {
	case ir.AllReduce, ir.Broadcast, ir.ReduceTo:
		k.recv = k.send
	case ir.AllGather:
		k.recv, k.send = k.send, k.send+own
	case ir.ReduceScatter:
		k.recv = k.send + own
	}
}

// each calls f for every rank, with its device current.
func (v *Rival) each(f func(r int) error) error {
	for r, device := range v.devices {
		if err := v.driver.use(device); err != nil {
			return err
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

func (v *Rival) wait() error {
	return v.each(func(r int) error {
		return v.driver.check(v.driver.waitStream(v.streams[r]), "waiting for NCCL")
	})
}

// capture records calls into one graph a device.
func (v *Rival) capture(calls func() error) ([]uintptr, error) {
	// Relaxed: a graph is made while the streams of other devices still capture.
	const relaxed = 2
	err := v.each(func(r int) error {
		return v.driver.check(v.driver.beginCapture(v.streams[r], relaxed), "beginning a graph")
	})
	if err != nil {
		return nil, err
	}
	failed := calls()
	execs := make([]uintptr, len(v.devices))
	err = v.each(func(r int) error {
		var graph uintptr
		if err := v.driver.check(v.driver.endCapture(v.streams[r], &graph), "ending a graph"); err != nil {
			return err
		}
		if failed == nil {
			failed = v.driver.check(v.driver.instantiate(&execs[r], graph, 0), "preparing a graph")
		}
		return v.driver.check(v.driver.freeGraph(graph), "freeing a graph")
	})
	if failed != nil {
		err = failed
	}
	return execs, err
}

// repeat measures start, which enqueues o.Launches calls.
func (v *Rival) repeat(o Timing, start func() error) ([]float64, error) {
	var out []float64
	for i := range o.Warmup + o.Repetitions {
		err := v.each(func(r int) error {
			return v.driver.check(v.driver.record(v.begin[r], v.streams[r]), "recording an event")
		})
		if err == nil {
			err = start()
		}
		if err == nil {
			err = v.each(func(r int) error {
				return v.driver.check(v.driver.record(v.end[r], v.streams[r]), "recording an event")
			})
		}
		if err == nil {
			err = v.wait()
		}
		longest := float32(0)
		if err == nil {
			err = v.each(func(r int) error {
				var ms float32
				defer func() { longest = max(longest, ms) }()
				return v.driver.check(v.driver.elapsed(&ms, v.begin[r], v.end[r]), "reading a clock")
			})
		}
		if err != nil {
			return nil, fmt.Errorf("measuring %s: %w", v.nccl, err)
		}
		if i >= o.Warmup {
			out = append(out, float64(longest)*1e6/float64(o.Launches))
		}
	}
	return out, nil
}

// Close frees what NewRival made; errors at the end interest nobody.
func (v *Rival) Close() {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	for i := range v.modes {
		v.closeMode(&v.modes[i])
	}
	for r := range v.streams {
		if v.driver.use(v.devices[r]) == nil {
			v.driver.freeEvent(v.begin[r])
			v.driver.freeEvent(v.end[r])
			v.driver.endStream(v.streams[r])
		}
	}
	for _, c := range v.comms {
		v.nccl.destroy(c)
	}
}

func (v *Rival) closeMode(m *rivalMode) {
	for r, w := range m.windows {
		for _, window := range w {
			if window != 0 {
				v.nccl.windowDeregister(v.comms[r], window)
			}
		}
	}
	for _, list := range [][]uintptr{m.send, m.recv} {
		for r, at := range list {
			switch {
			case v.driver.use(v.devices[r]) != nil:
			case m.name == SymmetricMode:
				v.nccl.memFree(at)
			default:
				v.driver.memFree(at)
			}
		}
	}
}
