package checker

import (
	"math"
	"slices"
)

// tooMany is where multiplicities saturate; no expectation comes near it.
const tooMany = math.MaxUint64 / 2

// values holds the symbolic values of a run. A value below leaves is the content
// that the location of that number had before the run. Every other value is a
// sum of two earlier ones and stored once, so that equal numbers mean equal
// trees and the other way round. Addition commutes, in floating point too, but
// does not associate: a+b is b+a, (a+b)+c is not a+(b+c).
type values struct {
	leaves int32
	sums   [][2]int32 // sums[v-leaves], the smaller operand first
	table  []int32    // open addressing, power of two; 0 is free, else index+1 of sums

	// scratch space of expand, indexed by value
	times []uint64
	stack []int32
	found []int32
}

func newValues(leaves int32) *values {
	return &values{leaves: leaves, table: make([]int32, 1024)}
}

// sum is the value a+b.
func (v *values) sum(a, b int32) int32 {
	key := [2]int32{min(a, b), max(a, b)}
	mask := uint64(len(v.table) - 1)
	i := hashPair(key) & mask
	for ; v.table[i] != 0; i = (i + 1) & mask {
		if v.sums[v.table[i]-1] == key {
			return v.leaves + v.table[i] - 1
		}
	}
	v.sums = append(v.sums, key)
	v.table[i] = int32(len(v.sums))
	if 2*len(v.sums) > len(v.table) {
		v.grow()
	}
	return v.leaves + int32(len(v.sums)) - 1
}

func (v *values) grow() {
	v.table = make([]int32, 2*len(v.table))
	mask := uint64(len(v.table) - 1)
	for n, key := range v.sums {
		i := hashPair(key) & mask
		for v.table[i] != 0 {
			i = (i + 1) & mask
		}
		v.table[i] = int32(n + 1)
	}
}

func hashPair(k [2]int32) uint64 {
	h := (uint64(uint32(k[0]))<<32 | uint64(uint32(k[1]))) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// expand appends the leaves of value x, ascending, and how often each occurs.
// The cost is that of the distinct values below x, times a logarithm.
func (v *values) expand(x int32, leaves []int32, times []uint64) ([]int32, []uint64) {
	if n := int(v.leaves) + len(v.sums); len(v.times) < n {
		v.times = make([]uint64, n)
	}
	v.reach(x)
	// A sum is younger than its operands, so going down every value's own number
	// of occurrences is complete before it is handed on.
	slices.Sort(v.found)
	v.times[x] = 1
	n := len(v.found)
	first := n
	for first > 0 && v.found[first-1] >= v.leaves {
		first--
		s := v.found[first]
		for _, operand := range v.sums[s-v.leaves] {
			v.times[operand] = min(v.times[operand]+v.times[s], tooMany)
		}
	}
	for _, l := range v.found[:first] {
		leaves = append(leaves, l)
		times = append(times, v.times[l])
	}
	for _, l := range v.found {
		v.times[l] = 0
	}
	return leaves, times
}

// reach lists x and all values below it in v.found, once each. Zeroed times mark
// what is new, since the visit leaves a placeholder there that is taken out again.
func (v *values) reach(x int32) {
	v.found = append(v.found[:0], x)
	v.times[x] = 1
	v.stack = append(v.stack[:0], x)
	for len(v.stack) > 0 {
		y := v.stack[len(v.stack)-1]
		v.stack = v.stack[:len(v.stack)-1]
		if y < v.leaves {
			continue
		}
		for _, operand := range v.sums[y-v.leaves] {
			if v.times[operand] == 0 {
				v.times[operand] = 1
				v.found = append(v.found, operand)
				v.stack = append(v.stack, operand)
			}
		}
	}
	for _, y := range v.found {
		v.times[y] = 0
	}
}
