package token

import (
	"errors"
	"reflect"

	structures "github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// meter puts spending into a compiled template: into what operators, tests and outputs read, what calls return and what
// each round of a loop or a macro writes. gonja keeps parts of its syntax tree in fields of its own, so the tree is walked by reflection;
// what is changed are exported fields.
func meter(compiled *exec.Template) error {
	root := reflect.ValueOf(compiled).Elem().FieldByName("root")
	if !root.IsValid() || root.Kind() != reflect.Pointer {
		return errors.New("the template engine's syntax tree is not where it was")
	}
	m := &metering{seen: map[any]bool{}}
	m.walk(root)
	return nil
}

type metering struct {
	seen map[any]bool // nodes, by address and type
	text int          // bytes of constant text met
}

// walk meters all that v holds.
func (m *metering) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		m.walk(v.Elem())
	case reflect.Pointer:
		if !v.IsNil() && v.Type().Elem().Kind() == reflect.Struct && ofTree(v.Type().Elem()) {
			m.node(v)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			m.walk(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			m.walk(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			m.walk(it.Value())
		}
	}
}

// ofTree reports whether a type belongs to the syntax tree.
func ofTree(t reflect.Type) bool {
	here := reflect.TypeFor[tick]().PkgPath()
	return t.PkgPath() == reflect.TypeFor[nodes.Data]().PkgPath() ||
		t.PkgPath() == reflect.TypeFor[structures.ForControlStructure]().PkgPath() || t.PkgPath() == here
}

// node meters what stands below the node that v points to, then the node.
func (m *metering) node(v reflect.Value) {
	id := [2]any{v.Pointer(), v.Type()}
	if m.seen[id] {
		return
	}
	m.seen[id] = true
	before := m.text
	switch v.Type() {
	case reflect.TypeFor[*structures.CallControlStructure]():
		// its call has to stay one
		c := (*structures.CallControlStructure)(v.UnsafePointer())
		m.walk(reflect.ValueOf(c.Call).Elem())
		m.walk(reflect.ValueOf(c.Body))
		return
	default:
		m.walk(v.Elem())
	}
	switch p := v.UnsafePointer(); v.Type() {
	case reflect.TypeFor[*nodes.Data]():
		m.text += len((*nodes.Data)(p).Data.Val)
	case reflect.TypeFor[*nodes.Output]():
		out := (*nodes.Output)(p)
		out.Expression, out.Alternative = spending(deepName, out.Expression), spending(deepName, out.Alternative)
	case reflect.TypeFor[*nodes.BinaryExpression]():
		meterOperator((*nodes.BinaryExpression)(p))
	case reflect.TypeFor[*nodes.TestExpression]():
		test := (*nodes.TestExpression)(p)
		test.Expression = spending(deepName, test.Expression)
	case reflect.TypeFor[*nodes.GetSlice]():
		slice := (*nodes.GetSlice)(p)
		if of, ok := slice.Node.(nodes.Expression); ok {
			slice.Node = spending(flatName, of)
		}
	case reflect.TypeFor[*nodes.Call]():
		call := (*nodes.Call)(p)
		inner := *call
		*call = *spending(deepName, &inner).(*nodes.Call)
	case reflect.TypeFor[*structures.ForControlStructure]():
		loop := (*structures.ForControlStructure)(p)
		loop.ObjectEvaluator = spending(roundsName, loop.ObjectEvaluator)
		ticking(loop.BodyWrapper, 1+m.text-before)
	case reflect.TypeFor[*nodes.Macro]():
		ticking((*nodes.Macro)(p).Wrapper, roundCost+m.text-before)
	}
}

// meterOperator meters the operands; what a chain of "and" and "or" does not reach is not evaluated.
func meterOperator(b *nodes.BinaryExpression) {
	switch b.Operator.Token.Type {
	case tokens.And, tokens.Or:
	case tokens.Multiply:
		b.Left, b.Right = spending(timesName, b.Left, b.Right), &nodes.Integer{Location: b.Operator.Token, Val: 1}
	default:
		b.Left, b.Right = spending(deepName, b.Left), spending(deepName, b.Right)
	}
}

// ticking puts a tick of this cost into a body.
func ticking(body *nodes.Wrapper, cost int) {
	block := &nodes.ControlStructureBlock{Location: body.Location, Name: "tick", ControlStructure: &tick{at: body.Location, cost: cost}}
	body.Nodes = append([]nodes.Node{block}, body.Nodes...)
}

// spending is a call of a meter.
func spending(meter string, args ...nodes.Expression) nodes.Expression {
	if args[0] == nil {
		return nil
	}
	at := args[0].Position()
	name := &tokens.Token{Type: tokens.Name, Val: meter}
	if at != nil {
		name.Line, name.Col, name.Pos = at.Line, at.Col, at.Pos
	}
	return &nodes.Call{Location: name, Func: &nodes.Name{Name: name}, Args: args, Kwargs: map[string]nodes.Expression{}}
}

// inputSize is the number of bytes of the strings that a template is given, at least.
func inputSize(variables map[string]any) int {
	n := 0
	for _, v := range variables {
		n += valueSize(exec.ToValue(v))
	}
	return n
}

func valueSize(v *exec.Value) int {
	n := 1
	switch {
	case v.IsString():
		n += len(v.String())
	case v.IsList():
		for i := range v.Len() {
			n += valueSize(v.Index(i))
		}
	case v.IsDict():
		for _, key := range v.Keys() {
			item, _ := v.GetItem(key.Interface())
			n += valueSize(key) + valueSize(item)
		}
	}
	return n
}
