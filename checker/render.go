package checker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mscclsh/mscclsh/ir"
)

// rangeName is buf[lo] for one chunk and buf[lo:hi] for several.
func rangeName(buf string, lo int32, hi int64) string {
	if hi == int64(lo)+1 {
		return fmt.Sprintf("%s[%d]", buf, lo)
	}
	return fmt.Sprintf("%s[%d:%d]", buf, lo, hi)
}

// maxGroups is how many groups of a multiset, or runs of ranks in one, a message
// spells out.
const maxGroups = 6

// term is one element of a multiset as people read it: times x name of rank.
type term struct {
	name  string // "input[3]", "uninitialized scratch[2]"
	junk  bool
	rank  ir.Rank
	times uint64
}

// renderTerms writes a multiset compactly: terms that differ in the rank only
// share one group, and consecutive ranks one run.
func renderTerms(terms []term) string {
	if len(terms) == 0 {
		return "nothing"
	}
	if len(terms) == 1 && terms[0].times == 1 {
		return fmt.Sprintf("%s of rank %d", terms[0].name, terms[0].rank)
	}
	slices.SortStableFunc(terms, func(a, b term) int {
		switch {
		case a.junk != b.junk:
			if b.junk {
				return -1
			}
			return 1
		case a.times != b.times:
			if a.times < b.times {
				return -1
			}
			return 1
		case a.name != b.name:
			if len(a.name) != len(b.name) {
				return len(a.name) - len(b.name) // 9 before 10
			}
			return strings.Compare(a.name, b.name)
		}
		return int(a.rank - b.rank)
	})
	var groups []string
	total := 0
	for i := 0; i < len(terms); {
		j := i + 1
		for j < len(terms) && terms[j].name == terms[i].name && terms[j].times == terms[i].times {
			j++
		}
		if total++; total <= maxGroups {
			groups = append(groups, renderGroup(terms[i:j]))
		}
		i = j
	}
	return "the sum of " + joinAnd(groups, total)
}

func renderGroup(g []term) string {
	var runs []string
	total := 0
	for i := 0; i < len(g); {
		j := i + 1
		for j < len(g) && g[j].rank == g[j-1].rank+1 {
			j++
		}
		if total++; total <= maxGroups {
			if j-i == 1 {
				runs = append(runs, fmt.Sprint(g[i].rank))
			} else {
				runs = append(runs, fmt.Sprintf("%d-%d", g[i].rank, g[j-1].rank))
			}
		}
		i = j
	}
	ranks := "rank "
	if len(g) > 1 {
		ranks = "ranks "
	}
	times := ""
	if g[0].times > 1 {
		times = fmt.Sprintf("%d x ", g[0].times)
		if g[0].times == tooMany {
			times = "countless x "
		}
	}
	of := " from "
	if len(g) == 1 {
		of = " of "
	}
	return times + g[0].name + of + ranks + joinAnd(runs, total)
}

// joinAnd lists parts, of total things of which parts are the first.
func joinAnd(parts []string, total int) string {
	switch {
	case total > len(parts):
		return fmt.Sprintf("%s and %d more", strings.Join(parts, ", "), total-len(parts))
	case len(parts) == 1:
		return parts[0]
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}
