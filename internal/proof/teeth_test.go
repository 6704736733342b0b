package proof

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// faults are mistakes to be made in the checker, one at a time. The first is none.
var faults = []struct{ name, file, right, wrong string }{
	{"none", "races.go", "package checker", "package checker"},
	{"reads before a write not asked", "races.go",
		`	for c := d.reader[i]; c != ir.None; c = d.reads[c].next {
		d.ask(d.reads[c].step, false, id, true, loc)
	}
`,
		""},
	{"write before a write not asked", "races.go",
		`func (d *detector) write(id, loc, i int32) {
	if w := d.writer[i]; w != ir.None {
		d.ask(w, true, id, true, loc)
	}`,
		"func (d *detector) write(id, loc, i int32) {"},
	{"any later read stands for earlier", "races.go",
		"c != ir.None && d.m.steps[d.reads[c].step].tb == d.m.steps[id].tb",
		"c != ir.None"},
	{"itself copies are writes", "races.go",
		"func (s *step) ontoItself() bool { return",
		"func (s *step) ontoItself() bool { return false &&"},
	{"shifted ignored", "order.go",
		"return !p.shifted || !c.h.m.passedOn",
		"return true || !c.h.m.passedOn"},
	{"a wait tells of a step too many", "order.go",
		"max(mine[u-c.first], d-c.m.tbs[u].first+1)",
		"max(mine[u-c.first], d-c.m.tbs[u].first+2)"},
	{"clock of after off by one", "order.go",
		"row[u-c.first] > a-c.m.tbs[u].first",
		"row[u-c.first] >= a-c.m.tbs[u].first"},
	{"message edge missing", "order.go",
		`	if s.mate != ir.None {
		c.take(row, s.mate)
	}
`,
		""},
	{"forest off by one", "forest.go",
		"f.first[b] < f.first[a]+f.size[a]",
		"f.first[b] <= f.first[a]+f.size[a]"},
	{"forest nearby before", "forest.go",
		"for a := p.a; a <",
		"for a := max(p.a-1, f.m.tbs[f.m.steps[p.a].tb].first); a <"},
	{"forest ignores shifted", "forest.go",
		"if p.shifted {",
		"if false {"},
	{"live: reads never matter", "live.go",
		"matters = l.value[l.chunk(p.a, loc, false)]",
		"matters = false"},
	{"live: writes never matter", "live.go",
		"(p.aWrites || aUndoes):",
		"(aUndoes):"},
	{"live: reduce does not read dst", "live.go",
		"if s.kind.ReadsDst() {",
		"if false {"},
	{"live: message not followed", "live.go",
		"if s.mate != ir.None {",
		"if false {"},
	{"dead races not looked at again", "races.go",
		"	if len(dead) > 0 {",
		"	if false {"},
	{"no slots for fused", "simulate.go",
		"if out != ir.None && s.sent[out]",
		"if out != ir.None && in == ir.None && s.sent[out]"},
	{"slots off by one", "simulate.go",
		">= s.slots",
		"> s.slots"},
	{"dependencies ignored in run", "simulate.go",
		"if s.next[s.m.steps[d].tb] <= d {",
		"if s.next[s.m.steps[d].tb] < d {"},
	{"messages floor", "simulate.go",
		"return (count-1)/k + 1",
		"return count / k"},
	{"least K not judged", "regimes.go",
		"w.leastK = 1",
		"w.leastK = w.mostK"},
	{"bounds ignore count", "structure.go",
		"end := int64(pl.Index) + int64(a.Count);",
		"end := int64(pl.Index);"},
	{"post not checked", "structure.go",
		"case !tbs[d.TB].Steps[d.Step].Post:",
		"case false:"},
	{"own tb later not checked", "structure.go",
		"case d.TB == a.tb && d.Step >= a.i:",
		"case false:"},
	{"overlap not checked", "structure.go",
		"if sb == db && si != di &&",
		"if false && sb == db && si != di &&"},
	{"link not checked", "structure.go",
		"!s.p.Topo.Linked",
		"false && !s.p.Topo.Linked"},
	{"mismatch ignored", "connect.go",
		"if m.steps[s.mate].count != s.count {",
		"if false {"},
	{"unbalanced ignored", "connect.go",
		"n.sends != n.recvs &&",
		"false &&"},
	{"declared not claimed", "connect.go",
		"if decl.Send != ir.None {",
		"if false {"},
	{"second owner not seen", "connect.go",
		"if *owner == ir.None || *owner == tb {",
		"if true {"},
	{"inputs not looked at", "result.go",
		`	j.inputs()
`,
		""},
	{"multiplicity ignored", "result.go",
		"if n != j.times[i] {",
		"if i >= 0 && n == 0 {"},
	{"leftover target", "result.go",
		"return k == len(j.target)",
		"return true"},
	{"order difference unseen", "result.go",
		"j.orderDiffers || right > 1",
		"j.orderDiffers || right > 2"},
	{"chunk alias", "model.go",
		"buf, i := m.p.Coll.Canon(r, pl.Buf, pl.Index)",
		"buf, i := pl.Buf, pl.Index"},
	{"deadlock with unlimited only", "deadlock.go",
		"if known == 0 {",
		"if false {"},
	{"min slots off by one", "deadlock.go",
		"for low+1 < good {",
		"for low+2 < good {"},
	{"flags: none", "connect.go",
		"p.Protocol == ir.LL || p.Protocol == ir.LL128",
		"false"},
	{"flags: a message tells that its send is over", "order.go",
		"min(row[k], c.h.m.sentMark(mate))",
		"row[k]"},
	{"flags: a message tells nothing of its send", "order.go",
		"min(row[k], c.h.m.sentMark(mate))",
		"min(row[k], c.h.m.sentMark(mate)-1)"},
	{"flags: what is stored is sent first", "places.go",
		"return write || !s.kind.Sends()",
		"return !s.kind.Sends()"},
	{"flags: what is read is sent last", "places.go",
		"return write || !s.kind.Sends()",
		"return true"},
	{"flags: operands are read late", "places.go",
		"return write && s.mate != ir.None",
		"return s.mate != ir.None"},
	{"flags: everything begins early", "places.go",
		"return write && s.mate != ir.None",
		"return false"},
	{"flags: chunks in order", "places.go",
		"return i != j",
		"return i > j"},
	{"flags: chunks in the other order", "places.go",
		"return i != j",
		"return i < j"},
	{"flags: any chunk that is passed on", "places.go",
		"return !p.shifted || c.knownOnTheWay(p, mark)",
		"return true"},
	{"flags: no other chunk, though it is held up", "places.go",
		"return !p.shifted || c.knownOnTheWay(p, mark)",
		"return !p.shifted"},
	{"flags: a sender knows nothing", "places.go",
		"		return c.knows(mate, p.a, mark)",
		"		return false"},
	{"flags: the forest ends sends early", "places.go",
		"		from++ // begins when a is over",
		"		_ = from"},
	{"flags: the forest reads late", "places.go",
		"		if to--; to <",
		"		if to <"},
	{"Direct: no exchanges", "direct.go",
		"	return tb.Exchanges(s - b.first)",
		"	return false && tb.Exchanges(s-b.first)"},
	{"Direct: an exchange ends in parts", "direct.go",
		"		d.after(mate, ending)",
		"		d.after(s, arrival)"},
	{"Direct: what follows waits for no receive", "direct.go",
		"		d.after(mate, part)",
		"		d.after(s, part)"},
	{"Direct: pushes to who is not there", "direct.go",
		"		d.after(d.to[s], arrival)",
		"		d.after(s, arrival)"},
	{"Direct: pulls what is not ready", "direct.go",
		"		d.after(st.mate, part)",
		"		d.after(st.mate, arrival)"},
	{"Direct: dependencies ignored", "direct.go",
		"		d.after(x, ending)",
		"		d.after(x, arrival)"},
	{"Direct: a source is left before it is pulled", "direct.go",
		"		d.after(d.to[s], ending)",
		"		d.after(s, part)"},
	{"Direct: everything has memory", "direct.go",
		"if d.memoryless(f); f.any() {",
		"if false {"},
	{"Direct: shifted places of a peer", "direct.go",
		"if d.overlaps(f); f.any() {",
		"if false {"},
	{"Direct: rcs sends what it had", "direct.go",
		"	if st := &d.m.steps[s]; st.kind != ir.Send {",
		"	if st := &d.m.steps[s]; st.kind == ir.RecvReduceCopySend {"},
	{"Direct: rrcs that is pulled pushes", "direct.go",
		"return d.to[s] != ir.None && !d.pulled(s)",
		"return d.to[s] != ir.None && (!d.pulled(s) || d.m.steps[s].kind == ir.RecvReduceCopySend)"},
	{"Direct: a rank's clock off by one", "directorder.go",
		"	return c.slab[c.row[b]+ta-m.ranks[r].firstTB] > a-m.tbs[ta].first",
		"	return c.slab[c.row[b]+ta-m.ranks[r].firstTB] >= a-m.tbs[ta].first"},
	{"Direct: the two of an exchange in order", "directorder.go",
		"return a < b && c.d.partner(a) != b",
		"return a < b"},
	{"Direct: a wait tells of a step too many", "directorder.go",
		"			over := x - m.tbs[u].first + 1",
		"			over := x - m.tbs[u].first + 2"},
	{"Direct: clocks off by one", "directorder.go",
		"<= a-d.m.tbs[d.m.steps[a].tb].first {",
		"< a-d.m.tbs[d.m.steps[a].tb].first {"},
	{"Direct: reads before a write not asked", "directraces.go",
		"		s.ask(s.reads[c].step, false, id, true, loc)",
		"		_ = c"},
	{"Direct: write before a write not asked", "directraces.go",
		"		s.ask(w, true, id, true, loc)",
		"		_ = w"},
	{"Direct: any later read stands for earlier", "directraces.go",
		"c != ir.None && s.tb(s.reads[c].step) == s.tb(id)",
		"c != ir.None"},
	{"Direct: itself copies are writes", "directraces.go",
		"return d.m.steps[t.step].ontoItself() }",
		"return false && d.m.steps[t.step].ontoItself() }"},
	{"Direct: dead races not looked at again", "directraces.go",
		"	if len(dead) > 0 {",
		"	if false {"},
	{"Direct: the second place never matters", "directraces.go",
		"l.value[c] = l.value[c] || now[at+j]",
		"l.value[c] = l.value[c] || k == 0 && now[at+j]"},
	{"Direct: what is read never matters", "directraces.go",
		"			matters = l.readAt(p.a, loc)",
		"			matters = false"},
}

// TestTeeth breaks the checker in every one of these ways and demands that the tests
// of this package fail then. It takes minutes, so it runs only if MSCCLSH_TEETH is 1.
func TestTeeth(t *testing.T) {
	if setting("MSCCLSH_TEETH", 0) == 0 {
		t.Skip("takes minutes: set MSCCLSH_TEETH=1")
	}
	dir, err := filepath.Abs("../../checker")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			path := filepath.Join(dir, f.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), f.right) {
				t.Fatalf("%s has changed: no %q in it", f.file, f.right)
			}
			tmp := t.TempDir()
			replaced := filepath.Join(tmp, f.file)
			overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: replaced}})
			if err != nil {
				t.Fatal(err)
			}
			files := map[string][]byte{replaced: []byte(strings.Replace(string(text), f.right, f.wrong, 1)),
				filepath.Join(tmp, "overlay.json"): overlay}
			for name, data := range files {
				if err := os.WriteFile(name, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("go", "test", "-vet=off", "-overlay", filepath.Join(tmp, "overlay.json"),
				"-failfast", "-run", "^Test(Oracles|Orders|OrderFiles|RandomPrograms|RandomDirectPrograms|Mutants|DirectMutants)$", ".")
			cmd.Env = append(os.Environ(), "MSCCLSH_PROGRAMS=3000", "MSCCLSH_MUTANTS=4")
			out, err := cmd.CombinedOutput()
			switch {
			case (err == nil) != (f.right == f.wrong):
				t.Errorf("failed: %v, want %v", err != nil, f.right != f.wrong)
			case strings.Contains(string(out), "build failed"):
				t.Errorf("it doesn't compile:\n%s", out)
			}
		})
	}
}
