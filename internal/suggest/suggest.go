// Package suggest finds the name that a mistyped one was meant to be.
package suggest

import "strings"

// Nearest returns the one of names that name was most likely meant to be, "" if none is near. Of a path with dots the last
// part counts first, then the whole of it.
func Nearest(name string, names []string) string {
	name = strings.ToLower(name)
	last := lastPart(name)
	best, bestCost := "", 1<<30
	for _, n := range names {
		low := strings.ToLower(n)
		d := distance(last, lastPart(low))
		if d > max(1, len(last)/3) {
			continue
		}
		if cost := d<<16 + distance(name, low); cost < bestCost {
			best, bestCost = n, cost
		}
	}
	return best
}

func lastPart(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// distance counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
func distance(a, b string) int {
	before, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := prev[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(prev[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(b)]
}
