package compiler

// sets are disjoint sets of numbers, each named by its least.
type sets []int32

func newSets(n int) sets {
	s := make(sets, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

// root is the least of the set that k is in.
func (s sets) root(k int32) int32 {
	for s[k] != k {
		s[k] = s[s[k]]
		k = s[k]
	}
	return k
}

// join makes one set of those that a and b are in.
func (s sets) join(a, b int32) {
	a, b = s.root(a), s.root(b)
	s[max(a, b)] = min(a, b)
}
