package main

import "fmt"

// nearest is the candidate that name was most likely meant to be, or "" if none
// is close: at most a third of its letters differ. The first of equals wins.
func nearest(name string, candidates []string) string {
	best, bestDist := "", 1+max(1, len(name)/3)
	for _, c := range candidates {
		if d := editDistance(name, c); d < bestDist && d < len(name) {
			best, bestDist = c, d
		}
	}
	return best
}

// didYouMean is the advice that goes with a misspelt name, or "".
func didYouMean(name string, candidates []string, prefix string) string {
	if n := nearest(name, candidates); n != "" {
		return fmt.Sprintf("did you mean %s%s?", prefix, n)
	}
	return ""
}

// editDistance counts the letters to insert, delete, replace or swap with their
// neighbor to get from a to b.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
