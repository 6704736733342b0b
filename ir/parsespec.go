package ir

import (
	"fmt"
	"strconv"
)

// spec reads the header: the opening line of the form and every line up to the
// first that is not one of the header, which the next call of next hands out
// again. Extra reads the lines that only one form has.
func (t *textReader) spec(word string, extra func(key string) bool) *Spec {
	s := &Spec{Instances: 1}
	if !t.next() {
		t.failf("the file is empty, want %q", word)
		return nil
	}
	t.expect(word)
	s.Name = t.quoted()
	t.end()
	if !t.next() {
		t.failf("got the end of the file, want the collective")
		return nil
	}
	s.Coll = t.collective()
	seen := map[string]bool{}
	for t.next() {
		from := t.at
		key := string(t.word())
		if once := key != "buffer" && key != "link" && key != "group"; once && seen[key] {
			t.at = from
			t.failf("second line %q", key)
			return nil
		}
		seen[key] = true
		if !t.specLine(s, key, word == programWord) && !extra(key) {
			t.again = true
			break
		}
		t.end()
	}
	for _, key := range [...]string{"topology", "protocol", "policy"} {
		if !seen[key] {
			t.failFile(fmt.Errorf("the header has no line %q", key))
		}
	}
	if t.err != nil {
		return nil
	}
	return s
}

// specLine reads one line of the header, of a scheduled program or another form;
// false if key is none of its words.
func (t *textReader) specLine(s *Spec, key string, scheduled bool) bool {
	switch key {
	case "topology":
		s.Topo = t.topology()
	case "protocol":
		t.spaces()
		from := t.at
		word := string(t.word())
		p, err := ParseProtocol(word)
		if word == AutoProtocol.String() {
			p, err = AutoProtocol, nil
			if scheduled {
				err = errAuto
			}
		}
		if err != nil {
			t.at = from
			t.failf("%v", err)
		}
		s.Protocol = p
	case "policy":
		t.policy(s)
	case "buffer":
		t.buffer(s)
	default:
		return false
	}
	return true
}

func (t *textReader) policy(s *Spec) {
	if t.accept(Manual.String()) {
		s.Policy = Manual
	} else {
		t.expect(Auto.String())
	}
	s.Instances = t.number("instances", 1)
	for _, f := range specFlags(s) {
		*f.value = t.accept(f.word)
	}
}

func (t *textReader) buffer(s *Spec) {
	from := t.at
	name := t.quoted()
	id := BufferID(len(s.Buffers))
	if id >= FirstScratch {
		if _, ok := t.buffers[name]; ok {
			t.at = from
			t.failf("second scratch buffer %q", name)
		}
		t.buffers[name] = id
	}
	if t.err != nil {
		return
	}
	t.spaces()
	from = t.at
	n, total := int(s.Coll.Ranks), int64(0)
	chunks := t.runs(0, n, n)
	for _, c := range chunks {
		total += int64(c)
	}
	t.hold(&t.listed, from, total)
	s.Buffers = append(s.Buffers, Buffer{Name: name, Chunks: chunks})
}

// collective reads the line of that name and those that belong to it.
func (t *textReader) collective() *Collective {
	t.expect("collective")
	t.spaces()
	from := t.at
	kind, err := ParseCollectiveKind(string(t.word()))
	if err != nil {
		t.at = from
		t.failf("%v", err)
	}
	c := NewCollective(kind, 0, 0, false)
	if t.accept("name") {
		c.Name = t.quoted()
	}
	t.expect("ranks")
	c.Ranks = int32(t.int64(1, maxRanks))
	c.ChunkFactor = t.number("factor", 0)
	c.Split = t.number("split", 1)
	c.Root = Rank(t.optional("root", 0, None))
	c.Peer = Rank(t.optional("peer", 0, None))
	c.InPlace = t.accept("in-place")
	open := kind == Custom && t.accept("open")
	t.end()
	switch kind {
	case AllToAllV:
		t.counts(c)
	case Custom:
		t.custom(c)
		c.Custom.Open = open
	}
	if t.err != nil {
		return c
	}
	t.fail(c.Validate())
	return c
}

// row reads "word r:", the start of the line of rank r.
func (t *textReader) row(word string, r int) bool {
	if !t.next() {
		t.failf("got the end of the file, want line %q of rank %d", word, r)
		return false
	}
	t.expect(word)
	t.int64(int64(r), int64(r))
	t.expect(":")
	return t.err == nil
}

func (t *textReader) counts(c *Collective) {
	n := int(c.Ranks)
	if t.err == nil && n > maxMatrix {
		t.failf("an alltoallv has at most %d ranks", maxMatrix)
	}
	c.Counts = []int32{}
	for r := 0; t.err == nil && r < n; r++ {
		if t.row("counts", r) {
			c.Counts = append(c.Counts, t.runs(0, n, n)...)
		}
	}
}

func (t *textReader) custom(c *Collective) {
	c.Custom = &CustomSpec{}
	n := int(c.Ranks)
	total := int64(0)
	for _, side := range [...]struct {
		word string
		list *[]int32
	}{{"input", &c.Custom.Input}, {"output", &c.Custom.Output}} {
		if !t.next() {
			t.failf("got the end of the file, want line %q", side.word)
			return
		}
		t.expect(side.word)
		*side.list = t.runs(0, n, n)
		for _, k := range *side.list {
			total += int64(k)
		}
		if total > maxCustom {
			t.failf("%d chunks in all are too many for a custom collective", total)
		}
	}
	t.holds(c)
	t.expectations(c)
}

func (t *textReader) holds(c *Collective) {
	for t.err == nil && t.next() {
		if !t.accept("holds") {
			t.again = true
			break
		}
		t.again, t.at = true, 0
		r := len(c.Custom.Holds)
		if r >= int(c.Ranks) {
			t.failf("there are conditions for more than %d ranks", c.Ranks)
			return
		}
		if !t.row("holds", r) {
			return
		}
		k := int(c.Custom.Input[r])
		row := make([]bool, k)
		for i, bit := range t.runs(0, k, k) {
			row[i] = bit != 0
		}
		c.Custom.Holds = append(c.Custom.Holds, row)
	}
}

func (t *textReader) expectations(c *Collective) {
	if t.err != nil {
		return
	}
	c.Custom.Expect = make([][][]Contribution, c.Ranks)
	for r, k := range c.Custom.Output {
		c.Custom.Expect[r] = make([][]Contribution, k)
	}
	for t.next() {
		if !t.accept("expect") {
			t.again = true
			return
		}
		r := int(t.int64(0, int64(c.Ranks)-1))
		if t.err != nil {
			return
		}
		i := int(t.int64(0, int64(c.Custom.Output[r])-1))
		t.expect(":")
		if t.err == nil && c.Custom.Expect[r][i] != nil {
			t.failf("second line for output %d of rank %d", i, r)
		}
		want := []Contribution{}
		for t.peek() != 0 {
			rank := Rank(t.int32(0))
			t.expect(".")
			want = append(want, Contribution{rank, t.int32(0)})
		}
		if t.err != nil {
			return
		}
		c.Custom.Expect[r][i] = want
	}
}

func (t *textReader) topology() *Topology {
	if t.accept("none") {
		return nil
	}
	p := &Topology{Name: t.quoted()}
	t.expect("ranks")
	p.Ranks = int32(t.int64(0, maxRanks))
	if !t.accept("links") {
		return p
	}
	t.end()
	if t.err == nil && p.Ranks > maxMatrix {
		t.failf("a topology with links has at most %d ranks", maxMatrix)
	}
	type link struct {
		src, dst Rank
		gbps     float64
	}
	var links []link // the matrix is made once the file has shown all its rows
	n := int(p.Ranks)
	for r := 0; r < n && t.row("link", r); r++ {
		for t.peek() != 0 {
			dst := t.int64(0, int64(n)-1)
			t.expect("=")
			links = append(links, link{Rank(r), Rank(dst), t.bandwidth()})
			if t.err != nil {
				return nil
			}
		}
	}
	if t.err != nil {
		return nil
	}
	p.Bandwidth = make([]float64, n*n)
	for _, l := range links {
		p.Bandwidth[int(l.src)*n+int(l.dst)] = l.gbps
	}
	return p
}

// bandwidth reads a positive number of GB/s.
func (t *textReader) bandwidth() float64 {
	from := t.at
	for t.at < len(t.line) && t.line[t.at] != ' ' {
		t.at++
	}
	b, err := strconv.ParseFloat(string(t.line[from:t.at]), 64)
	if err != nil || !(b > 0) {
		t.at = from
		t.failf("got %s, want a bandwidth in GB/s above 0", t.rest())
	}
	return b
}
