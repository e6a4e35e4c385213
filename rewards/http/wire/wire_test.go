package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/grpo"
	"github.com/rubicon-rl/rubicon/rewards"
)

// groups makes groups of the given sizes, with prompts p0, p1, ... and completions p0c0, ...
func groups(sizes ...int) []grpo.Group {
	var all []grpo.Group
	for p, n := range sizes {
		g := grpo.Group{Prompt: &grpo.Prompt{ID: fmt.Sprintf("p%d", p)}}
		for c := range n {
			g.Completions = append(g.Completions, &grpo.Completion{Text: fmt.Sprintf("p%dc%d", p, c)})
		}
		all = append(all, g)
	}
	return all
}

func TestCutKeepsGroupsTogether(t *testing.T) {
	for _, c := range []struct {
		size int
		in   []int
		want [][]string // first and last completion of each batch
	}{
		{4, []int{2, 2, 2}, [][]string{{"p0c0", "p1c1"}, {"p2c0", "p2c1"}}},
		{3, []int{2, 2}, [][]string{{"p0c0", "p0c1"}, {"p1c0", "p1c1"}}},
		{3, []int{1, 7, 1}, [][]string{{"p0c0", "p0c0"}, {"p1c0", "p1c2"}, {"p1c3", "p1c5"}, {"p1c6", "p2c0"}}},
		{8, []int{0, 3, 0}, [][]string{{"p1c0", "p1c2"}}},
		{8, nil, nil},
	} {
		var got [][]string
		next := 0
		for _, b := range Cut(0, groups(c.in...), c.size) {
			if b.first != next {
				t.Errorf("%v by %d: a batch begins with completion %d, want %d", c.in, c.size, b.first, next)
			}
			next += len(b.rows)
			got = append(got, []string{b.rows[0].completion.Text, b.rows[len(b.rows)-1].completion.Text})
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v by %d: %v, want %v", c.in, c.size, got, c.want)
		}
	}
}

func TestRequest(t *testing.T) {
	all := []grpo.Group{
		{Prompt: &grpo.Prompt{ID: "a:1", Text: "2+2=", Columns: map[string]any{"answer": 4.0, "note": "<b>"}},
			Completions: []*grpo.Completion{{Text: "4", Tokens: []int32{19, 2}}, {Text: "five", Truncated: true}}},
		{Prompt: &grpo.Prompt{ID: "a:2", Messages: []grpo.Message{{Role: "user", Content: "hi"}}, Columns: map[string]any{"answer": nil}},
			Completions: []*grpo.Completion{{Text: "ho"}}},
	}
	for _, c := range []struct {
		columns Columns
		want    string
	}{
		{Columns{"answer"}, `{"version":1,"step":7,"items":[` +
			`{"id":"7/0","prompt_id":"a:1","prompt":"2+2=","completion":"4","completion_ids":[19,2],"truncated":false,"columns":{"answer":4}},` +
			`{"id":"7/1","prompt_id":"a:1","prompt":"2+2=","completion":"five","completion_ids":[],"truncated":true,"columns":{"answer":4}},` +
			`{"id":"7/2","prompt_id":"a:2","messages":[{"role":"user","content":"hi"}],"completion":"ho","completion_ids":[],"truncated":false,"columns":{"answer":null}}]}` + "\n"},
		{Columns{}, `"columns":{}},`},
		{nil, `"columns":{"answer":4,"note":"<b>"}},`},
	} {
		got, err := Cut(7, all, 10)[0].Encode(c.columns)
		if err != nil || !strings.Contains(string(got), c.want) || strings.Count(string(got), "\n") != 1 {
			t.Errorf("columns %v: %s %v, want %s", c.columns, got, err, c.want)
		}
	}
	if got, err := Probe().Encode(Columns{"answer"}); err != nil || string(got) != `{"version":1,"step":-1,"items":[]}`+"\n" {
		t.Errorf("probe: %s %v", got, err)
	}
}

func TestColumnsThatCannotBeSent(t *testing.T) {
	row := &grpo.Prompt{ID: "a:1", Columns: map[string]any{"good": 1.0, "bad": math.NaN()}}
	for _, c := range []struct {
		columns Columns
		want    string
	}{
		{Columns{"good"}, ""}, {Columns{"god"}, `prompt "a:1": the row has no column god`}, {nil, `prompt "a:1": the row's columns cannot be sent`},
	} {
		err := c.columns.Check(row)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.columns, err, c.want)
		}
		_, encoded := Cut(0, []grpo.Group{{Prompt: row, Completions: []*grpo.Completion{{}}}}, 1)[0].Encode(c.columns)
		if (encoded == nil) != (err == nil) || encoded != nil && !strings.Contains(encoded.Error(), `prompt "a:1"`) {
			t.Errorf("%v: Check says %v, Encode %v", c.columns, err, encoded)
		}
	}
}

func TestReply(t *testing.T) {
	b := Cut(3, groups(1, 2), 10)[0]
	got, err := b.Decode([]byte(`{"version": 1, "results": [
		{"id": "3/0", "score": -2.5, "reason": "why", "parts": [{"name": "a", "credit": 0.5}, {"name": "b", "weight": -3, "credit": 1, "reason": "r"}]},
		{"id": "3/1", "score": null},
		{"id": "3/2", "score": null, "reason": "too long"}]} `))
	if err != nil {
		t.Fatal(err)
	}
	want := rewards.Score{Value: -2.5, Reason: "why", Parts: []rewards.Part{{Name: "a", Weight: 1, Credit: 0.5}, {Name: "b", Weight: -3, Credit: 1, Reason: "r"}}}
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("%+v, want %+v", got[0], want)
	}
	for i, reason := range []string{1: "the scorer gave no score and no reason", 2: "too long"} {
		if s := got[i]; i > 0 && (!s.Unscorable || !math.IsNaN(s.Value) || s.Reason != reason) {
			t.Errorf("null is unscorable: %+v, want the reason %q", s, reason)
		}
	}
}

func TestWrongRepliesNameThePlace(t *testing.T) {
	const (
		whole = `prompt "p0", completion 0 to prompt "p1", completion 1: `
		third = `prompt "p1", completion 1: `
		ok    = `{"id":"3/0","score":1},{"id":"3/1","score":1},`
	)
	for reply, want := range map[string]string{
		``:                                whole + `the reply is not {"results": [...]}: not a JSON object`,
		`<html>Bad Gateway</html>`:        `"<html>Bad Gateway</html>"`,
		`[1]`:                             whole + `the reply is not {"results": [...]}: not a JSON object: "[1]"`,
		`{"scores": [1]}`:                 `unknown key "scores"`,
		`{"results": 3}`:                  "results is not a list",
		`{"results": [` + ok:              third + "its result cannot be read: EOF: the reply is cut off",
		`{"results": []} {}`:              "something follows it",
		`{"results": [], "version": 2}`:   "its version is 2, this run speaks 1",
		`{"error": "KeyError: 'answer'"}`: whole + "the scorer failed: KeyError: 'answer'",
		`{"results": []}`:                 whole + "the reply has 0 results for 3 items",
		`{}`:                              whole + "the reply has 0 results for 3 items",
		`{"results": [` + ok + `{"id":"3/2","score":1},{"id":"3/3","score":1}]}`:                                                                 whole + "the reply has 4 results for 3 items",
		`{"results": [` + ok + `{"id":"3/0","score":1}]}`:                                                                                        third + `the result has the id "3/0", want "3/2"`,
		`{"results": [` + ok + `null]}`:                                                                                                          third + `the result has the id "", want "3/2"`,
		`{"results": [` + ok + `{"id":"3/2","score":NaN}]}`:                                                                                      third + "its result cannot be read: invalid character 'N' looking for beginning of value: numbers must be finite",
		`{"results": [` + ok + `{"id":"3/2","score":1e999}]}`:                                                                                    third + "its result cannot be read: ",
		`{"results": [` + ok + `{"id":"3/2","score":"1"}]}`:                                                                                      third + "its result cannot be read: ",
		`{"results": [` + ok + `{"id":"3/2","scor":1}]}`:                                                                                         third + `its result cannot be read: json: unknown field "scor"`,
		`{"results": [` + ok + `{"id":"3/2","score":1,"parts":[{"name":"a","credit":2}]}]}`:                                                      third + "part a has no credit between 0 and 1",
		`{"results": [` + ok + `{"id":"3/2","score":1,"parts":[{"name":"a"}]}]}`:                                                                 third + "part a has no credit between 0 and 1",
		`{"results": [` + ok + `{"id":"3/2","score":1,"parts":[{"credit":1}]}]}`:                                                                 third + "a part has no name",
		`{"results": [` + ok + `{"id":"3/2","score":1,"rewards":[{"name":"a","value":1}]}]}`:                                                     third + "score and rewards are given",
		`{"results": [` + ok + `{"id":"3/2","rewards":[]}]}`:                                                                                     third + "rewards is empty",
		`{"results": [` + ok + `{"id":"3/2","rewards":[{"value":1}]}]}`:                                                                          third + "a reward has no name",
		`{"results": [` + ok + `{"id":"3/2","rewards":[{"name":"a","value":1e300,"weight":1e300}]}]}`:                                            third + "the weighted sum of its rewards is not finite",
		`{"results": [` + ok + `{"id":"3/2","rewards":[{"name":"a","value":1e300,"weight":1e300},{"name":"b","value":1e300,"weight":-1e300}]}]}`: third + "the weighted sum of its rewards is not finite",
	} {
		_, err := Cut(3, groups(1, 2), 10)[0].Decode([]byte(reply))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", reply, err, want)
		}
		var at *rewards.Error
		if strings.HasPrefix(want, third) && (!errors.As(err, &at) || at.Prompt != "p1" || at.Completion != 1) {
			t.Errorf("%s: %v does not carry its place", reply, err)
		}
	}
	if _, err := Probe().Decode([]byte(`{"results": [{"id": "a"}]}`)); err == nil {
		t.Error("a result for no item is accepted")
	}
	if got, err := Probe().Decode([]byte(`{"results": []}`)); err != nil || len(got) != 0 {
		t.Errorf("probe: %v %v", got, err)
	}
}

func TestRewardFunctionsBecomeColumns(t *testing.T) {
	reply := func(b Batch, rest string) string { return fmt.Sprintf(`{"results": [{"id": %q, %s}]}`, b.id(0), rest) }
	ask := func(replies ...string) ([]rewards.Score, error) {
		batches := Cut(0, groups(make1s(len(replies))...), 1)
		return Score(t.Context(), batches, 2, func(_ context.Context, b Batch) ([]rewards.Score, error) {
			if rest := replies[b.first]; rest != "" {
				return b.Decode([]byte(reply(b, rest)))
			}
			return b.Unscorable("no answer"), nil
		})
	}
	got, err := ask(``, `"rewards": [{"name": "a", "value": 2}, {"name": "b", "weight": 0.5, "value": null}]`,
		`"rewards": [{"name": "a", "value": null}, {"name": "b", "weight": 0.5, "value": null}], "reason": "odd"`, `"score": null`)
	if err != nil {
		t.Fatal(err)
	}
	if s := got[1]; s.Value != 2 || s.Unscorable || s.Columns[0].Value != 2 || !math.IsNaN(s.Columns[1].Value) {
		t.Errorf("%+v", s)
	}
	// The trainer wants the same columns for all completions of a step, also for those that could not be scored.
	for i, reason := range map[int]string{0: "no answer", 2: "odd", 3: "the scorer gave no score and no reason"} {
		s := got[i]
		if !s.Unscorable || s.Reason != reason || len(s.Columns) != 2 || s.Columns[1].Name != "b" || s.Columns[1].Weight != 0.5 || !math.IsNaN(s.Columns[0].Value) {
			t.Errorf("completion %d: %+v", i, s)
		}
	}
	for _, other := range []string{`"score": 1`, `"rewards": [{"name": "a", "value": 1, "weight": 2}]`, `"rewards": [{"name": "b", "value": 1}]`} {
		if _, err := ask(`"rewards": [{"name": "a", "value": 1}]`, other); err == nil || !strings.HasPrefix(err.Error(), `prompt "p1", completion 0: its rewards have other names`) {
			t.Errorf("%s: error %v", other, err)
		}
	}
}

func make1s(n int) []int {
	ones := make([]int, n)
	for i := range ones {
		ones[i] = 1
	}
	return ones
}

func FuzzReply(f *testing.F) {
	for _, s := range []string{`{"results": [{"id": "0/0", "score": 1}, {"id": "0/1", "score": null}]}`, `{"error": "x"}`, `{"results": [{"id": "0/0", "rewards": [{"name": "a", "value": 1}]}`, "{", `{"version": 1}`} {
		f.Add([]byte(s))
	}
	b := Cut(0, groups(2), 2)[0]
	f.Fuzz(func(t *testing.T, reply []byte) {
		scores, err := b.Decode(reply)
		if err == nil && len(scores) != 2 {
			t.Fatalf("%d scores without an error", len(scores))
		}
		for i, s := range scores {
			if s.Unscorable != math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || s.Unscorable && s.Reason == "" {
				t.Errorf("score %d: %+v", i, s)
			}
		}
	})
}
