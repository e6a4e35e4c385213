package policy

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// By hand: abc, abd, ab, xyz and ab again share a, b; every path is its sequence, and nothing is there twice.
func TestShare(t *testing.T) {
	f, end := Share([][]int32{{1, 2, 3}, {1, 2, 4}, {1, 2}, {7, 8, 9}, {1, 2}})
	want := []Segment{{Parent: Root, Tokens: []int32{1, 2}}, {Parent: 0, Tokens: []int32{3}}, {Parent: 0, Tokens: []int32{4}}, {Parent: Root, Tokens: []int32{7, 8, 9}}}
	if !slices.EqualFunc(f.Segments, want, func(a, b Segment) bool { return a.Parent == b.Parent && slices.Equal(a.Tokens, b.Tokens) }) {
		t.Errorf("segments %v, want %v", f.Segments, want)
	}
	if !slices.Equal(end, []int{1, 2, 0, 3, 0}) {
		t.Errorf("ends %v", end)
	}
}

// Random sequences over three tokens: paths give the sequences back, and siblings begin differently.
func TestShareGivesSequencesBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var list [][]int32
		for range 1 + rng.IntN(20) {
			s := make([]int32, 1+rng.IntN(8))
			for i := range s {
				s[i] = int32(rng.IntN(3))
			}
			list = append(list, s)
		}
		f, end := Share(list)
		first := map[[2]int]bool{}
		for i, s := range f.Segments {
			key := [2]int{s.Parent, int(s.Tokens[0])}
			if first[key] || s.Parent >= i {
				t.Fatalf("segment %d of %v begins as another below its parent, or stands before it", i, f.Segments)
			}
			first[key] = true
		}
		for i, s := range list {
			var path []int32
			for _, at := range f.Path(end[i]) {
				path = append(path, f.Segments[at].Tokens...)
			}
			if !slices.Equal(path, s) {
				t.Fatalf("sequence %v comes back as %v", s, path)
			}
		}
	}
}
