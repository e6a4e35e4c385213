package configs

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// FromVerl converts a configuration of verl's main_ppo: the nested YAML that Hydra composes (or a part of it), and overrides as on its
// command line, a.b=c, +a.b=c, ++a.b=c and ~a.b. ${...} is replaced where it refers to the same configuration. An error means that the
// source cannot be read at all.
func FromVerl(s Source) (*Conversion, error) {
	v := newConverter(framework{"verl", verlNames(), skipVerl, false})
	defaults := map[string]string{}
	for _, a := range v.table {
		defaults[a.name] = a.def
	}
	t := newTree(func(name string) (*yaml.Node, bool) {
		def := defaults[name]
		n, err := parseYAML(def)
		return n, def != "" && err == nil
	})
	root, err := parseSource(s)
	if err != nil {
		return nil, err
	}
	if root != nil {
		if err := t.flatten("", root, s.Name, func(name string) bool { return isWhole(v.aliases, name) }); err != nil {
			return nil, err
		}
	}
	for _, o := range s.Overrides {
		if err := t.override(o); err != nil {
			return nil, err
		}
	}
	v.putTree(t)
	v.putDefaults()
	v.remarkVerl()
	return v.finish(1), nil
}

// isWhole tells whether a mapping is the value of a name and not a section of names.
func isWhole(table map[string]alias, name string) bool {
	_, own := table[name]
	return own || strings.HasPrefix(name, "hydra") || name == "defaults"
}

// override reads one argument of Hydra's command line.
func (t *tree) override(text string) error {
	if name, ok := strings.CutPrefix(text, "~"); ok {
		name, _, _ = strings.Cut(name, "=")
		delete(t.values, name)
		t.names = slices.DeleteFunc(t.names, func(x string) bool { return x == name })
		return nil
	}
	name, value, ok := strings.Cut(strings.TrimLeft(text, "+"), "=")
	if !ok || name == "" {
		return fmt.Errorf("command line: %q is not key=value", text)
	}
	n, err := parseYAML(value)
	if err != nil {
		return fmt.Errorf("command line: %s: %w", name, err)
	}
	if value == "None" {
		n = scalar("!!null", "null")
	}
	t.set(name, n, "command line")
	return nil
}

// putTree reads what is written.
func (v *converter) putTree(t *tree) {
	for _, name := range t.names {
		from := t.from[name]
		if strings.HasPrefix(name, "hydra") || strings.HasSuffix(name, "_target_") {
			v.written[name] = true
			continue
		}
		if name == "defaults" {
			v.fail(from, name, "the files that it names are not read: give what Hydra made of them (outputs/.../.hydra/config.yaml), or the defaults of verl count")
			continue
		}
		n, err := t.resolved(name)
		if err != nil {
			v.written[name] = true
			v.fail(from, name, "%w", err)
			continue
		}
		if n.Kind == yaml.ScalarNode && n.Value == "???" { // Hydra's mark for what must be given
			continue
		}
		v.put(name, n, from)
	}
}

// skipVerl tells whether a default of verl is not taken over.
func skipVerl(name string) bool {
	return name == "rollout.n" || strings.Contains(name, "overlong")
}

// remarkVerl lists what differs although nothing in the file says so.
func (v *converter) remarkVerl() {
	say := func(name, text string) { v.remarks = append(v.remarks, Note{Key: name, Text: text}) }
	if !v.written["reward.custom_reward_function.path"] && !v.written["custom_reward_function.path"] {
		say("data_source", "verl chooses a reward by this column: set reward.kind (docs/rewards.md), for GSM8K kind verify with {kind: number, from: hash, column: reward_model.ground_truth}")
	}
	if v.layer["rollout.max_completion_length"] == nil && v.written["actor_rollout_ref.rollout.response_length"] {
		delete(v.pending.kept, "data.max_response_length")
	}
}
