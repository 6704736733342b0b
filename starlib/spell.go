package starlib

import (
	"slices"
	"strings"
)

// Nearest is the candidate that name was most likely meant to be, or "" if none
// is near. Of equally near ones it is the one nearest in upper and lower case too,
// then the first in alphabetical order.
func Nearest(name string, candidates []string) string {
	best, bestDist := "", max(1, (len(name)+1)/3)+1 // more than a third wrong is no likeness
	sorted := slices.Sorted(slices.Values(candidates))
	for _, c := range sorted {
		d := distance(strings.ToLower(name), strings.ToLower(c))
		if c == name || d > bestDist || best == "" && d == bestDist {
			continue
		}
		if d < bestDist || distance(name, c) < distance(name, best) {
			best, bestDist = c, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete, replace or swap with
// their neighbor to turn a into b.
func distance(a, b string) int {
	prev2 := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
		prev2, prev, row = prev, row, prev2
	}
	return prev[len(b)]
}
