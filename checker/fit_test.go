package checker

import (
	"testing"

	"github.com/mscclsh/mscclsh/ir"
)

// Three ranks of 5, 3 and 8 thread blocks, on GPUs of 7 multiprocessors: alone,
// rank 2 has too many; two to a GPU, ranks 0 and 1 have 8, and rank 2 its 8.
func TestFit(t *testing.T) {
	p := &ir.Program{Spec: &ir.Spec{}, GPUs: []ir.GPU{
		{TBs: make([]ir.ThreadBlock, 5)}, {TBs: make([]ir.ThreadBlock, 3)}, {TBs: make([]ir.ThreadBlock, 8)}}}
	for _, c := range []struct {
		sms, ranks int32
		want       []string
	}{
		{8, 1, nil},
		{7, 1, []string{"rank 2 needs 8 thread blocks at once, of which toy runs 7 for sure"}},
		{7, 2, []string{"ranks 0 to 1 together need 8 thread blocks at once, of which toy runs 7 for sure",
			"rank 2 needs 8 thread blocks at once, of which toy runs 7 for sure"}},
		{16, 3, nil},
		{15, 3, []string{"ranks 0 to 2 together need 16 thread blocks at once, of which toy runs 15 for sure"}},
	} {
		got := Fit(p, Device{"toy", c.sms}, c.ranks)
		if len(got) != len(c.want) {
			t.Errorf("%d multiprocessors, %d ranks: got %v, want %v", c.sms, c.ranks, got, c.want)
			continue
		}
		for i := range got {
			if got[i].Text != c.want[i] || got[i].Code != CodeFit {
				t.Errorf("%d multiprocessors, %d ranks: got %q, want %q", c.sms, c.ranks, got[i].Text, c.want[i])
			}
		}
	}
}

// Of many ranks that don't fit the first few are named, and the others counted.
func TestFitCounts(t *testing.T) {
	p := &ir.Program{Spec: &ir.Spec{}}
	for range 13 {
		p.GPUs = append(p.GPUs, ir.GPU{TBs: make([]ir.ThreadBlock, 8)})
	}
	got := Fit(p, Device{"toy", 7}, 1)
	if len(got) != 10 || len(got[9].Notes) != 1 || got[9].Notes[0].Text != "and 3 more like this" {
		t.Errorf("got %d findings: %v", len(got), got)
	}
}
