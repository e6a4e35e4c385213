package token

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// A template comes with a model from anywhere, and gonja bounds neither its loops nor the size of what it builds. So each
// rendering has a budget that everything that takes time or memory spends: meter puts the spending into the compiled
// template, where no template can take it out.
const (
	budgetBase   = 1 << 24 // units of any rendering; one is a byte of text
	budgetFactor = 256     // more units for each byte of the messages and other input
	itemCost     = 16      // units of an item of a list
	roundCost    = 256     // units of one round of a loop or one call of a macro, so that time is bounded as memory is
	mostWidth    = 10000   // the largest number that a filter or a method takes
	mostText     = 1 << 26 // bytes of what one filter or method makes
	mostDepth    = 1000    // lists in lists
)

// The names of budget and meters in a template's context; no template can name what has a space.
const (
	budgetName = "the budget"
	deepName   = "spend all"
	flatName   = "spend items"
	roundsName = "spend rounds"
	timesName  = "spend product"
)

// budget is what one rendering may still spend.
type budget struct {
	left  int
	calls int // macros being called
}

var errBudget = errors.New("it takes more time or memory than a chat template may")

func newBudget(input int) *budget { return &budget{left: budgetBase + budgetFactor*input} }

// budgetOf is the budget of the rendering that a context belongs to.
func budgetOf(c *exec.Context) (*budget, error) {
	v, _ := c.Get(budgetName)
	if b, ok := v.(*budget); ok {
		return b, nil
	}
	return nil, errors.New("the template has no budget")
}

func (b *budget) spend(n int) error {
	if n < 0 || n > b.left {
		b.left = 0
	}
	if b.left -= n; b.left <= 0 {
		b.left = 0
		return errBudget
	}
	return nil
}

// flat spends what the outermost level of a value holds.
func (b *budget) flat(v *exec.Value) error {
	switch {
	case v.IsError():
		return nil
	case v.IsString():
		return b.spend(1 + len(v.String()))
	case v.IsList() || v.IsDict():
		return b.spend(1 + itemCost*v.Len())
	}
	return b.spend(1)
}

// deep spends all that a value holds, as often as it is in it.
func (b *budget) deep(v *exec.Value, depth int) error {
	if depth > mostDepth {
		return fmt.Errorf("its lists are nested deeper than %d", mostDepth)
	}
	if err := b.flat(v); err != nil || v.IsError() || v.IsString() {
		return err
	}
	switch {
	case v.IsList():
		for i := range v.Len() {
			if err := b.deep(v.Index(i), depth+1); err != nil {
				return err
			}
		}
	case v.IsDict():
		for _, key := range v.Keys() {
			item, _ := v.GetItem(key.Interface())
			if err := errors.Join(b.deep(key, depth+1), b.deep(item, depth+1)); err != nil {
				return err
			}
		}
	}
	return nil
}

// meters are the functions that meter calls in a compiled template. All but the product return what they are given.
func meters() map[string]any {
	one := func(e *exec.Evaluator, args *exec.VarArgs, spend func(*budget, *exec.Value) error) *exec.Value {
		b, err := budgetOf(e.Environment.Context)
		if err == nil {
			err = spend(b, args.Args[0])
		}
		if err != nil {
			return exec.AsValue(err)
		}
		return args.Args[0]
	}
	return map[string]any{
		deepName: func(e *exec.Evaluator, args *exec.VarArgs) *exec.Value {
			return one(e, args, func(b *budget, v *exec.Value) error { return b.deep(v, 0) })
		},
		flatName: func(e *exec.Evaluator, args *exec.VarArgs) *exec.Value {
			return one(e, args, (*budget).flat)
		},
		roundsName: func(e *exec.Evaluator, args *exec.VarArgs) *exec.Value {
			return one(e, args, func(b *budget, v *exec.Value) error { return b.spend(1 + roundCost*v.Len()) })
		},
		timesName: func(e *exec.Evaluator, args *exec.VarArgs) *exec.Value { return times(e, args.Args[0], args.Args[1]) },
	}
}

// times is gonja's product: of a string and a number, the string so many times.
func times(e *exec.Evaluator, x, y *exec.Value) *exec.Value {
	b, err := budgetOf(e.Environment.Context)
	n := max(y.Integer(), 0)
	if err == nil && x.IsString() {
		if n > mostText {
			b.left = 0
		}
		err = b.spend(1 + len(x.String())*min(n, mostText))
	}
	switch {
	case err != nil:
		return exec.AsValue(err)
	case x.IsFloat() || y.IsFloat():
		return exec.AsValue(x.Float() * y.Float())
	case x.IsString():
		return exec.AsValue(strings.Repeat(x.String(), n))
	}
	return exec.AsValue(x.Integer() * y.Integer())
}

// meteredFilter spends what a filter is given and what it makes, and refuses arguments that make it large at once.
func meteredFilter(name string, filter exec.FilterFunction) exec.FilterFunction {
	return func(e *exec.Evaluator, in *exec.Value, args *exec.VarArgs) *exec.Value {
		b, err := budgetOf(e.Environment.Context)
		switch name {
		case "length", "count", "first", "last", "default", "d": // do not look at all of it
		default:
			if err == nil {
				err = b.deep(in, 0)
			}
		}
		if err == nil {
			err = tooLarge(name, in, args)
		}
		if err != nil {
			return exec.AsValue(err)
		}
		out := filter(e, in, args)
		if err := b.deep(out, 0); err != nil {
			return exec.AsValue(err)
		}
		return out
	}
}

// tooLarge is an error where a filter or a method of this name would make very much of little.
func tooLarge(name string, in *exec.Value, args *exec.VarArgs) error {
	var texts []string
	all := append([]*exec.Value{}, args.Args...)
	for _, v := range args.KwArgs {
		all = append(all, v)
	}
	for _, v := range all {
		if v.IsInteger() && v.Integer() > mostWidth {
			return fmt.Errorf("%s of %d: more than %d is not supported", name, v.Integer(), mostWidth)
		}
		if v.IsString() {
			texts = append(texts, v.String())
		}
	}
	places, longest := 1+in.Len(), 0
	for _, s := range texts {
		longest = max(longest, len(s))
	}
	switch name {
	case "default", "d":
		return nil
	case "replace":
		if len(texts) == 2 {
			places = strings.Count(in.String(), texts[0])
		}
	case "format":
		longest = mostWidth
		places = strings.Count(in.String(), "%") + strings.Count(in.String(), "{")
	}
	if longest > 0 && places > mostText/longest {
		return fmt.Errorf("%s makes a text of more than %d bytes", name, mostText)
	}
	return nil
}

// tick stands first in the body of a loop or a macro and spends what a round costs.
type tick struct {
	at   *tokens.Token
	cost int
}

// Position implements nodes.ControlStructure.
func (t *tick) Position() *tokens.Token { return t.at }

func (t *tick) String() string { return "tick" }

// Execute implements exec.ControlStructure.
func (t *tick) Execute(r *exec.Renderer, _ *nodes.ControlStructureBlock) error {
	b, err := budgetOf(r.Environment.Context)
	if err != nil {
		return err
	}
	return b.spend(t.cost)
}
