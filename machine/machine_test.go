package machine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/machine"
)

func load(t *testing.T, name string, nodes int32) *ir.Topology {
	t.Helper()
	p, err := machine.Topology(name, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func gbps(p *ir.Topology, src, dst int32) float64 { return p.Bandwidth[src*p.Ranks+dst] }

// Inside a node: how many GPUs each reaches, and the bandwidth of all its links
// together. V100 has 6 lanes of 25 GB/s, A100 12, H100 18; behind a switch each
// of the others is reached at all of it.
func TestOneNode(t *testing.T) {
	for _, c := range []struct {
		name    string
		gpus    int32
		degree  int
		highest float64 // to one GPU
		lanes   float64 // GB/s of all links together, or of the port of a switch
	}{
		{"dgx1", 8, 4, 50, 6 * 25},
		{"ndv2", 8, 4, 50, 6 * 25},
		{"dgx2", 16, 15, 6 * 25, 6 * 25},
		{"ndv4", 8, 7, 12 * 25, 12 * 25},
		{"hgx_h100", 8, 7, 18 * 25, 18 * 25},
	} {
		p := load(t, c.name, 1)
		if p.Ranks != c.gpus || p.Name != c.name {
			t.Errorf("%s: got %q with %d ranks, want %d", c.name, p.Name, p.Ranks, c.gpus)
		}
		for src := range p.Ranks {
			degree, sum, top := 0, 0.0, 0.0
			for dst := range p.Ranks {
				b := gbps(p, src, dst)
				if b != gbps(p, dst, src) {
					t.Errorf("%s: %d and %d are linked in one direction only", c.name, src, dst)
				}
				if b > 0 {
					degree++
				}
				sum, top = sum+b, max(top, b)
			}
			if degree == int(p.Ranks)-1 {
				sum /= float64(degree) // a switch: the port is shared by all pairs
			}
			if gbps(p, src, src) != 0 || degree != c.degree || sum != c.lanes || top != c.highest {
				t.Errorf("%s GPU %d: got degree %d, %g GB/s in all, %g at most, want %d, %g, %g", c.name, src, degree, sum, top, c.degree, c.lanes, c.highest)
			}
		}
	}
}

// DGX-1's mesh: two quads that are complete inside, each GPU with one partner in
// the other quad, and two rings of double links.
func TestHybridCubeMesh(t *testing.T) {
	p := load(t, "dgx1", 1)
	double := map[int32][]int32{0: {1, 4}, 1: {0, 3}, 2: {3, 6}, 3: {1, 2}, 4: {0, 5}, 5: {4, 7}, 6: {2, 7}, 7: {5, 6}}
	partner := []int32{4, 5, 6, 7, 0, 1, 2, 3}
	for src := range int32(8) {
		for dst := range int32(8) {
			want := 0.0
			switch {
			case src == dst:
			case slices.Contains(double[src], dst):
				want = 50
			case src/4 == dst/4 || partner[src] == dst:
				want = 25
			}
			if got := gbps(p, src, dst); got != want {
				t.Errorf("%d to %d: got %g GB/s, want %g", src, dst, got, want)
			}
		}
	}
	if p.Linked(0, 5) || !p.Linked(0, 4) {
		t.Error("0 must reach 4 and not 5")
	}
}

// Between nodes any GPU reaches any other, at the speed of its network card.
func TestNodes(t *testing.T) {
	for _, c := range []struct {
		name string
		nic  float64 // GB/s
	}{{"dgx1", 12.5}, {"ndv2", 12.5}, {"dgx2", 12.5}, {"ndv4", 25}, {"hgx_h100", 50}} {
		one, three := load(t, c.name, 1), load(t, c.name, 3)
		n := one.Ranks
		if three.Ranks != 3*n || three.Name != c.name+" x3" {
			t.Errorf("got %q with %d ranks", three.Name, three.Ranks)
		}
		for src := range three.Ranks {
			for dst := range three.Ranks {
				want := c.nic
				if src/n == dst/n {
					want = gbps(one, src%n, dst%n)
				}
				if got := gbps(three, src, dst); got != want {
					t.Fatalf("%s: %d to %d: got %g GB/s, want %g", c.name, src, dst, got, want)
				}
			}
		}
	}
}

func TestNames(t *testing.T) {
	if got, want := machine.Names(), []string{"dgx1", "dgx2", "hgx_h100", "ndv2", "ndv4"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, name := range machine.Names() {
		m, err := machine.Load(name)
		if err != nil {
			t.Errorf("%v", err)
		} else if m.Description == "" {
			t.Errorf("%s has no description", name)
		}
	}
}

func TestErrors(t *testing.T) {
	const tail = `"sources": ["s"], "gpus": 2`
	decode := func(s string) error { _, err := machine.Decode(strings.NewReader(s), "m.json"); return err }
	named := func(name string, nodes int32) error { _, err := machine.Topology(name, nodes); return err }
	for _, c := range []struct {
		err  error
		want string
	}{
		{named("dgx9", 1), "topology: unknown machine \"dgx9\"\n    known machines: dgx1, dgx2, hgx_h100, ndv2, ndv4"},
		{named("../machine", 1), `topology: unknown machine "../machine"`},
		{named("dgx1", 0), "topology: got 0 nodes of dgx1, want 1 to 512"},
		{named("dgx2", 257), "topology: got 257 nodes of dgx2, want 1 to 256"},
		{decode(`{"name": "m", ` + tail + `, "color": 1}`), `m.json: machine: json: unknown field "color"`},
		{decode(`{"name": "m", ` + tail + `} {}`), `m.json: machine: there is more after the description`},
		{decode(`{"name": "m"`), `m.json: machine: unexpected EOF`},
		{decode(`{` + tail + `}`), `m.json: machine "": it needs a name and the sources of its numbers`},
		{decode(`{"name": "m", "gpus": 2}`), `m.json: machine "m": it needs a name and the sources of its numbers`},
		{decode(`{"name": "m", "sources": ["s"]}`), `m.json: machine "m": got 0 GPUs, want 1 to 4096`},
		{decode(`{"name": "m", ` + tail + `, "links": [{"a": 0, "b": 2, "gbps": 1}]}`), `m.json: machine "m": link 0-2: GPU 2 is not one of 2`},
		{decode(`{"name": "m", ` + tail + `, "links": [{"a": 1, "b": 1, "gbps": 1}]}`), `m.json: machine "m": link 1-1 names GPU 1 twice`},
		{decode(`{"name": "m", ` + tail + `, "links": [{"a": 0, "b": 1, "gbps": 1}, {"a": 1, "b": 0, "gbps": 1}]}`), `m.json: machine "m": link 1-0 is there twice`},
		{decode(`{"name": "m", ` + tail + `, "nics": [{"name": "n", "gpus": [0], "gbps": 0}]}`), `m.json: machine "m": nic n: got 0 GB/s, want more than 0`},
		{decode(`{"name": "m", ` + tail + `, "switches": [{"name": "n", "gpus": [], "gbps": 1}]}`), `m.json: machine "m": switch n joins no GPU`},
	} {
		var m *diag.Message
		if c.err == nil || !strings.HasPrefix(c.err.Error(), c.want) || !errors.As(c.err, &m) {
			t.Errorf("got  %v\nwant %s", c.err, c.want)
		}
	}
}

// A GPU without a network card near it reaches its own node alone.
func TestWithoutNIC(t *testing.T) {
	m, err := machine.Decode(strings.NewReader(`{"name": "m", "sources": ["s"], "gpus": 2,
		"links": [{"a": 0, "b": 1, "gbps": 10}], "nics": [{"name": "n", "gpus": [1], "gbps": 5}]}`), "m.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Topology(2)
	if err != nil {
		t.Fatal(err)
	}
	for src := range ir.Rank(4) {
		for dst := range ir.Rank(4) {
			want := src/2 == dst/2 || src%2 == 1 && dst%2 == 1
			if p.Linked(src, dst) != want {
				t.Errorf("%d to %d: want linked %v", src, dst, want)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range machine.Names() {
		f.Add([]byte(`{"name": "` + name + `", "sources": ["s"], "gpus": 2, "nics": [{"name": "n", "gpus": [0, 1], "gbps": 5}]}`))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := machine.Decode(strings.NewReader(string(b)), "m.json")
		if err != nil || m.GPUs > 64 {
			return
		}
		if _, err := m.Topology(2); err != nil {
			t.Errorf("a machine that was accepted has no topology: %v", err)
		}
	})
}
