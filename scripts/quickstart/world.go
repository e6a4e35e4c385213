package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// The words of the world. Each is one token by itself, so they are few: a small model learns each from how often it
// meets it.
var (
	categories = []string{"animals", "fruits", "tools", "clothes"}
	items      = map[string][]string{
		"animals": strings.Fields("otter fox owl horse rabbit goat tiger whale"),
		"fruits":  strings.Fields("apple pear plum grape lemon mango peach cherry"),
		"tools":   strings.Fields("hammer saw drill rope nail brush ladder wrench"),
		"clothes": strings.Fields("shirt coat hat scarf glove boot sock belt"),
	}
	names      = strings.Fields("Anna Ben Clara David Emma Felix")
	topics     = strings.Fields("picnic meeting concert party trip dinner")
	places     = strings.Fields("park station library school river")
	objects    = strings.Fields("map tickets cake blanket camera lantern flowers basket")
	times      = []string{"today", "tomorrow", "at noon", "on Monday", "on Friday"}
	adjectives = strings.Fields("fresh warm bright soft bold calm clean sweet strong gentle")
	products   = strings.Fields("bread soap coffee tea candles honey")
	people     = strings.Fields("families friends mornings students neighbors evenings")
	verbs      = strings.Fields("Enjoy Try Love Choose")
	starts     = []string{"Sure:", "Hello:", "My answer:", "Good news:"}
	ends       = []string{"That is all.", "Thank you.", "The end.", "See you soon."}
	fillers    = strings.Fields("very really just so quite well anyway basically")
	padding    = []string{"It is really very nice.", "Well, you know.", "I just love it so much.", "Anyway, it is quite nice."}
)

// allItems are the words of all categories.
func allItems() []string {
	var all []string
	for _, c := range categories {
		all = append(all, items[c]...)
	}
	return all
}

// spec is a writing task: a family with its subject, a number, and further constraints.
type spec struct {
	family     string // list, note or slogan
	n          int    // items, sentences or words asked for
	category   string // list
	name       string // note: whom to
	topic      string // note
	product    string // slogan
	style      string // case asked for: lower, title or none
	semicolons bool   // list
	start      string // phrase to begin with, or none; list and note
	end        string // phrase to end with, or none; list and note
	bang       bool   // slogan: end with an exclamation mark
}

// newSpec draws a task: a family, its subject, and 2 or 3 further constraints (slogan: 1 or 2 of its two).
func newSpec(r *rand.Rand) spec {
	var s spec
	var options []string
	most := 3
	switch s.family = pick(r, []string{"list", "note", "slogan"}); s.family {
	case "list":
		s.category, s.n = pick(r, categories), between(r, 2, 5)
		options = []string{"case", "end", "start", "semicolons"}
	case "note":
		s.name, s.topic, s.n = pick(r, names), pick(r, topics), between(r, 2, 4)
		options = []string{"case", "end", "start"}
	case "slogan":
		s.product, s.n = pick(r, products), between(r, 4, 8)
		options, most = []string{"case", "bang"}, 2
	}
	for _, o := range sample(r, options, between(r, most-1, most)) {
		switch o {
		case "case":
			s.style = pick(r, []string{"lower", "title"})
		case "end":
			s.end = pick(r, ends)
		case "start":
			s.start = pick(r, starts)
		case "semicolons":
			s.semicolons = true
		case "bang":
			s.bang = true
		}
	}
	return s
}

// prompt words the task.
func (s spec) prompt() string {
	var p []string
	add := func(asked bool, format string, args ...any) {
		if asked {
			p = append(p, fmt.Sprintf(format, args...))
		}
	}
	add(s.family == "list", "Name exactly %d %s.", s.n, s.category)
	add(s.family == "note", "Write a note to %s about the %s. Use exactly %d sentences.", s.name, s.topic, s.n)
	add(s.family == "slogan", "Write a slogan for our %s. Use exactly %d words.", s.product, s.n)
	add(s.style == "lower", "Use lower case.")
	add(s.style == "title", "Start every word with a capital letter.")
	add(s.semicolons, "Use semicolons, not commas.")
	add(s.start != "", "Start with \"%s\"", s.start)
	add(s.end != "", "End with \"%s\"", s.end)
	add(s.bang, "End with an exclamation mark.")
	return strings.Join(p, " ")
}

// split draws the training and the held-out tasks, all different, n of each. The SFT data leaves all of them out.
func split(seed uint64, n int) (train, heldOut []spec) {
	r := rand.New(rand.NewPCG(seed, splitStream))
	seen := map[string]bool{}
	var all []spec
	for len(all) < 2*n {
		if s := newSpec(r); !seen[s.prompt()] {
			seen[s.prompt()] = true
			all = append(all, s)
		}
	}
	return all[:n], all[n:]
}

// Streams of random numbers under one seed.
const (
	splitStream = iota + 1
	tokenizerStream
	sftStream
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// other draws one of list that is not x.
func other[T comparable](r *rand.Rand, list []T, x T) T {
	return pick(r, slices.DeleteFunc(slices.Clone(list), func(y T) bool { return y == x }))
}

func between(r *rand.Rand, low, high int) int { return low + r.IntN(high-low+1) }

func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

// sample draws n different elements.
func sample[T any](r *rand.Rand, list []T, n int) []T {
	all := slices.Clone(list)
	shuffle(r, all)
	return all[:n]
}

func shuffle[T any](r *rand.Rand, list []T) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}
