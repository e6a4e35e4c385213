package token

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nikolalohinski/gonja/v2/builtins"
	structures "github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
)

// environment is what a chat template may use: what transformers gives it, less what reads other files.
func environment(m marks) *exec.Environment {
	filters := map[string]exec.FilterFunction{
		"tojson": tojson, "trim": trim(m), "items": items, "length": length(m), "count": length(m), "list": asList,
		"string": asString,
	}
	for _, name := range []string{"abs", "attr", "batch", "capitalize", "center", "d", "default", "dictsort", "e", "escape",
		"filesizeformat", "first", "float", "forceescape", "format", "groupby", "indent", "int", "join", "last", "lower", "map", "max",
		"min", "pprint", "random", "reject", "rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr", "slice",
		"sort", "striptags", "sum", "title", "truncate", "unique", "upper", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr"} {
		if f, ok := builtins.Filters.Get(name); ok {
			filters[name] = f
		}
	}
	for name, f := range filters {
		filters[name] = meteredFilter(name, f)
	}
	globals := exec.EmptyContext().Update(builtins.GlobalFunctions)
	globals.Set("range", pyRange)
	globals.Set("lipsum", func(*exec.VarArgs) (string, error) { return "", errors.New("lipsum is not supported") })
	for name, f := range meters() {
		globals.Set(name, f)
	}
	globals.Set("raise_exception", func(message string) (string, error) { return "", errors.New(message) })
	return &exec.Environment{
		Context:           globals,
		Filters:           exec.NewFilterSet(filters),
		Tests:             builtins.Tests,
		ControlStructures: controlStructures(),
		Methods: exec.Methods{
			Str: strMethods(m), Dict: dictMethods(), List: exec.NewMethodSet(map[string]exec.Method[[]any]{}),
			Int: builtins.Methods.Int, Float: builtins.Methods.Float, Bool: builtins.Methods.Bool,
		},
	}
}

// controlStructures are Jinja's that stay within one template, and transformers' generation block.
func controlStructures() *exec.ControlStructureSet {
	set := map[string]parser.ControlStructureParser{"generation": parseGeneration}
	for _, name := range []string{"if", "for", "set", "macro", "call", "filter", "raw", "with", "do", "break", "continue"} {
		set[name], _ = builtins.ControlStructures.Get(name)
	}
	set["for"], set["macro"] = flatLoops(set["for"]), shallowMacros(set["macro"])
	return exec.NewControlStructureSet(set)
}

// generation is a block around what the model writes; it only matters to who asks for its place.
type generation struct {
	nodes.ControlStructure
	body *nodes.Wrapper
}

func parseGeneration(p, args *parser.Parser) (nodes.ControlStructure, error) {
	body, _, err := p.WrapUntil("endgeneration")
	if err != nil {
		return nil, err
	}
	return &generation{body: body}, nil
}

func (g *generation) String() string { return "generation" }

// Execute implements exec.ControlStructure.
func (g *generation) Execute(r *exec.Renderer, _ *nodes.ControlStructureBlock) error {
	return r.ExecuteWrapper(g.body)
}

// flatLoops refuses recursive loops, whose depth nothing bounds.
func flatLoops(parse parser.ControlStructureParser) parser.ControlStructureParser {
	return func(p, args *parser.Parser) (nodes.ControlStructure, error) {
		loop, err := parse(p, args)
		if f, ok := loop.(*structures.ForControlStructure); err == nil && ok && f.Recursive {
			return nil, errors.New("recursive loops are not supported")
		}
		return loop, err
	}
}

// shallowMacros bounds the depth of macro calls.
func shallowMacros(parse parser.ControlStructureParser) parser.ControlStructureParser {
	return func(p, args *parser.Parser) (nodes.ControlStructure, error) {
		macro, err := parse(p, args)
		if m, ok := macro.(*structures.MacroControlStructure); err == nil && ok {
			return &shallowMacro{m}, nil
		}
		return macro, err
	}
}

type shallowMacro struct {
	*structures.MacroControlStructure
}

// Execute implements exec.ControlStructure.
func (s *shallowMacro) Execute(r *exec.Renderer, block *nodes.ControlStructureBlock) error {
	if err := s.MacroControlStructure.Execute(r, block); err != nil {
		return err
	}
	value, _ := r.Environment.Context.Get(s.Name)
	macro, ok := value.(exec.Macro)
	b, err := budgetOf(r.Environment.Context)
	if err != nil || !ok {
		return errors.Join(err, fmt.Errorf("macro %s cannot be counted", s.Name))
	}
	r.Environment.Context.Set(s.Name, exec.Macro(func(args *exec.VarArgs) *exec.Value {
		b.calls++
		defer func() { b.calls-- }()
		if b.calls > maxCalls {
			return exec.AsValue(fmt.Errorf("macros call each other deeper than %d", maxCalls))
		}
		return macro(args)
	}))
	return nil
}

// pyRange is Python's range, as a list.
func pyRange(_ *exec.Evaluator, args *exec.VarArgs) (list, error) {
	bounds := []int{0, 0, 1}
	for i, v := range args.Args {
		if i == len(bounds) || !v.IsInteger() {
			return nil, errors.New("range takes one to three whole numbers")
		}
		bounds[i] = v.Integer()
	}
	if len(args.Args) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	start, stop, step := bounds[0], bounds[1], bounds[2]
	if len(args.Args) == 0 || step == 0 {
		return nil, errors.New("range takes one to three whole numbers, the last not 0")
	}
	out := list{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(out) == maxRange {
			return nil, fmt.Errorf("range of more than %d numbers", maxRange)
		}
		out = append(out, i)
	}
	return out, nil
}

// trim is str.strip as a filter.
func trim(m marks) exec.FilterFunction {
	return func(_ *exec.Evaluator, in *exec.Value, args *exec.VarArgs) *exec.Value {
		if in.IsError() {
			return in
		}
		out, err := strip(m.text(in.String()), arguments{m, args}, true, true)
		if err != nil {
			return exec.AsValue(err)
		}
		return exec.AsValue(out)
	}
}

// length counts the characters of a string without its marks, or the items of anything else.
func length(m marks) exec.FilterFunction {
	return func(_ *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
		if in.IsError() {
			return in
		}
		if in.IsString() {
			return exec.AsValue(len([]rune(m.text(in.String()).clean)))
		}
		return exec.AsValue(in.Len())
	}
}

// asList is the filter list.
func asList(_ *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	out := list{}
	if in.IsString() {
		for _, r := range in.String() {
			out = append(out, string(r))
		}
		return exec.AsValue(out)
	}
	in.Iterate(func(_, _ int, item, _ *exec.Value) bool {
		out = append(out, item)
		return true
	}, func() {})
	return exec.AsValue(out)
}

// asString is the filter string.
func asString(_ *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	if in.IsError() || in.IsString() {
		return in
	}
	return exec.AsValue(repr(in))
}

// items is dict.items as a filter.
func items(_ *exec.Evaluator, in *exec.Value, _ *exec.VarArgs) *exec.Value {
	if in.IsError() || in.IsList() {
		return in
	}
	return exec.AsValue(pairs(in, true, true))
}

// pairs lists the keys, the values or both of a dict in its order.
func pairs(dict *exec.Value, keys, values bool) list {
	out := list{}
	for _, k := range dict.Keys() {
		v, _ := dict.GetItem(k.String())
		switch {
		case keys && values:
			out = append(out, tuple{k, v})
		case keys:
			out = append(out, k)
		default:
			out = append(out, v)
		}
	}
	return out
}

// dictMethods are those of dict that change nothing, in the order of its keys.
func dictMethods() *exec.MethodSet[map[string]any] {
	listing := func(keys, values bool) exec.Method[map[string]any] {
		return func(_ map[string]any, self *exec.Value, _ *exec.VarArgs) (any, error) {
			return pairs(self, keys, values), nil
		}
	}
	return exec.NewMethodSet(map[string]exec.Method[map[string]any]{
		"keys": listing(true, false), "values": listing(false, true), "items": listing(true, true),
		"get": func(_ map[string]any, self *exec.Value, args *exec.VarArgs) (any, error) {
			if len(args.Args) == 0 || len(args.Args) > 2 {
				return nil, errors.New("get takes a key and a default")
			}
			if v, ok := self.GetItem(args.Args[0].Interface()); ok {
				return v.Interface(), nil
			}
			if len(args.Args) == 2 {
				return args.Args[1].Interface(), nil
			}
			return nil, nil
		},
	})
}

// strftimeNow formats the time that Chat was given.
func strftimeNow(now time.Time) func(string) (string, error) {
	codes := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'B': "January", 'b': "Jan", 'A': "Monday", 'a': "Mon",
		'H': "15", 'I': "03", 'M': "04", 'S': "05", 'y': "06", 'p': "PM", 'j': "002", 'e': "_2", 'F': "2006-01-02",
		'T': "15:04:05", 'D': "01/02/06", 'R': "15:04"}
	return func(format string) (string, error) {
		if now.IsZero() {
			return "", errors.New("it asks for the time: set ChatOptions.Now")
		}
		var out strings.Builder
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				out.WriteByte(format[i])
				continue
			}
			i++
			layout, ok := codes[format[i]]
			switch {
			case format[i] == '%':
				out.WriteByte('%')
			case format[i] == '-' && i+1 < len(format) && codes[format[i+1]] != "":
				i++
				out.WriteString(cmp.Or(strings.TrimLeft(now.Format(codes[format[i]]), "0 "), "0"))
			case ok:
				out.WriteString(now.Format(layout))
			default:
				return "", fmt.Errorf("strftime_now: %%%c is not supported", format[i])
			}
		}
		return out.String(), nil
	}
}
