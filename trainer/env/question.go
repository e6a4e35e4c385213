package env

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards/verify"
)

// dataset is how a benchmark writes its rows and compares answers, and the budget that ARCO's paper gives it.
type dataset struct {
	rules    verify.QARules
	searches int
	read     func(o QAOptions, c columns, q *question) error
}

const datasetAuto = "auto"

var datasets = map[string]dataset{
	"hotpotqa": {verify.HotpotQA, 3, readContext},
	"2wiki":    {verify.HotpotQA, 3, readContext},
	"musique":  {verify.MuSiQue, 6, readParagraphs},
}

// question is a row of a benchmark.
type question struct {
	set     dataset
	text    string
	answers []string
	texts   []string     // of the paragraphs
	gold    map[int]bool // those that support the answer, where the row says so
}

// columns are a row's.
type columns map[string]any

// into decodes a column strictly enough to name what is wrong; false: there is none.
func (c columns) into(name string, dst any) (bool, error) {
	v, there := c[name]
	if !there || v == nil {
		return false, nil
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, dst)
	}
	if err != nil {
		return true, fmt.Errorf("column %s: %w", name, err)
	}
	return true, nil
}

func readQuestion(o QAOptions, row *grpo.Prompt) (question, error) {
	c := columns(row.Columns)
	name := o.Dataset
	if name == datasetAuto {
		name = "hotpotqa"
		if _, is := c["paragraphs"]; is {
			name = "musique"
		}
	}
	q := question{set: datasets[name], gold: map[int]bool{}}
	if _, err := c.into("question", &q.text); err != nil {
		return q, err
	}
	var answer string
	if has, err := c.into("answer", &answer); err != nil || !has || strings.TrimSpace(q.text) == "" {
		if err == nil {
			err = errNoQuestion
		}
		return q, err
	}
	var aliases []string
	if _, err := c.into("answer_aliases", &aliases); err != nil {
		return q, err
	}
	q.answers = append([]string{answer}, aliases...)
	if err := q.set.read(o, c, &q); err != nil {
		return q, err
	}
	if len(q.texts) == 0 {
		return q, errNoQuestion
	}
	return q, nil
}

// titled is a paragraph with the title of its page.
type titled struct {
	title     string
	sentences []string
}

// UnmarshalJSON reads [title, [sentence, ...]].
func (p *titled) UnmarshalJSON(b []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil || len(pair) != 2 {
		return fmt.Errorf("a paragraph is [title, [sentence, ...]], not %.60s", b)
	}
	if err := json.Unmarshal(pair[0], &p.title); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &p.sentences)
}

// readContext reads the paragraphs of HotpotQA and 2WikiMultiHopQA: lists of sentences, by title.
func readContext(o QAOptions, c columns, q *question) error {
	var list []titled
	if _, err := c.into("context", &list); err != nil {
		return err
	}
	var facts [][]any // [title, sentence number]
	if _, err := c.into("supporting_facts", &facts); err != nil {
		return err
	}
	supports := map[string]bool{}
	for _, f := range facts {
		if len(f) > 0 {
			supports[fmt.Sprint(f[0])] = true
		}
	}
	for i, p := range list {
		q.add(o, p.title, join(p.sentences))
		if supports[p.title] {
			q.gold[i] = true
		}
	}
	return nil
}

// join makes a paragraph of sentences; HotpotQA's begin with their blank, 2Wiki's do not.
func join(sentences []string) string {
	var b strings.Builder
	for i, s := range sentences {
		if i > 0 && !strings.HasPrefix(s, " ") {
			b.WriteByte(' ')
		}
		b.WriteString(s)
	}
	return strings.TrimSpace(b.String())
}

// readParagraphs reads MuSiQue's.
func readParagraphs(o QAOptions, c columns, q *question) error {
	var list []struct {
		Title      string
		Text       string `json:"paragraph_text"`
		Supporting bool   `json:"is_supporting"`
	}
	if _, err := c.into("paragraphs", &list); err != nil {
		return err
	}
	for i, p := range list {
		q.add(o, p.Title, strings.TrimSpace(p.Text))
		if p.Supporting {
			q.gold[i] = true
		}
	}
	return nil
}

func (q *question) add(o QAOptions, title, text string) {
	if o.Titles {
		text = title + ": " + text
	}
	q.texts = append(q.texts, text)
}
