package cuda_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/runtime/cuda"
)

// mixedSources are programs that share connections: of each protocol several, rooted
// ones at different roots, among them a broadcast, whose root can run launches ahead
// of the others.
func mixedSources(ranks int) []source {
	last := fmt.Sprint(ranks - 1)
	var out []source
	for _, protocol := range []string{"LL", "LL128", "Simple", "Direct"} {
		for _, x := range []struct{ name, param, value string }{
			{"allreduce_one_step", "inplace", "false"}, {"allreduce_allpairs", "inplace", "true"}, {"allreduce_ring", "inplace", "false"},
			{"allreduce_double_binary_tree", "inplace", "true"}, // whose thread blocks wait for each other
			{"broadcast_tree", "root", "0"}, {"broadcast_tree", "root", last}, {"reduce_tree", "root", "1"},
			{"allgather_direct", "inplace", "false"}, {"reduce_scatter_direct", "inplace", "true"},
			{"alltoall_direct", "inplace", "false"}, {"gather_tree", "root", last}, {"scatter_tree", "root", "1"},
		} {
			args := map[string]string{"ranks": fmt.Sprint(ranks), "protocol": protocol, "inplace": "false"}
			out = append(out, source{name: x.name, args: args}.with(x.param, x.value))
		}
	}
	return out
}

// mixedSizes are the sizes that programs are bound to in turn.
var mixedSizes = []int64{4, 1024, 60_004, 8, 16384, 262_144 + 4, 0, 4093 * 4, 65536, 1 << 20}

// unitOf is what sizes of a one-sided program are multiples of, 0 of a two-sided one.
func unitOf(p *ir.Program) int64 {
	if p.OneSided == nil {
		return 0
	}
	return int64(p.OneSided.Alignment) * int64(p.Coll.NumChunks())
}

// mixer launches programs of one communicator in an order that is drawn.
type mixer struct {
	rng     *rand.Rand
	loaded  []*mixed
	seed    uint64
	started int   // launches
	values  int64 // compared
}

// mixed is one program, and what its memory holds.
type mixed struct {
	x        *cuda.Program
	b        *cuda.Bound
	src      source
	seed     uint64
	launches int // since the inputs were made
	inPlace  bool
	unit     int64 // bytes that sizes are multiples of; 0 is an element
}

// bind prepares a program for a size and makes its first inputs.
func (m *mixer) bind(p *mixed, size int64, k kind) (err error) {
	elem := int64(k.d.Size())
	unit := max(p.unit, elem)
	p.b, err = p.x.Bind(cuda.Options{Bytes: (size + unit - 1) / unit * unit, DType: k.d, Op: k.op, Misalign: int32(size%3) * int32(elem)})
	if err != nil {
		return err
	}
	return m.generate(p)
}

func (m *mixer) generate(p *mixed) error {
	m.seed++
	p.seed, p.launches = m.seed, 0
	return p.b.Generate(p.seed)
}

// launch starts a program so often, on new inputs if it has to have them or if fresh,
// and has the results compared if compare.
func (m *mixer) launch(p *mixed, times int, fresh, compare bool) error {
	if p.inPlace {
		times = 1 // a second one would start from the first one's results
		fresh = fresh || p.launches > 0
	}
	if fresh {
		if err := m.generate(p); err != nil {
			return err
		}
	}
	p.launches += times
	m.started += times
	if err := p.b.Enqueue(times); err != nil || !compare {
		return err
	}
	return p.b.Verify(p.seed)
}

// step starts one to four launches: half the time of a broadcast between two others
// with nothing in between, so that its root runs ahead into the next one.
func (m *mixer) step() error {
	draw := func() *mixed { return m.loaded[m.rng.IntN(len(m.loaded))] }
	p, often := draw(), m.rng.IntN(4) == 0
	if m.rng.IntN(2) == 0 {
		return m.launch(p, 1+m.rng.IntN(3), often, m.rng.IntN(2) == 0)
	}
	var between *mixed
	for between == nil || between.src.name != "broadcast_tree" {
		between = draw()
	}
	next := draw()
	for i, x := range []*mixed{p, between, next} {
		if err := m.launch(x, 1, false, i == 2); err != nil {
			return fmt.Errorf("launch %d, %v: %w", m.started, x.src, err)
		}
	}
	return between.b.Verify(between.seed)
}

// settle has what lies in memory compared, waits, and wants every comparison right.
func (m *mixer) settle() error {
	for _, p := range m.loaded {
		if p.launches == 0 {
			continue
		}
		if err := p.b.Verify(p.seed); err != nil {
			return err
		}
	}
	for _, p := range m.loaded {
		v, err := judged(p.b)
		if err == nil {
			err = p.b.CheckGuards()
		}
		if err != nil {
			return fmt.Errorf("up to launch %d, %v: %w", m.started, p.src, err)
		}
		m.values += v.Elements
	}
	return nil
}

// runMixed starts so many launches on one communicator; every round it waits and gives
// each program another size and kind of numbers.
func runMixed(lib *cuda.Library, sources []source, o cuda.CommOptions, ranks int32, launches, round int, most int64) (values int64, err error) {
	comm, err := lib.NewComm(ranks, o)
	if err != nil {
		return 0, err
	}
	m := &mixer{rng: rand.New(rand.NewPCG(7, uint64(launches)))}
	defer func() {
		for _, p := range m.loaded {
			err = firstOf(err, p.x.Close())
		}
		err = firstOf(err, comm.Close())
	}()
	for _, src := range sources {
		x, prog, err := loadSource(comm, src)
		if errors.Is(err, errRefused) {
			continue
		}
		if err != nil {
			return 0, err
		}
		m.loaded = append(m.loaded, &mixed{x: x, src: src, inPlace: prog.Coll.InPlace, unit: unitOf(prog)})
	}
	kinds := kinds()
	for turn := 0; m.started < launches; turn++ {
		for i, p := range m.loaded {
			if err := m.bind(p, min(mixedSizes[(3*i+turn)%len(mixedSizes)], most), kinds[(11*i+turn)%len(kinds)]); err != nil {
				return 0, fmt.Errorf("%v: %w", p.src, err)
			}
		}
		for end := m.started + round; m.started < end; {
			if err := m.step(); err != nil {
				return 0, err
			}
		}
		if err := m.settle(); err != nil {
			return 0, err
		}
	}
	return m.values, nil
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// TestGPUMixed starts 10,000 launches back to back, of mixed programs, sizes, roots,
// protocols and kinds of numbers, on one communicator; once more where the numbers of
// messages begin anew every 64, so that they wrap around many times.
func TestGPUMixed(t *testing.T) {
	lib := library(t)
	launches, round, shapes, most := 10_000, 500, []int{4, 2, 8}, mixedSizes[len(mixedSizes)-1]
	if onHost(lib) {
		launches, round, shapes, most = 120, 60, []int{3}, 16384
	}
	p := newParts(t, "mixed")
	for _, set := range sets(devices(t, lib)) {
		for _, ranks := range shapes {
			for _, modulus := range []int32{0, 64} {
				p.do(fmt.Sprintf("%d ranks on %s, flags modulo %d", ranks, list(set), modulus), func() (int64, error) {
					return runMixed(lib, mixedSources(ranks), cuda.CommOptions{Devices: set, Watchdog: patience, FlagModulus: modulus},
						int32(ranks), launches, round, most)
				})
			}
		}
	}
}

// TestGPUWrapped sends messages that fill a slot, and between each two of them so many
// short ones that the numbers of messages come round, to once or twice the same flags:
// what the first long one left in the slot must not be taken for the second. The
// receiver is launched before the sender.
func TestGPUWrapped(t *testing.T) {
	lib := library(t)
	const modulus = 64
	first, last := 0, 2*modulus+2
	if onHost(lib) {
		first, last = modulus-3, modulus
	}
	p := newParts(t, "wrapped")
	for _, set := range sets(devices(t, lib)) {
		for _, protocol := range []string{"LL", "LL128", "Simple", "Direct"} {
			src := source{name: "sendrecv", args: map[string]string{"ranks": "2", "src": "1", "dst": "0", "protocol": protocol}}
			p.do(fmt.Sprintf("%v on %s", src, list(set)), func() (int64, error) {
				return runWrapped(lib, src, cuda.CommOptions{Devices: set, Watchdog: patience, FlagModulus: modulus}, first, last)
			})
		}
	}
}

// runWrapped runs a program on a slot's bytes, and in between from first to last times
// on a few.
func runWrapped(lib *cuda.Library, src source, o cuda.CommOptions, first, last int) (values int64, err error) {
	prog, err := src.program()
	if err != nil {
		return 0, err
	}
	err = on(lib, prog, o, func(long *cuda.Program) (err error) {
		short, err := long.Comm().Load(prog)
		if err != nil {
			return err
		}
		defer func() { err = firstOf(err, short.Close()) }()
		bytes := max(prog.Transport.SlotBytes/16*16, 4096)
		var bound [2]*cuda.Bound
		for i, x := range []*cuda.Program{long, short} {
			if bound[i], err = x.Bind(cuda.Options{Bytes: []int64{bytes, 16}[i]}); err != nil {
				return err
			}
			if err := bound[i].Generate(1); err != nil {
				return err
			}
		}
		seed := uint64(1)
		for gap := first; gap <= last; gap++ {
			for range 2 {
				if err := launched(bound[0], seed); err != nil {
					return err
				}
				seed++
				if err := bound[1].Enqueue(gap); err != nil {
					return err
				}
			}
		}
		for _, b := range bound {
			v, err := judged(b)
			if err != nil {
				return err
			}
			values += v.Elements
		}
		return nil
	})
	return values, err
}

// launched makes inputs, launches once and has the results compared.
func launched(b *cuda.Bound, seed uint64) error {
	if err := b.Generate(seed); err != nil {
		return err
	}
	if err := b.Enqueue(1); err != nil {
		return err
	}
	return b.Verify(seed)
}

// TestGPUReplay captures programs into graphs and replays each 1,000 times, in turns,
// with inputs that change every time.
func TestGPUReplay(t *testing.T) {
	lib := library(t)
	replays, shapes, most := 1000, []int{2, 4}, mixedSizes[len(mixedSizes)-1]
	if onHost(lib) {
		replays, shapes, most = 4, shapes[:1], 4096
	}
	p := newParts(t, "replay")
	for _, set := range sets(devices(t, lib)) {
		for _, ranks := range shapes {
			for _, modulus := range []int32{0, 64} {
				p.do(fmt.Sprintf("%d ranks on %s, flags modulo %d", ranks, list(set), modulus), func() (int64, error) {
					return runReplays(lib, mixedSources(ranks), cuda.CommOptions{Devices: set, Watchdog: patience, FlagModulus: modulus}, int32(ranks), replays, most)
				})
			}
		}
	}
}

// runReplays replays graphs of one launch in place, and of three out of place.
func runReplays(lib *cuda.Library, sources []source, o cuda.CommOptions, ranks int32, replays int, most int64) (values int64, err error) {
	comm, err := lib.NewComm(ranks, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = firstOf(err, comm.Close()) }()
	var bound []*cuda.Bound
	var names []source
	kinds := kinds()
	for i, src := range sources {
		x, prog, err := loadSource(comm, src)
		if errors.Is(err, errRefused) {
			continue
		}
		if err != nil {
			return 0, err
		}
		defer func() { err = firstOf(err, x.Close()) }()
		k := kinds[7*i%len(kinds)]
		unit := max(unitOf(prog), 8)
		b, err := x.Bind(cuda.Options{Bytes: (min(mixedSizes[i%len(mixedSizes)], most) + unit - 1) / unit * unit, DType: k.d, Op: k.op})
		if err != nil {
			return 0, fmt.Errorf("%v: %w", src, err)
		}
		launches := 3
		if prog.Coll.InPlace {
			launches = 1
		}
		if err := b.Capture(launches); err != nil {
			return 0, fmt.Errorf("%v: %w", src, err)
		}
		bound, names = append(bound, b), append(names, src)
	}
	for i := range replays * len(bound) {
		b, seed := bound[i%len(bound)], uint64(i)
		if err := b.Generate(seed); err != nil {
			return 0, err
		}
		if _, err := b.Replay(1); err != nil {
			return 0, fmt.Errorf("replay %d of %v: %w", i/len(bound), names[i%len(bound)], err)
		}
		if err := b.Verify(seed); err != nil {
			return 0, err
		}
	}
	for i, b := range bound {
		v, err := judged(b)
		if err == nil {
			err = b.CheckGuards()
		}
		if err != nil {
			return 0, fmt.Errorf("%v: %w", names[i], err)
		}
		values += v.Elements
	}
	return values, nil
}

// loadSource compiles a program and loads it; errRefused means that there is none.
func loadSource(comm *cuda.Comm, src source) (*cuda.Program, *ir.Program, error) {
	prog, err := src.program()
	if err != nil {
		return nil, nil, fmt.Errorf("%v: %w", src, err)
	}
	x, err := comm.Load(prog)
	if err != nil {
		return nil, nil, fmt.Errorf("%v: %w", src, err)
	}
	return x, prog, nil
}
