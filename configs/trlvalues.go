package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reportTo takes the trackers that there are.
func reportTo(n *yaml.Node) (*yaml.Node, error) {
	v, err := decode(n, reflect.TypeFor[[]string]())
	if err != nil {
		return nil, err
	}
	var known []string
	for _, name := range v.Interface().([]string) {
		switch {
		case slices.Contains(Trackers(), name):
			known = append(known, name)
		case name != "none":
			return nil, fmt.Errorf("%s is not supported: use %s, or read metrics.jsonl, which is always written", name, strings.Join(Trackers(), ", "))
		}
	}
	if known == nil {
		return nil, nil
	}
	return toNode(reflect.ValueOf(known)), nil
}

// pending is what foreign names say that can be done only when more is known.
type pending struct {
	weights     []float64 // reward_weights
	weightsFrom string
	evaluate    bool              // eval_strategy: steps
	off         map[string]string // in the layer being read, key that is off whatever else sets it -> where that stands
	kept        map[string]kept   // values that mean something together with others, by name
}

func (l *loader) rewardWeights(_ alias, n *yaml.Node, from string) error {
	list := reflect.TypeFor[[]float64]()
	if n.Kind == yaml.ScalarNode {
		var err error
		if n, err = parseText(n.Value, list); err != nil {
			return err
		}
	}
	v, err := decode(n, list)
	if err == nil {
		l.pending.weights, l.pending.weightsFrom = v.Interface().([]float64), from
	}
	return err
}

// strategy reads save_strategy and the like: no switches the period at path off.
func strategy(path string) func(l *loader, a alias, n *yaml.Node, from string) error {
	return func(l *loader, a alias, n *yaml.Node, from string) error {
		switch n.Value {
		case "steps":
			l.pending.evaluate = l.pending.evaluate || path == "eval.eval_steps"
		case "no":
			if l.pending.off == nil {
				l.pending.off = map[string]string{}
			}
			l.pending.off[path], l.names[path] = from, a.name
		default:
			return fmt.Errorf("is %q, want steps or no: set %s to a number of steps, or below 1 to a share of all steps", n.Value, path)
		}
		return nil
	}
}
