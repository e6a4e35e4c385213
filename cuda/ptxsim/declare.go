package ptxsim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// scope holds the names between two braces. A kernel's body is a scope, inline assembly has its own within.
type scope struct {
	parent *scope
	single map[string]int     // registers declared one by one: bytes, 0 for a predicate
	ranges map[string]regs    // registers declared as %r<100>, by prefix
	made   map[string]operand // registers that occur
	labels map[string]int     // instruction that follows
}

// regs are registers prefix0 to prefix(count-1).
type regs struct{ size, count int }

func newScope(parent *scope) *scope {
	return &scope{parent, map[string]int{}, map[string]regs{}, map[string]operand{}, map[string]int{}}
}

// size is the size of a register that s itself declares.
func (s *scope) size(name string) (int, bool) {
	if n, ok := s.single[name]; ok {
		return n, true
	}
	prefix := strings.TrimRight(name, "0123456789")
	r, ok := s.ranges[prefix]
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(name[len(prefix):])
	return r.size, err == nil && i < r.count
}

// label finds the instruction that a label is before.
func (s *scope) label(name string) (int, bool) {
	for ; s != nil; s = s.parent {
		if at, ok := s.labels[name]; ok {
			return at, true
		}
	}
	return 0, false
}

// symbol is a variable or a parameter; its offset is within its space.
type symbol struct {
	space        space
	offset, size int
	align        int
	placed       bool // has an offset
	dynamic      bool // .extern .shared: its offset is behind the static shared memory
}

// The most bytes that a variable may have, which is more than any space has.
const maxVariable = 1 << 24

// declaration is what .reg, .shared, ... say, before the names.
type declaration struct {
	space  string
	extern bool
	align  int
	typ    dtype
}

var spaceWords = map[string]space{".shared": shared, ".local": local, ".const": constant, ".global": global}

// declare parses from .reg, .shared, .local or .const, with what is before it, to the semicolon.
func (p *parser) declare() error {
	d := declaration{align: 1}
	for strings.HasPrefix(p.peek(), ".") {
		switch word := p.take(); word {
		case ".visible", ".weak", ".common":
		case ".extern":
			d.extern = true
		case ".align":
			n, err := p.number(1, 1<<16)
			if err != nil {
				return err
			}
			d.align = n
		case ".reg", ".shared", ".local", ".const", ".global":
			d.space = word
		default:
			t, ok := types[word[1:]]
			if !ok {
				return fmt.Errorf("unknown %s in a declaration", word)
			}
			d.typ = t
		}
	}
	if d.typ.name == "" {
		return fmt.Errorf("a declaration without a type")
	}
	d.align = max(d.align, d.typ.size)
	for {
		if err := p.declareName(d); err != nil {
			return err
		}
		if !p.accept(",") {
			return p.expect(";")
		}
	}
}

func (p *parser) declareName(d declaration) error {
	name := p.take()
	if !isName(name) {
		return fmt.Errorf("%q cannot be a name", name)
	}
	if d.space == ".reg" {
		return p.declareRegister(name, d.typ)
	}
	s := &symbol{space: spaceWords[d.space], size: d.typ.size, align: d.align, dynamic: d.extern}
	for p.accept("[") {
		if p.accept("]") {
			continue
		}
		n, err := p.number(1, maxVariable)
		if err != nil {
			return err
		}
		if s.size *= n; s.size > maxVariable {
			return fmt.Errorf("variable %s is too large", name)
		}
		if err := p.expect("]"); err != nil {
			return err
		}
	}
	switch {
	case d.typ.size == 0:
		return fmt.Errorf("variable %s is a predicate", name)
	case (s.space == constant || s.space == global) && p.k == nil:
		if err := p.initialise(s, d.typ); err != nil {
			return err
		}
	case s.space == shared, s.space == local && p.k != nil:
	default:
		return fmt.Errorf("variable %s: %s variables are not supported here", name, d.space)
	}
	p.symbols()[name] = s
	return nil
}

func (p *parser) declareRegister(name string, t dtype) error {
	if p.scope == nil {
		return fmt.Errorf("a register outside of a kernel")
	}
	if !p.accept("<") {
		p.scope.single[name] = t.size
		return nil
	}
	n, err := p.number(0, 1<<20)
	if err != nil {
		return err
	}
	p.scope.ranges[name] = regs{t.size, n}
	return p.expect(">")
}

// symbols are the variables of the kernel that is being parsed, or of the module.
func (p *parser) symbols() map[string]*symbol {
	if p.k != nil {
		return p.k.symbols
	}
	return p.globals
}

// initialise reads the initial values of a variable; what is not given is zero. Those of .const get a place. Those of .global
// may only be declared, which the compiler does for what it has put into the code.
func (p *parser) initialise(s *symbol, t dtype) error {
	values := make([]byte, s.size)
	if p.accept("=") {
		braces := p.accept("{")
		for at := 0; ; at += t.size {
			v, ok := immediate(p.take())
			if !ok || at+t.size > s.size {
				return errors.New("cannot read the initial values of a variable")
			}
			store(values[at:], v, t.size)
			if !braces || !p.accept(",") {
				break
			}
		}
		if braces {
			if err := p.expect("}"); err != nil {
				return err
			}
		}
	}
	if s.space == constant {
		start := up(len(p.m.consts), s.align)
		p.m.consts = append(append(p.m.consts, make([]byte, start-len(p.m.consts))...), values...)
		s.offset, s.placed = start, true
	}
	return nil
}

// up is n rounded up to a multiple of align.
func up(n, align int) int { return (n + align - 1) / align * align }
