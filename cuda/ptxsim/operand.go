package ptxsim

import (
	"errors"
	"fmt"
)

// operandKind is what an operand is.
type operandKind int

const (
	noOperand operandKind = iota
	registerOperand
	predicateOperand
	numberOperand
	symbolOperand
	specialOperand
	addressOperand
	vectorOperand
	sinkOperand // _: nobody wants the result
)

// operand is an operand of an instruction as it is written.
type operand struct {
	kind     operandKind
	register int    // register or predicate
	size     int    // bytes of the register
	number   uint64 // value, or offset of an address
	symbol   *symbol
	name     string // of a special register
	negated  bool   // of a predicate
	second   int    // predicate after |, or -1
	list     []operand
}

// specialSizes are the special registers and their bytes.
var specialSizes = map[string]int{
	"%tid.x": 4, "%tid.y": 4, "%tid.z": 4, "%ntid.x": 4, "%ntid.y": 4, "%ntid.z": 4,
	"%ctaid.x": 4, "%ctaid.y": 4, "%ctaid.z": 4, "%nctaid.x": 4, "%nctaid.y": 4, "%nctaid.z": 4,
	"%laneid": 4, "%warpid": 4, "%nwarpid": 4,
	"%lanemask_lt": 4, "%lanemask_le": 4, "%lanemask_gt": 4, "%lanemask_ge": 4, "%lanemask_eq": 4,
}

func (p *parser) operand() (operand, error) {
	switch word := p.take(); word {
	case "!":
		o, err := p.simple(p.take())
		if err == nil && o.kind != predicateOperand {
			err = errors.New("what follows ! is no predicate")
		}
		o.negated = true
		return o, err
	case "{":
		return p.vector()
	case "[":
		return p.address()
	default:
		return p.simple(word)
	}
}

// simple resolves a name or reads a number.
func (p *parser) simple(word string) (operand, error) {
	if v, ok := immediate(word); ok {
		return operand{kind: numberOperand, number: v, second: -1}, nil
	}
	switch word {
	case "WARP_SZ":
		return operand{kind: numberOperand, number: 32, second: -1}, nil
	case "_":
		return operand{kind: sinkOperand, second: -1}, nil
	}
	if size, ok := specialSizes[word]; ok {
		return operand{kind: specialOperand, name: word, size: size, second: -1}, nil
	}
	for s := p.scope; s != nil; s = s.parent {
		if size, ok := s.size(word); ok {
			return p.register(s, word, size), nil
		}
	}
	s, err := p.symbol(word)
	return operand{kind: symbolOperand, symbol: s, size: 8, second: -1}, err
}

// register is the operand of a declared register.
func (p *parser) register(s *scope, name string, size int) operand {
	o, ok := s.made[name]
	if !ok {
		o = operand{kind: registerOperand, register: len(p.k.sizes), size: size, second: -1}
		if size == 0 {
			o.kind, o.register = predicateOperand, p.k.kernel.preds
			p.k.kernel.preds++
		} else {
			p.k.sizes = append(p.k.sizes, size)
		}
		s.made[name] = o
	}
	return o
}

// symbol finds a variable and gives it a place if it has none yet.
func (p *parser) symbol(name string) (*symbol, error) {
	s, k := p.k.symbols[name], p.k.kernel
	if s == nil {
		module, ok := p.globals[name]
		if !ok {
			return nil, fmt.Errorf("unknown name %q", name)
		}
		own := *module
		s = &own
		p.k.symbols[name] = s
	}
	if s.space == global {
		return nil, fmt.Errorf("variable %s: .global variables are not supported; make it __constant__", name)
	}
	if s.placed || s.dynamic {
		return s, nil
	}
	s.placed = true
	used := &k.shared
	if s.space == local {
		used = &k.local
	}
	s.offset = up(*used, s.align)
	*used = s.offset + s.size
	return s, nil
}

// vector parses {a, b, ...}.
func (p *parser) vector() (operand, error) {
	o := operand{kind: vectorOperand, second: -1}
	for {
		e, err := p.simple(p.take())
		if err != nil {
			return o, err
		}
		o.list = append(o.list, e)
		if !p.accept(",") {
			return o, p.expect("}")
		}
	}
}

// address parses [base] or [base+offset], where base is a register or a variable.
func (p *parser) address() (operand, error) {
	base, err := p.simple(p.take())
	if err != nil {
		return base, err
	}
	o := operand{kind: addressOperand, register: -1, size: 8, second: -1}
	switch base.kind {
	case registerOperand:
		o.register, o.size = base.register, base.size
	case symbolOperand:
		o.symbol = base.symbol
	default:
		return o, errors.New("an address cannot begin with that")
	}
	if p.accept("+") {
		v, ok := immediate(p.take())
		if !ok {
			return o, errors.New("the offset of an address is no number")
		}
		o.number += v
	}
	return o, p.expect("]")
}
