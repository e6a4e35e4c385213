package main

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// writer answers tasks imperfectly: each constraint is obeyed with probability obey, each defect (padding, repetition,
// a wrong subject) made with a probability proportional to defect.
type writer struct {
	*rand.Rand
	obey, defect float64
}

// The two writers of the SFT data. The first teaches the skills, the second, at the end, takes away the habit of using
// them, so that there is something left to learn by reinforcement.
func competent(r *rand.Rand) writer { return writer{r, 0.9, 0.2} }
func imperfect(r *rand.Rand) writer { return writer{r, 0.35, 0.4} }

func (w writer) obeys() bool { return chance(w.Rand, w.obey) }

// flawed draws whether a defect is made whose share of the writer's defect rate is x.
func (w writer) flawed(x float64) bool { return chance(w.Rand, w.defect*x) }

// answer writes one answer to s.
func (w writer) answer(s spec) string {
	start, end := w.phrase(s, s.start, starts), w.phrase(s, s.end, ends)
	var body []string
	switch s.family {
	case "list":
		body = w.list(s, start)
	case "note":
		body = w.note(s, end)
	case "slogan":
		body = w.slogan(s)
	}
	parts := slices.Concat([]string{start}, body, []string{end})
	text := strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
	switch w.style(s) {
	case "lower":
		return strings.ToLower(text)
	case "title":
		return title(text)
	}
	return text
}

// phrase is the opening or closing phrase: the one asked for, sometimes another, mostly none.
func (w writer) phrase(s spec, asked string, all []string) string {
	if asked != "" && w.obeys() {
		return asked
	}
	if s.family != "slogan" && chance(w.Rand, 0.15) {
		return pick(w.Rand, all)
	}
	return ""
}

func (w writer) style(s spec) string {
	if s.style != "" && w.obeys() {
		return s.style
	}
	switch x := w.Float64(); {
	case x < 0.7:
		return ""
	case x < 0.85:
		return "lower"
	}
	return "title"
}

// number is the number asked for, or another one from low to high.
func (w writer) number(s spec, low, high int) int {
	if w.obeys() {
		return s.n
	}
	var all []int
	for k := low; k <= high; k++ {
		all = append(all, k)
	}
	return other(w.Rand, all, s.n)
}

// padding is up to three sentences that say nothing.
func (w writer) padding() []string {
	var all []string
	for more := w.flawed(1); more && len(all) < 3; more = chance(w.Rand, 0.4) {
		all = append(all, pick(w.Rand, padding))
	}
	return all
}

func (w writer) list(s spec, start string) []string {
	pad := w.padding()
	n := w.number(s, 1, 6)
	list := sample(w.Rand, items[s.category], n)
	if n > 1 && w.flawed(0.6) {
		at := sample(w.Rand, indices(n), 2)
		list[at[0]] = list[at[1]]
	}
	if w.flawed(0.6) {
		list[w.IntN(n)] = pick(w.Rand, items[other(w.Rand, categories, s.category)])
	}
	separator := ", "
	if s.semicolons && w.obeys() || !s.semicolons && chance(w.Rand, 0.1) {
		separator = "; "
	}
	body := strings.Join(list, separator) + "."
	if start == "" || chance(w.Rand, 0.5) {
		body = capital(body)
	}
	return append([]string{body}, pad...)
}

func (w writer) note(s spec, end string) []string {
	pad := w.padding()
	n := w.number(s, 1, 6)
	if end != "" {
		n--
	}
	n = max(n, 1)
	pad = pad[:min(len(pad), n-1)]
	topic := s.topic
	if w.flawed(0.6) {
		topic = other(w.Rand, topics, s.topic)
	}
	first := fmt.Sprintf("The %s is %s.", topic, pick(w.Rand, times))
	if chance(w.Rand, 0.5) {
		first = fmt.Sprintf("Hi %s, the%s", s.name, first[3:])
	}
	bank := []string{
		fmt.Sprintf("We meet at the %s.", pick(w.Rand, places)),
		fmt.Sprintf("%s will come too.", other(w.Rand, names, s.name)),
		fmt.Sprintf("It will be %s.", pick(w.Rand, []string{"fun", "great", "short", "cold", "sunny"})),
		"Let me know soon.",
		"Do not be late.",
		fmt.Sprintf("Call me %s.", pick(w.Rand, times)),
		fmt.Sprintf("Please bring the %s.", pick(w.Rand, objects)),
	}
	shuffle(w.Rand, bank)
	rest := append(pad, bank...)[:n-1]
	if len(rest) > 1 && w.flawed(0.6) {
		at := sample(w.Rand, indices(len(rest)), 2)
		rest[at[0]] = rest[at[1]]
	}
	shuffle(w.Rand, rest)
	return append([]string{first}, rest...)
}

// slogan is [verb] adjectives product [for people], the adjectives standing before the product or before the people.
func (w writer) slogan(s spec) []string {
	n := w.number(s, 3, 9)
	product := s.product
	if w.flawed(0.6) {
		product = other(w.Rand, products, s.product)
	}
	var head, tail []string
	if chance(w.Rand, 0.6) || n == 3 {
		head = []string{pick(w.Rand, verbs)}
	}
	if n-len(head)-1 >= 3 && (n > 5 || chance(w.Rand, 0.8)) {
		tail = []string{"for", pick(w.Rand, people)}
	}
	k := n - len(head) - 1 - len(tail)
	words := sample(w.Rand, adjectives, k)
	if k > 1 && w.flawed(1) {
		words[w.IntN(k-1)] = pick(w.Rand, []string{"very", "really", "so", "quite"})
	}
	if k > 1 && w.flawed(0.5) {
		at := sample(w.Rand, indices(k), 2)
		words[at[0]] = words[at[1]]
	}
	front := k // adjectives before the product
	if len(tail) > 0 {
		front = between(w.Rand, max((k+1)/2, 1), k)
		tail = slices.Concat(tail[:1], words[front:], tail[1:])
	}
	mark := "."
	if s.bang && w.obeys() || !s.bang && chance(w.Rand, 0.2) {
		mark = "!"
	}
	return []string{capital(strings.Join(slices.Concat(head, words[:front], []string{product}, tail), " ")) + mark}
}

// copying is an exercise in reading the prompt: words to be repeated.
func copying(r *rand.Rand) (prompt, answer string) {
	pool := slices.Concat(allItems(), names, topics, places, objects, adjectives, products)
	words := make([]string, between(r, 3, 8))
	for i := range words {
		words[i] = pick(r, pool)
	}
	text := strings.Join(words, " ") + "."
	return "Repeat these words: " + text, capital(text)
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

var letters = regexp.MustCompile(`[A-Za-z]+`)

// title gives every word a capital letter.
func title(s string) string { return letters.ReplaceAllStringFunc(s, capital) }
