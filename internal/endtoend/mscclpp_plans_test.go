package endtoend

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/internal/handed"
	"github.com/mscclsh/mscclsh/ir"
	"github.com/mscclsh/mscclsh/ir/plan"
)

// peerPlan is a plan that MSCCL++ made, and the call that made it.
type peerPlan struct {
	name string
	data []byte
	job  job
}

// sizesInNames are the flags that the last part of a handed plan's name stands
// for, such as g4_pn2_tbg2 of multi_node__allgather_tbg__g4_pn2_tbg2.
var sizesInNames = []struct{ form, flags string }{
	{"g%d_pn%d_tbg%d", "--num_gpus %d --gpus_per_node %d --tbg_size %d"},
	{"n%dx%d", "--nnodes %d --gpus_per_node %d"},
	{"2x%d", "--gpus_per_node %d"},
	{"g%d", "--num_gpus %d"},
}

// handedPlans are those that lie beside the module.
func handedPlans(t testing.TB, dir string) []peerPlan {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(handed.Plans(t), "dsl", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans: %v", err)
	}
	var list []peerPlan
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		p := peerPlan{name: strings.TrimSuffix(filepath.Base(f), ".json"), data: data}
		if p.job, err = madeBy(dir, p.name); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// madeBy is the call that made the plan of that name.
func madeBy(dir, name string) (job, error) {
	parts := strings.Split(name, "__")
	for n := len(parts); n > 0; n-- {
		script := languageTests + "/" + strings.Join(parts[:n], "/") + ".py"
		if parts[0] == "executor_tests" {
			script = executorTests + "/" + strings.Join(parts[1:n], "/") + ".py"
		}
		text, err := os.ReadFile(filepath.Join(dir, script))
		if err != nil {
			continue
		}
		j := job{script: script}
		if strings.Contains(string(text), `"--name"`) {
			j.args = []string{"--name", strings.Join(parts[:n], "__")}
		}
		if n < len(parts) {
			flags, ok := flagsOf(parts[n])
			if !ok {
				return j, fmt.Errorf("%s: what %s stands for is unknown", name, parts[n])
			}
			j.args = append(j.args, flags...)
		}
		return j, nil
	}
	return job{}, fmt.Errorf("%s: no script in %s", name, dir)
}

func flagsOf(sizes string) ([]string, bool) {
	for _, s := range sizesInNames {
		n := make([]int, strings.Count(s.form, "%d"))
		to := make([]any, len(n))
		for i := range n {
			to[i] = &n[i]
		}
		if got, err := fmt.Sscanf(sizes, s.form, to...); err != nil || got != len(n) {
			continue
		}
		values := make([]any, len(n))
		for i := range n {
			values[i] = n[i]
		}
		if fmt.Sprintf(s.form, values...) == sizes {
			return strings.Fields(fmt.Sprintf(s.flags, values...)), true
		}
	}
	return nil, false
}

// morePlans are those of a folder that scripts/mscclpp-plans.sh filled: index.tsv
// has a line for each file, with the script and its arguments.
func morePlans(t testing.TB) []peerPlan {
	t.Helper()
	dir := os.Getenv("MSCCLSH_MSCCLPP_PLANS")
	if dir == "" {
		return nil
	}
	index, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var list []peerPlan
	for line := range strings.Lines(string(index)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		data, err := os.ReadFile(filepath.Join(dir, f[0]))
		if err != nil || len(f) < 3 {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, peerPlan{f[0], data, job{f[1], strings.Fields(f[2])}})
	}
	return list
}

// listing is a one-sided program written out without what carries no meaning:
// the numbers of channels across kinds, of barriers and of groups that are alike,
// the lists of remote buffers, positions. Its sections are one for the whole program, one for each
// rank and one for each thread block.
type listing struct {
	groups []string // switch groups that differ
	titles []string
	lines  map[string][]string
}

func list(p *ir.Program) *listing {
	l := &listing{lines: map[string][]string{}}
	o := p.OneSided
	l.add("program", fmt.Sprintf("%s in place %t, packets %t, threads %d, align %d, double %t, reuse %t, %d to %d bytes", p.Coll, p.Coll.InPlace,
		o.Packets, o.ThreadsPerBlock, o.Alignment, o.DoubleScratch, o.ReuseResources, p.MinBytes, p.MaxBytes))
	groups := make([]int, len(o.Groups))
	for i := range o.Groups {
		text := fmt.Sprintf("buffer %d of %v", o.Groups[i].Buf, o.Groups[i].Ranks)
		if groups[i] = slices.Index(l.groups, text); groups[i] < 0 {
			groups[i] = len(l.groups)
			l.groups = append(l.groups, text)
			l.add("program", fmt.Sprintf("group %d: %s", groups[i], text))
		}
	}
	for g := range o.GPUs {
		l.rank(p, g, groups)
	}
	return l
}

func (l *listing) add(title string, lines ...string) {
	if _, ok := l.lines[title]; !ok {
		l.titles = append(l.titles, title)
	}
	l.lines[title] = append(l.lines[title], lines...)
}

func (l *listing) rank(p *ir.Program, g int, groups []int) {
	title := fmt.Sprintf("rank %d", g)
	gpu := &p.OneSided.GPUs[g]
	n := &numbers{p: p, gpu: gpu, groups: groups, barriers: map[int32]int{}}
	l.add(title, fmt.Sprintf("%d in, %d out, %d scratch", p.GPUs[g].Input, p.GPUs[g].Output, p.GPUs[g].Scratch))
	peers := map[ir.ChannelKind][]ir.Rank{}
	for _, c := range gpu.Channels {
		n.channels = append(n.channels, len(peers[c.Kind]))
		peers[c.Kind] = append(peers[c.Kind], c.Peer)
	}
	l.add(title, fmt.Sprintf("memory %v", peers[ir.ChannelMemory]), fmt.Sprintf("port %v", peers[ir.ChannelPort]), fmt.Sprintf("semaphores %v", gpu.Semaphores))
	for b, span := range gpu.Blocks {
		l.add(fmt.Sprintf("rank %d tb %d", g, b), n.ops(ir.Rank(g), span, "")...)
	}
}

// numbers writes the operations of one rank.
type numbers struct {
	p        *ir.Program
	gpu      *ir.OneSidedGPU
	channels []int // by index, the number among channels of its kind
	groups   []int // by index, the number among groups that differ
	barriers map[int32]int
}

func (n *numbers) ops(rank ir.Rank, span ir.Span, indent string) []string {
	var lines []string
	for i := span.Start; i < span.End; i++ {
		op := &n.p.OneSided.Ops[i]
		line := n.p.OpString(rank, i)
		refs := slices.Clone(n.p.OneSided.RefsOf(op))
		for k, r := range refs {
			switch {
			case op.Via == ir.ChannelMemory || op.Via == ir.ChannelPort:
				refs[k] = int32(n.channels[r])
			case op.Kind == ir.OpBarrier:
				if _, ok := n.barriers[r]; !ok {
					n.barriers[r] = len(n.barriers)
				}
				refs[k] = int32(n.barriers[r])
			}
		}
		if len(refs) > 0 {
			was := " on " + strings.Trim(fmt.Sprint(n.p.OneSided.RefsOf(op)), "[]")
			line = strings.Replace(line, was, " on "+strings.Trim(fmt.Sprint(refs), "[]"), 1)
		}
		for _, a := range slices.Concat(n.p.OneSided.Sources(op), n.p.OneSided.Destinations(op)) {
			if a.Group != ir.None {
				line = strings.ReplaceAll(line, fmt.Sprintf("group %d.", a.Group), fmt.Sprintf("group #%d.", n.groups[a.Group]))
			}
		}
		lines = append(lines, indent+strings.ReplaceAll(line, "group #", "group "))
		if op.Kind == ir.OpPipeline {
			lines = append(lines, n.ops(rank, op.Body, indent+"  ")...)
		}
	}
	return lines
}

// differences are the sections that theirs and ours differ in, the first few.
func differences(theirs, ours *listing) []string {
	titles := slices.Concat(theirs.titles, ours.titles)
	slices.Sort(titles)
	var found []string
	for _, title := range slices.Compact(titles) {
		a, b := theirs.lines[title], ours.lines[title]
		if !slices.Equal(a, b) {
			found = append(found, fmt.Sprintf("%s:\n  theirs\n    %s\n  ours\n    %s", title, strings.Join(a, "\n    "), strings.Join(b, "\n    ")))
		}
	}
	return found[:min(len(found), 3)]
}

// The kinds of differences between plans of one script. docs/formats.md, "Plans
// beside MSCCL++'s own", explains each.
const (
	theyRefuseTheirs = "an operation that no executor runs"
	weKeepLimits     = "more than the executor has room for: compared without its limits"
	weKeepTheLast    = "a result that the next operation overwrites"
	weHaveABlock     = "a rank that does nothing"
)

// known writes ours as MSCCL++ would where the difference from theirs is of a known
// kind, and says which kinds there are.
func known(theirs, ours *listing) (*listing, []string) {
	out := &listing{lines: map[string][]string{}}
	kinds := map[string]bool{}
	for _, title := range ours.titles {
		_, both := theirs.lines[title]
		if strings.HasSuffix(title, " tb 0") && !both && slices.Equal(ours.lines[title], []string{"nop"}) {
			kinds[weHaveABlock] = true
			continue
		}
		out.add(title, joined(ours.lines[title], kinds)...)
	}
	return out, slices.Sorted(maps.Keys(kinds))
}

// joined joins operations that MSCCL++ joins and we don't.
func joined(lines []string, kinds map[string]bool) []string {
	var out []string
	for _, line := range lines {
		out = append(out, line)
		for len(out) > 1 {
			n := len(out)
			before := n - 2
			if out[before] == "nop" && before > 0 {
				before--
			}
			text, kind := joinedLine(out[before], out[n-1])
			if kind == "" {
				break
			}
			kinds[kind] = true
			out = append(out[:before], text)
		}
	}
	return out
}

// An operation's line: what it is, on which channels, from where, to where, which
// part.
var opLine = regexp.MustCompile(`^(\S+(?: (?:memory|port|switch))?(?: (?:sum|min|max))?)(?: on ([\d ]+))?(?: (\S.*?)(?: -> (.+?))?)?( part .*)?$`)

// joinedLine is what MSCCL++ makes of two neighbors that are two here, and why they are
// two; "" for others.
func joinedLine(a, b string) (text, kind string) {
	x, y := opLine.FindStringSubmatch(a), opLine.FindStringSubmatch(b)
	if x == nil || y == nil || x[1] != y[1] || x[5] != y[5] {
		return "", ""
	}
	name, _, _ := strings.Cut(x[1], " ")
	switch name {
	case "get":
		if strings.Contains(", "+x[4]+",", ", "+y[4]+",") {
			return x[1] + " " + x[3] + ", " + y[3] + " -> " + x[4] + ", " + y[4], weKeepTheLast
		}
	case "re", "rre", "repkt":
		first, _, _ := strings.Cut(x[3], ", ")
		if rest, ok := strings.CutPrefix(y[3], first+", "); ok && x[4] == y[4] && x[4] != first {
			return x[1] + " " + x[3] + ", " + rest + " -> " + x[4] + x[5], weKeepTheLast
		}
	}
	return "", ""
}

// beyondLimits reports whether a plan overflows one of the executor's tables.
func beyondLimits(p *ir.Program) bool {
	return slices.ContainsFunc(diag.Messages(plan.Refuse(p)), func(m *diag.Message) bool { return m.Code == "plan-limit" })
}

// For every plan of MSCCL++'s whose script is at hand, ours of the same script and
// arguments has the same operations in every thread block, but for the known kinds
// of differences.
func TestPlansBesideMSCCLPP(t *testing.T) {
	dir := checkout(t)
	same, count := 0, map[string]int{}
	plans := append(handedPlans(t, dir), morePlans(t)...)
	for _, pl := range plans {
		theirs, err := plan.Read(bytes.NewReader(pl.data), plan.Options{File: pl.name})
		if _, ours := compileScript(dir, pl.job.script, pl.job.args, 0); err != nil && ours != nil {
			count[theyRefuseTheirs]++
			continue
		}
		if err != nil {
			t.Errorf("%s: theirs: %v", pl.name, err)
			continue
		}
		target := ir.Target(0)
		if beyondLimits(theirs.Program) {
			target = ir.TargetNative
		}
		ours, err := compileScript(dir, pl.job.script, pl.job.args, target)
		if err != nil {
			t.Errorf("%s: ours: %v", pl.name, err)
			continue
		}
		their := list(theirs.Program)
		as, kinds := known(their, list(ours))
		if target == ir.TargetNative {
			kinds = append(kinds, weKeepLimits)
		}
		if d := differences(their, as); d != nil {
			t.Errorf("%s (%s):\n%s", pl.name, pl.job, strings.Join(d, "\n"))
		}
		for _, k := range kinds {
			count[k]++
		}
		if kinds == nil {
			same++
		}
	}
	t.Logf("%d of %d plans are the same", same, len(plans))
	for _, k := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%d have %s", count[k], k)
	}
}
