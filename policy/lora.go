package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
)

// AllLinear in TargetModules stands for all seven projections of a layer; the head never has an adapter.
const AllLinear = "all-linear"

// LoRAConfig is an adapter's shape, as PEFT's LoraConfig.
type LoRAConfig struct {
	R       int
	Alpha   float64
	RSLoRA  bool // scale alpha/sqrt(r) instead of alpha/r (Kalajdzievski, "A Rank Stabilization Scaling Factor", 2023)
	Dropout float64
	// TargetModules are names such as q_proj or self_attn.q_proj, or AllLinear. TargetPattern is PEFT's other form: a
	// regular expression that the whole path (model.layers.0.self_attn.q_proj) matches. Exactly one is set.
	TargetModules     []string
	TargetPattern     string
	ExcludeModules    []string // names like TargetModules
	LayersToTransform []int    // only these layers; nil: all
	RankPattern       Rules    // r of some modules
	AlphaPattern      Rules    // alpha of some modules
}

// Rule gives modules another value: those whose path is Pattern, a regular expression, or ends in a dot and Pattern.
type Rule struct {
	Pattern string
	Value   float64
}

// Rules are tried in order, the first match counts. In JSON they are an object.
type Rules []Rule

// LoRAModule is a projection with an adapter. Scale is what B·A is multiplied by.
type LoRAModule struct {
	Layer      int
	Projection Projection
	R          int
	Scale      float64
}

// Path is the module's name in transformers: model.layers.0.self_attn.q_proj.
func (m LoRAModule) Path() string { return inLayer(m.Layer, m.Projection.Path()) }

// Names are the names of A [R,in] and B [out,R] in PEFT's files.
func (m LoRAModule) Names() (a, b string) {
	prefix := "base_model.model." + m.Path()
	return prefix + ".lora_A.weight", prefix + ".lora_B.weight"
}

// Scaling is what B·A is multiplied by where no pattern says otherwise.
func (l LoRAConfig) Scaling() float64 { return l.scaling(l.R, l.Alpha) }

func (l LoRAConfig) scaling(r int, alpha float64) float64 {
	if l.RSLoRA {
		return alpha / math.Sqrt(float64(r))
	}
	return alpha / float64(r)
}

// Modules lists the projections of a model that get an adapter, by layer, then in the order of Projections. A target
// that matches nothing, the head or the embedding among the targets, and a rank or rate out of range are errors.
func (l LoRAConfig) Modules(c Config) ([]LoRAModule, error) {
	if err := l.check(c); err != nil {
		return nil, fmt.Errorf("lora: %w", err)
	}
	m, err := l.compile()
	if err != nil {
		return nil, fmt.Errorf("lora: %w", err)
	}
	var list []LoRAModule
	unused := slices.Clone(l.TargetModules)
	for layer := range c.Layers {
		for _, p := range Projections() {
			path := inLayer(layer, p.Path())
			unused = slices.DeleteFunc(unused, func(name string) bool { return name == AllLinear || named(path, name) })
			if !m.target(path) || l.LayersToTransform != nil && !slices.Contains(l.LayersToTransform, layer) {
				continue
			}
			r, alpha := int(m.rank.value(path, float64(l.R))), m.alpha.value(path, l.Alpha)
			list = append(list, LoRAModule{layer, p, r, l.scaling(r, alpha)})
		}
	}
	if len(unused) > 0 {
		return nil, fmt.Errorf("lora: target module %q is no projection of this model; there are %v, and %q for all", unused[0], Projections(), AllLinear)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("lora: no projection is a target (modules %q, pattern %q, without %q, layers %v); a path is like %s",
			l.TargetModules, l.TargetPattern, l.ExcludeModules, l.LayersToTransform, inLayer(0, Q.Path()))
	}
	return list, nil
}

func (l LoRAConfig) check(c Config) error {
	const most = 1 << 16
	switch {
	case l.R < 1 || l.R > most:
		return fmt.Errorf("r %d is not between 1 and %d", l.R, most)
	case math.IsNaN(l.Alpha) || math.IsInf(l.Alpha, 0):
		return fmt.Errorf("alpha %v is not a number", l.Alpha)
	case !(l.Dropout >= 0 && l.Dropout < 1):
		return fmt.Errorf("dropout %v is not in [0,1)", l.Dropout)
	case (len(l.TargetModules) == 0) == (l.TargetPattern == ""):
		return fmt.Errorf("set target_modules to names of modules, to one pattern, or to %q", AllLinear)
	case l.TargetPattern != "" && l.LayersToTransform != nil:
		return fmt.Errorf("layers_to_transform goes with a list of target_modules only; put the layers into the pattern %q", l.TargetPattern)
	}
	for _, layer := range l.LayersToTransform {
		if layer < 0 || layer >= c.Layers {
			return fmt.Errorf("layers_to_transform has %d; the model's layers are 0 to %d", layer, c.Layers-1)
		}
	}
	for _, rule := range l.RankPattern {
		if rule.Value < 1 || rule.Value > most || rule.Value != math.Trunc(rule.Value) {
			return fmt.Errorf("rank_pattern %q: %v is not a whole number between 1 and %d", rule.Pattern, rule.Value, most)
		}
	}
	for _, name := range l.TargetModules {
		if slices.Contains([]string{"lm_head", "embed_tokens", "model.embed_tokens"}, name) {
			return fmt.Errorf("an adapter on %s is not supported; supported: %v and %q", name, Projections(), AllLinear)
		}
	}
	return nil
}

// matcher is a LoRAConfig with its expressions compiled.
type matcher struct {
	LoRAConfig
	pattern     *regexp.Regexp // nil: TargetModules count
	rank, alpha compiledRules
}

type compiledRules []struct {
	pattern *regexp.Regexp
	value   float64
}

func (l LoRAConfig) compile() (m matcher, err error) {
	m.LoRAConfig = l
	if l.TargetPattern != "" {
		if m.pattern, err = compile("^(?:%s)$", l.TargetPattern); err != nil {
			return m, err
		}
		for _, path := range []string{"lm_head", "model.embed_tokens"} {
			if m.pattern.MatchString(path) {
				return m, fmt.Errorf("target pattern %q matches %s, where an adapter is not supported", l.TargetPattern, path)
			}
		}
	}
	if m.rank, err = l.RankPattern.compile(); err != nil {
		return m, err
	}
	m.alpha, err = l.AlphaPattern.compile()
	return m, err
}

func (r Rules) compile() (compiledRules, error) {
	list := make(compiledRules, len(r))
	for i, rule := range r {
		var err error
		if list[i].pattern, err = compile(`^(?:(?:.*\.)?(?:%s))$`, rule.Pattern); err != nil {
			return nil, err
		}
		list[i].value = rule.Value
	}
	return list, nil
}

func compile(frame, pattern string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(fmt.Sprintf(frame, pattern))
	if err != nil {
		return nil, fmt.Errorf("pattern %q (no look-ahead, no back references): %w", pattern, err)
	}
	return re, nil
}

func (r compiledRules) value(path string, otherwise float64) float64 {
	for _, rule := range r {
		if rule.pattern.MatchString(path) {
			return rule.value
		}
	}
	return otherwise
}

func (m matcher) target(path string) bool {
	is := func(name string) bool { return named(path, name) }
	if slices.ContainsFunc(m.ExcludeModules, is) {
		return false
	}
	if m.pattern != nil {
		return m.pattern.MatchString(path)
	}
	return slices.Contains(m.TargetModules, AllLinear) || slices.ContainsFunc(m.TargetModules, is)
}

// named reports whether name is the path or its end, from a dot on.
func named(path, name string) bool { return path == name || strings.HasSuffix(path, "."+name) }

// MarshalJSON writes an object with the rules in order.
func (r Rules) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, rule := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(rule.Pattern)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(rule.Value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s:%s", key, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads an object of numbers, keeping its order; null is none.
func (r *Rules) UnmarshalJSON(text []byte) error {
	*r = nil
	if string(text) == "null" {
		return nil
	}
	var values map[string]float64
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if key, ok := token.(string); ok {
			*r = append(*r, Rule{key, values[key]})
		}
	}
}
