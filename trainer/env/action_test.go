package env

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// What ARCO's own parser makes of 28 outputs (testdata/SOURCE.md).
func TestActionsAreARCOs(t *testing.T) {
	f, err := os.Open("testdata/arco_parse_action.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	for lines := bufio.NewScanner(f); lines.Scan(); rows++ {
		var r struct {
			Output, Thought, Action, Type, Arg string
			Error                              bool
			ActionError                        bool `json:"action_error"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		got := ParseAction(r.Output)
		want := Action{Thought: r.Thought, Text: r.Action, Kind: r.Type, Arg: r.Arg}
		if r.Error { // then it says nothing of a thought
			got.Thought = ""
		}
		if got != want {
			t.Errorf("%q: %+v, official %+v", r.Output, got, want)
		}
	}
	if rows != 28 {
		t.Errorf("%d rows", rows)
	}
}
