package cuda

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/mscclsh/mscclsh/ir"
)

// cEvent is mscclsh_event.
type cEvent struct {
	begin, end           int64
	rank, tb, step, tile int32
}

// recordedLaunches is how many launches the recording goes over: the last one is kept,
// in which nothing happens for the first time.
const recordedLaunches = 4

// record runs the program again, in such a way that steps note their times, and puts
// them into the report. What the buffers hold is of no matter: they are zeros.
func (r *runner) record() error {
	lib := r.comm.lib
	if err := r.prepareSize(1); err != nil {
		return err
	}
	for rank := range r.comm.devices {
		for b := range ir.BufferID(3) {
			if n, own := r.own(rank, b); !own || n == 0 {
				continue
			}
			f := lib.call(func(e *byte, size int64) int32 { return lib.fill(r.handle, int32(rank), int32(b), 0, e, size) })
			if f != nil {
				return r.failed(f, "recording")
			}
		}
	}
	// One-sided programs may only be safe one launch at a time.
	n, times := recordedLaunches, 1
	if r.flat.one != nil {
		n, times = times, n
	}
	for range times {
		if _, err := r.launch(n, false); err != nil {
			return err
		}
	}
	events, err := r.events()
	if err != nil {
		return err
	}
	r.report.Events = r.timeline(events)
	return nil
}

// events fetches what the latest launch noted.
func (r *runner) events() ([]cEvent, error) {
	lib := r.comm.lib
	var have int64
	get := func(to *cEvent, n int64) error {
		f := lib.call(func(e *byte, size int64) int32 { return lib.events(r.handle, to, n, &have, e, size) })
		return r.failed(f, "fetching times of steps")
	}
	if err := get(nil, 0); err != nil || have == 0 {
		return nil, err
	}
	events := make([]cEvent, have)
	err := get(&events[0], have)
	return events, err
}

// timeline puts events on one clock, which begins with the first of them, by rank,
// thread block and time.
func (r *runner) timeline(events []cEvent) []ir.Event {
	shift := r.flat.offsets(r.comm.devices, events)
	out := make([]ir.Event, len(events))
	first := int64(math.MaxInt64)
	for i := range events {
		e, d := &events[i], shift[r.comm.devices[events[i].rank]]
		out[i] = ir.Event{Rank: ir.Rank(e.rank), TB: e.tb, Step: e.step, Tile: e.tile, Begin: e.begin + d, End: e.end + d}
		first = min(first, out[i].Begin)
	}
	for i := range out {
		out[i].Begin -= first
		out[i].End -= first
	}
	slices.SortStableFunc(out, func(a, b ir.Event) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.TB, b.TB), cmp.Compare(a.Tile, b.Tile), cmp.Compare(a.Step, b.Step))
	})
	return out
}

// stepOf names one turn of one step.
type stepOf struct{ rank, tb, step, tile int32 }

// offsets are nanoseconds to add to the times of each device. Devices have clocks of
// their own, which may be some way apart. No step that receives ends before the one
// that sends has begun: where the clocks say otherwise the receiver's is put forward
// as far as it must be, and no farther.
func (f *flat) offsets(deviceOf []int32, events []cEvent) map[int32]int64 {
	at := make(map[stepOf]*cEvent, len(events))
	tiles := int32(0)
	for i := range events {
		e := &events[i]
		at[stepOf{e.rank, e.tb, e.step, e.tile}] = e
		tiles = max(tiles, e.tile+1)
	}
	type pair struct{ sender, receiver int32 } // devices
	late := map[pair]int64{}                   // how much later the receiver's clock must be, at least
	messages := f.messages
	if f.one != nil {
		messages = f.signals
	}
	for _, m := range messages() {
		p := pair{deviceOf[m[0].rank], deviceOf[m[1].rank]}
		if p.sender == p.receiver {
			continue
		}
		for tile := range tiles {
			m[0].tile, m[1].tile = tile, tile
			if sent, got := at[m[0]], at[m[1]]; sent != nil && got != nil {
				by, known := late[p]
				if gap := sent.begin - got.end; !known || gap > by {
					late[p] = gap
				}
			}
		}
	}
	shift := map[int32]int64{}
	for _, d := range deviceOf {
		shift[d] = 0
	}
	order := slices.SortedFunc(maps.Keys(late), func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.sender, b.sender), cmp.Compare(a.receiver, b.receiver))
	})
	// The longest ways, so that all of it holds. Clocks that tick too slowly to tell
	// could make a circle of it, hence no more rounds than there are devices.
	for range shift {
		for _, p := range order {
			shift[p.receiver] = max(shift[p.receiver], shift[p.sender]+late[p])
		}
	}
	return shift
}

// messages joins the k-th step that sends on a connection with the k-th that
// receives.
func (f *flat) messages() [][2]stepOf {
	sent := map[connKey][]stepOf{}
	f.eachStep(func(at stepOf, st *cStep) {
		if ir.StepKind(st.kind).Sends() {
			key := connKey{ir.Rank(at.rank), ir.Rank(st.sendPeer), st.channel}
			sent[key] = append(sent[key], at)
		}
	})
	var out [][2]stepOf
	f.eachStep(func(at stepOf, st *cStep) {
		key := connKey{ir.Rank(st.recvPeer), ir.Rank(at.rank), st.channel}
		if queue := sent[key]; ir.StepKind(st.kind).Receives() && len(queue) > 0 {
			out = append(out, [2]stepOf{queue[0], at})
			sent[key] = queue[1:]
		}
	})
	return out
}

// eachStep calls do for every step, by rank, thread block and step.
func (f *flat) eachStep(do func(at stepOf, st *cStep)) {
	next, block := 0, 0
	for rank, tbs := range f.tbs {
		for tb := range tbs {
			for step := range f.perTB[block] {
				do(stepOf{rank: int32(rank), tb: tb, step: step}, &f.steps[next])
				next++
			}
			block++
		}
	}
}
