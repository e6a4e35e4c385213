package policy

import "slices"

// Share lays sequences, none of them empty, out as a forest in which what they have in common from their first token on is
// computed once. end[i] is the segment in which sequence i ends: the path there is the sequence. Equal sequences end in one segment.
func Share(sequences [][]int32) (f *Forest, end []int) {
	var roots []*shared
	ends := make([]*shared, len(sequences))
	for i, s := range sequences {
		ends[i] = insert(&roots, s)
	}
	f = &Forest{}
	number := map[*shared]int{}
	for _, root := range roots {
		root.flatten(f, Root, number)
	}
	for _, n := range ends {
		end = append(end, number[n])
	}
	return f, end
}

// Path lists the segments from the root to a segment, root first.
func (f *Forest) Path(segment int) []int {
	var path []int
	for s := segment; s != Root; s = f.Segments[s].Parent {
		path = append(path, s)
	}
	slices.Reverse(path)
	return path
}

// shared is a run of tokens that several sequences may have in common; below it they differ in their next token.
type shared struct {
	tokens []int32
	below  []*shared
}

// insert adds a sequence to a list of nodes that begin with different tokens, and returns the node in which it ends.
func insert(list *[]*shared, s []int32) *shared {
	for {
		at := slices.IndexFunc(*list, func(n *shared) bool { return n.tokens[0] == s[0] })
		if at < 0 {
			n := &shared{tokens: s}
			*list = append(*list, n)
			return n
		}
		n := (*list)[at]
		same := 0
		for same < min(len(n.tokens), len(s)) && n.tokens[same] == s[same] {
			same++
		}
		if same < len(n.tokens) { // a new node takes the beginning, so that sequences that end in n still do
			upper := &shared{tokens: n.tokens[:same], below: []*shared{n}}
			n.tokens = n.tokens[same:]
			(*list)[at], n = upper, upper
		}
		if same == len(s) {
			return n
		}
		s, list = s[same:], &n.below
	}
}

// flatten appends n and what is below it to f, and numbers them.
func (n *shared) flatten(f *Forest, parent int, number map[*shared]int) {
	at := len(f.Segments)
	number[n] = at
	f.Segments = append(f.Segments, Segment{Parent: parent, Tokens: n.tokens})
	for _, child := range n.below {
		child.flatten(f, at, number)
	}
}
