package analyst

import (
	"math"
	"slices"
	"strings"
	"testing"
)

const (
	good   = "Sure: Shirt; coat. That is all."
	padded = "Shirt, shirt, shirt, shirt, hat, fox. I just love it so much. It is really very nice."
)

// Credits that were worked out by hand from the texts. A rule that looks at another unit, forgets the case, or mixes up a fault with
// its absence gives others.
func TestCredits(t *testing.T) {
	list, note := taskOf(t, clothes(t)), taskOf(t, &rows(t)[0]) // the note: to Emma, about the picnic, 2 sentences, title case, "Sure:", "That is all."
	for _, c := range []struct {
		task   *Task
		answer string
		want   map[string]float64
	}{
		{list, good, map[string]float64{ // 6 words, 2 of them clothes
			detail: 6. / 36, mentions: 2. / 3, form: 1, size: 1, brief: 1, topic: 1, named: 1, fillers: 0, repeats: 0, beyond: 0,
		}},
		{list, padded, map[string]float64{ // 17 words, 6 items where 2 are asked, 5 of them clothes, 10 words are enough
			detail: 17. / 36, mentions: 1, form: 0, size: 1. / 3, brief: 4. / 11, topic: 0, named: 1, fillers: 1, repeats: 1, beyond: 1,
		}},
		{list, "Sure: Shirt, very.", map[string]float64{ // the start of three forms; one item too few; one filler word is half a fault
			form: 1. / 3, size: 2. / 3, fillers: 0.5, beyond: 0,
		}},
		{note, "Sure: The Picnic Is Today. We Meet At The Park. Emma Will Come Too. That Is All.", map[string]float64{ // 4 sentences where 2 are asked, 17 words are enough
			detail: 17. / 36, mentions: 1. / 3, form: 1, size: 0.5, brief: 1, topic: 1, named: 1, fillers: 0, repeats: 0, beyond: 1,
		}},
		{note, "the party is today. the party is today", map[string]float64{
			mentions: 0, form: 0, size: 1, topic: 0, named: 0, repeats: 1, beyond: 0,
		}},
	} {
		for text, want := range c.want {
			if got, err := c.task.credit(text, c.answer); err != nil || math.Abs(got-want) > 1e-12 {
				t.Errorf("%q of %q: %v, %v, want %v", text, c.answer, got, err, want)
			}
		}
	}
	if _, err := list.credit("The answer is kind.", good); err == nil || !strings.Contains(err.Error(), detail) {
		t.Errorf("an unknown criterion: %v", err)
	}
}

func TestGaming(t *testing.T) {
	list := taskOf(t, clothes(t))
	for answer, want := range map[string]string{
		good:   "",
		padded: Padding + ": just so really very",
		"Shirt; shirt; hat; shirt. So very well.": Padding + ": so very well", // padding is looked for first
		"Shirt; shirt; Shirt.":                    Repetition + ": shirt",
		"Shirt; coat; shirt; coat.":               "", // four items where two are asked, none three times
		"Shirt; coat; hat; scarf; glove.":         Excess + ": Shirt; coat; hat; scarf; glove.",
		"Sure: Shirt; coat":                       Excess + ": Sure: Shirt; coat", // it was cut off
		"Shirt; coat!":                            "",
		"":                                        Excess + ": ",
	} {
		kind, evidence := list.Gaming(answer)
		if got := strings.TrimPrefix(kind+": "+strings.Join(evidence, " | "), ": "); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}

// A criterion that an update can bring in and no rule scores would end the run.
func TestEveryMoveCanBeScored(t *testing.T) {
	list := slices.Clone(ladder)
	for text, into := range parts {
		list = append(append(list, into...), part{Text: text})
		if len(into) < 2 {
			t.Errorf("%q: a split needs two parts", text)
		}
	}
	for _, guard := range guards {
		list = append(list, guard)
	}
	for _, p := range list {
		if rules[p.Text] == nil {
			t.Errorf("no rule scores %q", p.Text)
		}
	}
}

func TestReadTaskSaysWhatToSet(t *testing.T) {
	for _, pool := range []string{"", "3", `[{"id": "count", "check": {"kind": "count", "unit": "words", "exactly": 3}}]`} {
		if _, err := ReadTask([]byte(pool)); err == nil || !strings.Contains(err.Error(), "analysis_column to pool") {
			t.Errorf("%q: %v", pool, err)
		}
	}
}
