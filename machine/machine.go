package machine

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

//go:embed data/*.json
var files embed.FS

// maxRanks bounds Topology, whose matrix has a number for each pair.
const maxRanks = 4096

// Machine is one node of a cluster.
type Machine struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Sources     []string `json:"sources"` // where the numbers come from
	GPUs        int32    `json:"gpus"`
	Links       []Link   `json:"links"`
	Switches    []Switch `json:"switches"`
	NICs        []NIC    `json:"nics"`
}

// Link joins two GPUs directly, in both directions.
type Link struct {
	A    int32   `json:"a"`
	B    int32   `json:"b"`
	GBps float64 `json:"gbps"` // each direction, all its lanes together
}

// Switch joins GPUs all to all.
type Switch struct {
	Name string  `json:"name"`
	GPUs []int32 `json:"gpus"`
	GBps float64 `json:"gbps"` // of one GPU, each direction
}

// NIC is a network card and the GPUs that it is nearest to, which share it.
type NIC struct {
	Name string  `json:"name"`
	GPUs []int32 `json:"gpus"`
	GBps float64 `json:"gbps"` // each direction
}

// Names lists the machines that are known, in alphabetical order.
func Names() []string {
	entries, err := files.ReadDir("data")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// Load reads the description of a machine by its name.
func Load(name string) (*Machine, error) {
	if !slices.Contains(Names(), name) {
		return nil, diag.Errorf(diag.Pos{}, "unknown-machine", "topology: unknown machine %q", name).
			Suggest("known machines: %s", strings.Join(Names(), ", "))
	}
	file := path.Join("data", name+".json")
	data, err := files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading machine %s: %w", name, err)
	}
	m, err := Decode(bytes.NewReader(data), file)
	if err != nil {
		return nil, err
	}
	if m.Name != name {
		return nil, diag.Errorf(diag.Pos{File: file}, "machine-file", "the machine is named %q, its file %q", m.Name, name)
	}
	return m, nil
}

// Decode reads and checks one description; file is its name in messages.
// Unknown fields, further values and numbers out of range are errors.
func Decode(r io.Reader, file string) (*Machine, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	m := &Machine{}
	if err := dec.Decode(m); err != nil {
		return nil, diag.Errorf(diag.Pos{File: file}, "machine-file", "machine: %v", err)
	}
	if err := dec.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return nil, diag.Errorf(diag.Pos{File: file}, "machine-file", "machine: there is more after the description")
	}
	if err := m.check(); err != nil {
		return nil, diag.Errorf(diag.Pos{File: file}, "machine-file", "machine %q: %v", m.Name, err)
	}
	return m, nil
}

func (m *Machine) check() error {
	if m.Name == "" || len(m.Sources) == 0 {
		return errors.New("it needs a name and the sources of its numbers")
	}
	if m.GPUs < 1 || m.GPUs > maxRanks {
		return fmt.Errorf("got %d GPUs, want 1 to %d", m.GPUs, maxRanks)
	}
	seen := map[[2]int32]bool{}
	for _, l := range m.Links {
		if err := m.checkPart(fmt.Sprintf("link %d-%d", l.A, l.B), []int32{l.A, l.B}, l.GBps); err != nil {
			return err
		}
		pair := [2]int32{min(l.A, l.B), max(l.A, l.B)}
		if seen[pair] {
			return fmt.Errorf("link %d-%d is there twice", l.A, l.B)
		}
		seen[pair] = true
	}
	for _, s := range m.Switches {
		if err := m.checkPart("switch "+s.Name, s.GPUs, s.GBps); err != nil {
			return err
		}
	}
	for _, n := range m.NICs {
		if err := m.checkPart("nic "+n.Name, n.GPUs, n.GBps); err != nil {
			return err
		}
	}
	return nil
}

// checkPart checks the GPUs and the bandwidth of a link, switch or NIC.
func (m *Machine) checkPart(what string, gpus []int32, gbps float64) error {
	if !(gbps > 0) || math.IsInf(gbps, 0) {
		return fmt.Errorf("%s: got %g GB/s, want more than 0", what, gbps)
	}
	if len(gpus) == 0 {
		return fmt.Errorf("%s joins no GPU", what)
	}
	for i, g := range gpus {
		if g < 0 || g >= m.GPUs {
			return fmt.Errorf("%s: GPU %d is not one of %d", what, g, m.GPUs)
		}
		if slices.Contains(gpus[:i], g) {
			return fmt.Errorf("%s names GPU %d twice", what, g)
		}
	}
	return nil
}

// nicOf is the bandwidth of the fastest NIC near GPU g, 0 without one.
func (m *Machine) nicOf(g int32) float64 {
	best := 0.0
	for _, n := range m.NICs {
		if slices.Contains(n.GPUs, g) {
			best = max(best, n.GBps)
		}
	}
	return best
}

// Topology is who reaches whom in nodes of this machine: within a node by links
// and switches, between nodes from any GPU to any, where both have a NIC near
// them, at the NICs' bandwidth. Ranks count the GPUs node by node.
func (m *Machine) Topology(nodes int32) (*ir.Topology, error) {
	if nodes < 1 || nodes > maxRanks/m.GPUs {
		return nil, diag.Errorf(diag.Pos{}, "topology-size", "topology: got %d nodes of %s, want 1 to %d", nodes, m.Name, maxRanks/m.GPUs)
	}
	name := m.Name
	if nodes > 1 {
		name = fmt.Sprintf("%s x%d", m.Name, nodes)
	}
	t := ir.NewTopology(name, nodes*m.GPUs)
	for first := ir.Rank(0); first < ir.Rank(t.Ranks); first += ir.Rank(m.GPUs) {
		m.linkNode(t, first)
	}
	nic := make([]float64, m.GPUs)
	for g := range nic {
		nic[g] = m.nicOf(int32(g))
	}
	for src := range t.Ranks {
		for dst := range t.Ranks {
			if src/m.GPUs != dst/m.GPUs {
				t.Link(ir.Rank(src), ir.Rank(dst), min(nic[src%m.GPUs], nic[dst%m.GPUs]))
			}
		}
	}
	return t, nil
}

// linkNode links the GPUs of the node whose first rank is first.
func (m *Machine) linkNode(t *ir.Topology, first ir.Rank) {
	for _, l := range m.Links {
		a, b := first+ir.Rank(l.A), first+ir.Rank(l.B)
		t.Link(a, b, l.GBps)
		t.Link(b, a, l.GBps)
	}
	for _, s := range m.Switches {
		for _, a := range s.GPUs {
			for _, b := range s.GPUs {
				if a != b {
					t.Link(first+ir.Rank(a), first+ir.Rank(b), s.GBps)
				}
			}
		}
	}
}

// Topology is the topology of nodes machines of the given name; see
// Machine.Topology.
func Topology(name string, nodes int32) (*ir.Topology, error) {
	m, err := Load(name)
	if err != nil {
		return nil, err
	}
	return m.Topology(nodes)
}
