package english

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/rewards/internal/oracle"
)

type unit struct {
	Text      string
	Sentences []string `json:"sent_tokenize"`
	Words     []string `json:"word_tokenize"`
	Tags      []string `json:"pos_tag"`
	Runs      int      `json:"regexp_w_count"`
}

func TestNLTKUnits(t *testing.T) {
	rows := oracle.Rows[unit](t, "nltk_units.jsonl")
	for _, row := range rows {
		if got := Sentences(row.Text); !slices.Equal(got, row.Sentences) {
			t.Errorf("Sentences(%q)\n = %q,\nNLTK has %q", row.Text, got, row.Sentences)
		}
		if got := Words(row.Text); !slices.Equal(got, row.Words) {
			t.Errorf("Words(%q)\n = %q,\nNLTK has %q", row.Text, got, row.Words)
		}
		if got := Tag(row.Words); !slices.Equal(got, row.Tags) {
			t.Errorf("Tag(%q)\n = %q,\nNLTK has %q", row.Words, got, row.Tags)
		}
		if got := len(WordRuns(row.Text)); got != row.Runs {
			t.Errorf("WordRuns(%q): %d, NLTK has %d", row.Text, got, row.Runs)
		}
	}
	if len(rows) < 221 {
		t.Errorf("only %d rows", len(rows))
	}
}

func TestSyllables(t *testing.T) {
	var counts map[string]int
	if err := json.NewDecoder(oracle.Open(t, "syllapy_counts.json")).Decode(&counts); err != nil {
		t.Fatal(err)
	}
	for word, want := range counts {
		if got := Syllables(word); got != want {
			t.Errorf("Syllables(%q) = %d, syllapy has %d", word, got, want)
		}
	}
	if len(counts) < 4000 {
		t.Errorf("only %d words", len(counts))
	}
}

// The stop words that IFBench counts are whole runs of word characters, so those with an apostrophe never match.
func TestStopWords(t *testing.T) {
	if n := len(stopWords()); n != 179 {
		t.Errorf("%d stop words, NLTK has 179", n)
	}
	if !IsStopWord("the") || IsStopWord("The") || IsStopWord("sea") {
		t.Error("the is one in lower case, sea is none")
	}
}

func FuzzNoInputPanics(f *testing.F) {
	f.Add("Mr. \"X\" can't. . . . go—cannot! ('tis) ``a'' \xff? 1,5:2 gonna'")
	f.Add("! \x1d") // white space for the one library, a word for the other
	f.Fuzz(func(t *testing.T, text string) {
		if joined := strings.Join(Sentences(text), ""); len(joined) > len(text) {
			t.Errorf("sentences of %q are longer than it: %q", text, joined)
		}
		Tag(Words(text))
		Syllables(text)
	})
}
