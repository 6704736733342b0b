package viz_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/google/go-cmp/cmp"

	"github.com/mscclsh/mscclsh/algorithms"
	"github.com/mscclsh/mscclsh/compiler"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
	"github.com/mscclsh/mscclsh/starlib"
	"github.com/mscclsh/mscclsh/viz"
)

// traced is what a script of the library says.
func traced(t testing.TB, name string, args map[string]string) *ir.ChunkDAG {
	t.Helper()
	s, err := starlib.Load(context.Background(), starlib.Options{File: starlib.LibraryPrefix + name + ".star",
		Library: algorithms.FS, Args: args, Host: starlib.Host{Topology: machine.Topology}})
	if err != nil {
		t.Fatal(err)
	}
	return s.Programs[0].DAG
}

// stages pictures every stage of a script of the library, and a run that takes a
// microsecond a step.
func stages(t testing.TB, name string, args map[string]string) []*viz.Picture {
	t.Helper()
	return stagesOf(t, traced(t, name, args))
}

func stagesOf(t testing.TB, d *ir.ChunkDAG) []*viz.Picture {
	t.Helper()
	var before, after *ir.InstrDAG // fusion
	r, err := compiler.Compile(context.Background(), d, compiler.Options{Target: ir.TargetPlain,
		Observe: func(st compiler.Stage) {
			switch {
			case st.Pass == "lower":
				before = &ir.InstrDAG{Spec: st.Instrs.Spec, Instrs: slices.Clone(st.Instrs.Instrs)}
			case st.Instrs != nil:
				after = st.Instrs
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	var list []*viz.Picture
	add := func(pic *viz.Picture, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pic)
	}
	add(viz.Chunks(d))
	add(viz.Instructions(before, viz.StageInstructions))
	add(viz.Instructions(after, viz.StageFused))
	add(viz.Schedule(r.Program))
	add(viz.Connections(r.Program))
	add(viz.Run(r.Program, byDepth(list[3])))
	return list
}

// byDepth is a run in which a step takes a microsecond and begins when all that it
// depends on has ended.
func byDepth(p *viz.Picture) []ir.Event {
	var events []ir.Event
	for i := range p.Nodes {
		n := &p.Nodes[i]
		l := &p.Lanes[n.Lane]
		begin := 1000 * int64(n.Depth)
		events = append(events, ir.Event{Rank: l.Rank, TB: l.Block, Step: n.ID, Begin: begin, End: begin + 1000})
	}
	return events
}

// small are pictures of one small program, whose texts need care.
func small(t *testing.T) []*viz.Picture {
	t.Helper()
	p := parsed(t, ir.ParseProgram, "program "+header+steps)
	var list []*viz.Picture
	for _, made := range []func() (*viz.Picture, error){
		func() (*viz.Picture, error) {
			return viz.Chunks(parsed(t, ir.ParseChunkDAG, "chunkdag "+header+chunks))
		},
		func() (*viz.Picture, error) {
			return viz.Instructions(parsed(t, ir.ParseInstrDAG, "instrdag "+header+instrs), viz.StageFused)
		},
		func() (*viz.Picture, error) { return viz.Schedule(p) },
		func() (*viz.Picture, error) { return viz.Connections(p) },
		func() (*viz.Picture, error) { return viz.Run(p, byDepth(list[2])) },
	} {
		pic, err := made()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pic)
	}
	return list
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestText(t *testing.T) {
	color := lipgloss.NewRenderer(io.Discard)
	color.SetColorProfile(2) // termenv.ANSI: the 16 colors
	for _, c := range []struct {
		name string
		term viz.Terminal
	}{
		{"narrow.txt", viz.Terminal{ASCII: true}},
		{"wide.txt", viz.Terminal{Width: 160, Renderer: color}},
	} {
		var b bytes.Buffer
		for _, p := range slices.Concat(small(t), stages(t, "allreduce_ring", map[string]string{"ranks": "4"})) {
			if err := viz.WriteText(&b, p, c.term); err != nil {
				t.Fatal(err)
			}
			b.WriteString("\n")
		}
		golden(t, c.name, b.Bytes())
		width := max(c.term.Width, 80)
		for _, line := range strings.Split(b.String(), "\n") {
			if n := lipgloss.Width(line); n > width {
				t.Errorf("%s: a line has %d columns, want at most %d: %q", c.name, n, width, line)
			}
		}
		if c.term.ASCII && strings.ContainsFunc(b.String(), func(r rune) bool { return r > 126 || r < 32 && r != '\n' }) {
			t.Errorf("%s is not ASCII", c.name)
		}
	}
}

// A large picture is an outline: all of it, counted.
func TestOutline(t *testing.T) {
	p := stages(t, "allreduce_ring", map[string]string{"ranks": "32"})[3]
	var b bytes.Buffer
	if err := viz.WriteText(&b, p, viz.Terminal{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "outline.txt", b.Bytes())
	b.Reset()
	if err := viz.WriteText(&b, p, viz.Terminal{Full: true}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "rrs "); n != 32*30 { // each rank passes 30 partial sums on
		t.Errorf("got %d steps rrs in full, want %d", n, 32*30)
	}
}

func TestSVG(t *testing.T) {
	for _, p := range small(t) {
		for view, suffix := range map[viz.View]string{viz.Lanes: "", viz.Layers: ".layers"} {
			if view == viz.Layers && p.Stage != viz.StageSchedule {
				continue
			}
			var b bytes.Buffer
			if err := viz.WriteSVG(&b, p, view); err != nil {
				t.Fatal(err)
			}
			golden(t, p.Stage.String()+suffix+".svg", b.Bytes())
			wellFormed(t, b.Bytes())
		}
	}
}

// The parts of a page that change with the program: its data.
func TestPageData(t *testing.T) {
	var b bytes.Buffer
	if err := viz.WriteHTML(&b, viz.Page{Title: "small", Pictures: small(t)}); err != nil {
		t.Fatal(err)
	}
	var data []string
	for _, part := range strings.Split(b.String(), `<script type="application/json" id="`)[1:] {
		text, _, _ := strings.Cut(part, "</script>")
		if strings.HasPrefix(text, "stage") {
			data = append(data, strings.ReplaceAll(text, `,"`, ",\n\""))
		}
	}
	golden(t, "page.txt", []byte(strings.Join(data, "")))
}

// Every operation, instruction and step is there once, edges have ends, no two
// nodes have one place, and the order of playing contradicts no edge.
func TestPicturesAreWhole(t *testing.T) {
	for name, args := range map[string]map[string]string{"allreduce_ring": {"ranks": "8", "channels": "2", "instances": "2"}, "allreduce_allpairs": {"ranks": "8"},
		"broadcast_tree": nil, "allreduce_hierarchical": nil, "alltoall_direct": {"ranks": "12"}, "allgather_sccl_122_dgx1": nil} {
		for _, p := range stages(t, name, args) {
			whole(t, name, p)
			for _, r := range []ir.Rank{0, 3} {
				part := p.OfRank(r)
				whole(t, fmt.Sprintf("%s of rank %d", name, r), part)
				if of(part, r) != of(p, r) {
					t.Errorf("%s %s: rank %d has %d nodes of its own in its part, %d in all", name, p.Stage, r, of(part, r), of(p, r))
				}
			}
		}
	}
}

func of(p *viz.Picture, r ir.Rank) int {
	n := 0
	for i := range p.Nodes {
		if p.Lanes[p.Nodes[i].Lane].Rank == r {
			n++
		}
	}
	return n
}

func whole(t *testing.T, name string, p *viz.Picture) {
	t.Helper()
	name += " " + p.Stage.String()
	type identity struct{ lane, id, tile int32 }
	type place struct{ lane, row, col int32 }
	ids, places := map[identity]bool{}, map[place]bool{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if ids[identity{n.Lane, n.ID, n.Tile}] {
			t.Errorf("%s: node %d is there twice", name, i)
		}
		ids[identity{n.Lane, n.ID, n.Tile}] = true
		at := place{n.Lane, n.Row, n.Col}
		if p.Stage == viz.StageTimeline {
			at.col = int32(n.Begin)
		}
		if places[at] {
			t.Errorf("%s: node %d has no place of its own", name, i)
		}
		places[at] = true
		if n.Row >= p.Lanes[n.Lane].Rows || p.Stage != viz.StageTimeline && n.Col >= p.Cols {
			t.Errorf("%s: node %d is outside", name, i)
		}
	}
	turn := map[int32]int{}
	for i, v := range p.Order {
		turn[v] = i
	}
	if len(turn) != len(p.Nodes) || len(p.Order) != len(p.Nodes) {
		t.Errorf("%s: %d of %d nodes are played", name, len(turn), len(p.Nodes))
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		if e.From < 0 || int(e.From) >= len(p.Nodes) || e.To < 0 || int(e.To) >= len(p.Nodes) {
			t.Fatalf("%s: edge %d has no end", name, i)
		}
		if p.Stage != viz.StageTopology && turn[e.From] >= turn[e.To] {
			t.Errorf("%s: edge %d leads back", name, i)
		}
		if p.Stage < viz.StageTopology && p.Nodes[e.From].Col >= p.Nodes[e.To].Col {
			t.Errorf("%s: edge %d leads to the left", name, i)
		}
	}
}

// The numbers of edges are counted by hand: a ring of 4 ranks and 4 chunks.
func TestRingIsJoined(t *testing.T) {
	list := stages(t, "allreduce_ring", map[string]string{"ranks": "4"})
	for i, want := range [][3]int{ // nodes, messages, connections
		{24, 0, 0}, // 4 chunks go 3 ranks far as sums and 3 as results
		{48, 24, 0},
		{28, 24, 0}, // a send, 5 relays and a receive of each chunk
		{28, 24, 0},
		{4, 0, 4},
		{28, 24, 0},
	} {
		p := list[i]
		messages, connections := 0, 0
		for k := range p.Edges {
			switch p.Edges[k].Kind {
			case viz.EdgeMessage:
				messages++
			case viz.EdgeConnection:
				connections++
			}
		}
		if got := [3]int{len(p.Nodes), messages, connections}; got != want {
			t.Errorf("%s: got %v nodes, messages and connections, want %v", p.Stage, got, want)
		}
	}
	for _, e := range list[4].Edges {
		if e.To != (e.From+1)%4 || e.Count != 6 {
			t.Errorf("connection %d to %d has %d messages", e.From, e.To, e.Count)
		}
	}
}

// contributions of what a node moves, sorted, as rank.index.
func contributions(p *viz.Picture, v int32) []string {
	var list []string
	n := &p.Nodes[v]
	for _, id := range p.Moved[n.Moved.Start:n.Moved.End] {
		for _, c := range p.Values.Contributions(id) {
			list = append(list, fmt.Sprintf("%d.%d", c.Rank, c.Index))
		}
	}
	slices.Sort(list)
	return list
}

// A chunk is the same in every stage, also where instances cut it into pieces:
// interleaved or not, what a ring's last messages bring is the sum over all ranks
// of one chunk of the script.
func TestChunksAreFollowed(t *testing.T) {
	for _, instances := range []int32{1, 2, -2} { // negative: blocked
		d := traced(t, "allreduce_ring", map[string]string{"ranks": "4"})
		spec := *d.Spec
		spec.Instances, spec.Interleaved = max(instances, -instances), instances > 0
		for _, p := range stagesOf(t, &ir.ChunkDAG{Spec: &spec, Ops: d.Ops}) {
			if p.Stage == viz.StageTopology {
				continue
			}
			ends, alone := map[string]int{}, map[string]bool{}
			for v := range int32(len(p.Nodes)) {
				list := contributions(p, v)
				if len(list) == 1 {
					alone[list[0]] = true
				}
				if len(list)%4 == 0 && len(list) > 0 {
					index := list[0][2:]
					want := []string{"0." + index, "1." + index, "2." + index, "3." + index}
					if !slices.Equal(list, want) {
						t.Fatalf("%s: node %d moves %v, want %v", p.Stage, v, list, want)
					}
					ends[index]++
				}
			}
			if len(ends) != 4 {
				t.Errorf("%d instances, %s: results of chunks %v, want 4 of them", instances, p.Stage, ends)
			}
			// Each rank begins with the chunk before its own number.
			if want := map[string]bool{"0.3": true, "1.0": true, "2.1": true, "3.2": true}; p.Stage != viz.StageChunks && !maps.Equal(alone, want) {
				t.Errorf("%d instances, %s: chunks sent as they are: %v, want %v", instances, p.Stage, alone, want)
			}
		}
	}
	// The small program by hand: rank 0's chunk through rank 1 to rank 2; then rank 1's
	// second chunk; then rank 2's own first on top of rank 0's.
	for _, p := range small(t)[:1] {
		for v, want := range [][]string{{"0.0"}, {"0.0"}, {"1.1"}, {"0.0", "2.0"}} {
			if got := contributions(p, int32(v)); !slices.Equal(got, want) {
				t.Errorf("operation %d moves %v, want %v", v, got, want)
			}
		}
	}
}

// Steps that can never run are marked, and everything else is drawn.
func TestStuck(t *testing.T) {
	p := parsed(t, ir.ParseProgram, "program "+header+`transport slots 2 bytes 32768
window min 0 max 0
gpu 0 input=2 output=1 scratch=0
tb 0 send=1 recv=1 ch=0
0 r -> o[0] x1 from 1
1 s i[0] x1 to 1
gpu 1 input=2 output=1 scratch=1
tb 0 send=0 recv=0 ch=0
0 r -> o[0] x1 from 0
1 s i[0] x1 to 0
tb 1 send=-1 recv=-1 ch=0
0 cpy i[1] -> s[0] x1
gpu 2 input=2 output=1 scratch=0
`)
	pic, err := viz.Schedule(p)
	if err != nil {
		t.Fatal(err)
	}
	var stuck []bool
	for i := range pic.Nodes {
		stuck = append(stuck, pic.Nodes[i].Stuck)
	}
	if diff := cmp.Diff([]bool{true, true, true, true, false}, stuck); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int32{4}, pic.Order); diff != "" {
		t.Error(diff)
	}
	var b bytes.Buffer
	if err := viz.WriteText(&b, pic, viz.Terminal{}); err != nil || strings.Count(b.String(), "!") != 5 {
		t.Errorf("got %v and\n%s\nwant 4 steps marked, and the mark explained", err, b.String())
	}
}

// A page of some 20,000 steps with all stages takes less than a second of a processor's
// time, however busy the machine is, and is twice the same. The race detector makes a
// slower program of it, which is not what is measured.
func TestSpeed(t *testing.T) {
	list := stages(t, "allreduce_ring", map[string]string{"ranks": "101"})
	if n := len(list[3].Nodes); n < 20_000 {
		t.Fatalf("got %d steps, want 20,000", n)
	}
	var pages [4]bytes.Buffer
	best := time.Hour
	for i := range pages {
		start := processorTime(t)
		if err := viz.WriteHTML(&pages[i], viz.Page{Title: "ring", Pictures: list}); err != nil {
			t.Fatal(err)
		}
		best = min(best, processorTime(t)-start)
	}
	t.Logf("%d bytes in %v", pages[0].Len(), best)
	if !bytes.Equal(pages[0].Bytes(), pages[1].Bytes()) {
		t.Error("the same pictures gave two pages")
	}
	if best > time.Second && !testing.Short() {
		t.Errorf("a page of 20,000 steps took %v, want less than a second", best)
	}
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Names are anybody's: they end no element, and nothing is loaded.
func TestPageIsHarmless(t *testing.T) {
	evil := `</script><script>alert(1)</script><!--{{script}}{{css}}-->`
	p := parsed(t, ir.ParseProgram, strings.Replace("program "+header+steps, `"re\"lay"`, `"`+evil+`"`, 1))
	pic, err := viz.Schedule(p)
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := viz.WriteHTML(&page, viz.Page{Title: evil, Pictures: []*viz.Picture{pic}}); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "<!--{{") {
		t.Error("a program's name is part of the page's text")
	}
	if open, closed := strings.Count(text, "<script"), strings.Count(text, "</script>"); open != 3 || closed != 3 {
		t.Errorf("got %d and %d ends of scripts, want 3: the stage, the document, the page's own", open, closed)
	}
	for _, word := range []string{"http:", "https:", "@import", "url(", " src="} {
		if strings.Contains(text, word) {
			t.Errorf("the page has %q in it: it must need nothing else", word)
		}
	}
	var b bytes.Buffer
	if err := viz.WriteSVG(&b, pic, viz.Lanes); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.Bytes())
	b.Reset()
	p.Spec.Name = "\x1b[2J\x07evil"
	if pic, err = viz.Schedule(p); err != nil {
		t.Fatal(err)
	}
	if err := viz.WriteText(&b, pic, viz.Terminal{}); err != nil || strings.ContainsAny(b.String(), "\x1b\x07") {
		t.Errorf("a name moves the cursor: %v, %q", err, b.String())
	}
}

// A plan of all pairs over 4 ranks: each rank's first packets go to 3 others, who add
// them up and give 3 others the sum, which they unpack. A ring has a signal and a
// wait for each of its 24 messages.
func TestOneSided(t *testing.T) {
	for _, c := range []struct {
		name     string
		protocol ir.Protocol
		messages int
		last     string
	}{
		{"allreduce_allpairs", ir.LL, 24, "upkt"},
		{"allreduce_ring", ir.Simple, 24, ""},
	} {
		d := traced(t, c.name, map[string]string{"ranks": "4"})
		spec := *d.Spec
		spec.Protocol = c.protocol
		r, err := compiler.Compile(context.Background(), &ir.ChunkDAG{Spec: &spec, Ops: d.Ops}, compiler.Options{Target: ir.TargetPlain})
		if err != nil {
			t.Fatal(err)
		}
		plan, _, err := compiler.OneSided(context.Background(), r.Program, compiler.OneSidedOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := viz.Schedule(plan)
		if err != nil {
			t.Fatal(err)
		}
		whole(t, c.name, p)
		messages, results := 0, 0
		for i := range p.Edges {
			if p.Edges[i].Kind == viz.EdgeMessage {
				messages++
			}
		}
		for v := range int32(len(p.Nodes)) {
			if list := contributions(p, v); c.last != "" && strings.HasPrefix(p.Label(v), c.last) {
				index := list[0][2:]
				if want := []string{"0." + index, "1." + index, "2." + index, "3." + index}; !slices.Equal(list, want) {
					t.Errorf("%s: %s moves %v, want %v", c.name, p.Text(v), list, want)
				}
				results++
			}
		}
		if messages != c.messages || c.last != "" && results != 12 {
			t.Errorf("%s: got %d messages and %d results, want %d and 12", c.name, messages, results, c.messages)
		}
		if pic, err := viz.Connections(plan); err != nil || len(pic.Edges) != map[string]int{"allreduce_allpairs": 12, "allreduce_ring": 4}[c.name] {
			t.Errorf("%s: got %d connections, %v", c.name, len(pic.Edges), err)
		}
	}
}

// The picture in docs/pictures.md is what is drawn today.
func TestPictureOfDocs(t *testing.T) {
	var b bytes.Buffer
	if err := viz.WriteSVG(&b, stages(t, "allreduce_ring", map[string]string{"ranks": "4"})[3], viz.Lanes); err != nil {
		t.Fatal(err)
	}
	golden(t, "../../docs/pictures/ring.svg", b.Bytes())
}
