package options

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

type sample struct {
	Weight float64  `json:"weight"`
	Steps  int      `json:"steps"`
	Words  []string `json:"words"`
	Max    *int     `json:"max"`
	On     bool     `json:"on"`
}

func TestDecodeKeepsWhatIsNotNamed(t *testing.T) {
	got := sample{Weight: 1, Steps: 7, On: true}
	err := Decode(map[string]any{"weight": 2, "words": []any{"a", "b"}, "max": json.Number("3"), "on": nil}, &got)
	three := 3
	want := sample{Weight: 2, Steps: 7, Words: []string{"a", "b"}, Max: &three, On: true}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, c := range []struct {
		m    map[string]any
		want string
	}{
		{map[string]any{"wieght": 1}, `unknown option "wieght": did you mean "weight"?`},
		{map[string]any{"zzz": 1}, `unknown option "zzz": use one of max, on, steps, weight, words`},
		{map[string]any{"Weight": 1}, `did you mean "weight"?`},
		{map[string]any{"steps": 3.7}, "option steps is a number 3.7: give a whole number"},
		{map[string]any{"steps": "3"}, "option steps is a string: give a whole number"},
		{map[string]any{"words": "a"}, "option words is a string: give a list"},
		{map[string]any{"on": 1}, "option on is a number: give true or false"},
	} {
		if err := Decode(c.m, &sample{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.m, err, c.want)
		}
	}
}
