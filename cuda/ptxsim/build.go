package ptxsim

import (
	"errors"
	"fmt"
)

// builder makes an instruction from a statement. Its methods look at operands and modifiers; the first that does not fit is
// err, and what they return then is never run.
type builder struct {
	*statement
	body   *body
	place  []int // of registers
	values map[uint64]int
	named  map[string]int // special registers
	seen   uint64         // the modifiers that were understood, a bit for each
	out    instr
	err    error
}

// maxGrain is for accesses of 16 bytes, the largest.
const maxGrain = 4

// build makes the kernel's code from its statements.
func (b *body) build() error {
	k := b.kernel
	place, count := b.allocate()
	k.registers, k.grain = count, maxGrain
	values, named := map[uint64]int{}, map[string]int{}
	for i := range b.statements {
		s := &b.statements[i]
		one := builder{statement: s, body: b, place: place, values: values, named: named}
		one.out = instr{guard: s.guard, line: s.line, text: s.text, member: -1}
		if s.negated {
			one.out.negate = all
		}
		if err := one.instruction(); err != nil {
			return fmt.Errorf("kernel %s: line %d: %s: %w", k.name, s.line, plain(s.text), err)
		}
		k.code = append(k.code, one.out)
	}
	last := instr{flow: exit, guard: -1, member: -1, text: "end of the kernel"}
	if n := len(k.code); n > 0 {
		last.line = k.code[n-1].line
	}
	k.code = append(k.code, last)
	return nil
}

func (b *builder) instruction() error {
	make, ok := instructions[b.op]
	if !ok {
		return errors.New("unknown instruction")
	}
	b.out.run = make(b)
	if b.err != nil {
		return b.err
	}
	if b.out.run == nil && b.out.flow == next {
		return errors.New("unsupported form of the instruction")
	}
	for i, m := range b.mods {
		if b.seen>>i&1 == 0 {
			return fmt.Errorf("unsupported modifier .%s", m)
		}
	}
	return nil
}

func (b *builder) fail(format string, a ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, a...)
	}
}

// has reports whether the instruction has a modifier.
func (b *builder) has(mod string) bool {
	found := false
	for i, m := range b.mods {
		if m == mod {
			b.seen |= 1 << i
			found = true
		}
	}
	return found
}

// allow accepts modifiers that change nothing here.
func (b *builder) allow(mods ...string) {
	for _, m := range mods {
		b.has(m)
	}
}

// one is the modifier of a list that the instruction has, or "".
func (b *builder) one(mods ...string) string {
	for _, m := range mods {
		if b.has(m) {
			return m
		}
	}
	return ""
}

// typ is the i-th modifier from the end, which has to be a type.
func (b *builder) typ(i int) dtype {
	if len(b.mods) <= i {
		b.fail("the type is missing")
		return types["b32"]
	}
	name := b.mods[len(b.mods)-1-i]
	t, ok := types[name]
	if !ok {
		b.fail("unknown type .%s", name)
		return types["b32"]
	}
	b.seen |= 1 << (len(b.mods) - 1 - i)
	return t
}

// count checks the number of operands.
func (b *builder) count(low, high int) {
	if n := len(b.args); n < low || n > high {
		b.fail("%d operands", n)
	}
}

func (b *builder) arg(i int) operand {
	if i >= len(b.args) {
		b.fail("%d operands are too few", len(b.args))
		return operand{}
	}
	return b.args[i]
}

// dst is the register that operand i is, of so many bytes.
func (b *builder) dst(i, size int) int { return b.target(b.arg(i), size, size) }

// target is the register of an operand that is written, of low to high bytes.
func (b *builder) target(o operand, low, high int) int {
	switch {
	case o.kind == sinkOperand:
		return b.fresh()
	case o.kind != registerOperand:
		b.fail("the result needs a register")
		return 0
	case o.size < low || o.size > high:
		b.fail("the result has %d bits, its register %d", 8*low, 8*o.size)
	}
	return b.place[o.register]
}

// fresh is a new register.
func (b *builder) fresh() int {
	b.body.kernel.registers++
	return b.body.kernel.registers - 1
}

// src is a register with the value of operand i, of so many bytes.
func (b *builder) src(i, size int) int { return b.source(b.arg(i), size, size) }

// source is a register with the value of an operand, in a register of low to high bytes.
func (b *builder) source(o operand, low, high int) int {
	switch o.kind {
	case registerOperand, specialOperand:
		if o.size < low || o.size > high {
			b.fail("an operand of %d bits where the instruction reads %d", 8*o.size, 8*low)
		}
		if o.kind == specialOperand {
			return b.special(o.name)
		}
		return b.place[o.register]
	case numberOperand:
		return b.value(o.number, low)
	case symbolOperand:
		return b.value(b.offset(o.symbol), low)
	}
	b.fail("an operand is no register and no number")
	return 0
}

// value is a register that holds v from the start.
func (b *builder) value(v uint64, size int) int {
	v = low(v, size)
	r, ok := b.values[v]
	if !ok {
		r = b.fresh()
		b.values[v] = r
		b.body.kernel.values = append(b.body.kernel.values, value{r, v})
	}
	return r
}

func (b *builder) special(name string) int {
	r, ok := b.named[name]
	if !ok {
		r = b.fresh()
		b.named[name] = r
		b.body.kernel.specials = append(b.body.kernel.specials, special{r, name})
	}
	return r
}

// dynamicAlign is the alignment of dynamic shared memory behind the static one.
const dynamicAlign = 128

func (b *builder) offset(s *symbol) uint64 {
	if s.dynamic {
		return uint64(up(b.body.kernel.shared, dynamicAlign))
	}
	return uint64(s.offset)
}

// number is operand i, which has to be written as a number in [0, high].
func (b *builder) number(i int, high uint64) uint64 {
	o := b.arg(i)
	if o.kind != numberOperand || o.number > high {
		b.fail("operand %d has to be a number in [0, %d]", i+1, high)
	}
	return o.number
}

// predicate is operand i; negate is all ones if it is negated.
func (b *builder) predicate(i int) (index int, negate uint32) {
	o := b.arg(i)
	if o.kind != predicateOperand {
		b.fail("operand %d is no predicate", i+1)
	}
	if o.negated {
		negate = all
	}
	return o.register, negate
}

// plain is a predicate that may not be negated.
func (b *builder) plain(i int) int {
	p, negate := b.predicate(i)
	if negate != 0 {
		b.fail("operand %d cannot be negated", i+1)
	}
	return p
}

// list are the registers of operand i: its elements, or itself. get turns each into a register.
func (b *builder) list(i int, get func(o operand) int) []int {
	o := b.arg(i)
	if o.kind != vectorOperand {
		return []int{get(o)}
	}
	var out []int
	for _, e := range o.list {
		out = append(out, get(e))
	}
	return out
}

// address is the register and the offset of the address that operand i is, in a space.
func (b *builder) address(i int, s space) (register int, offset uint64) {
	o := b.arg(i)
	if o.kind != addressOperand {
		b.fail("operand %d is no address", i+1)
		return 0, 0
	}
	offset = o.number
	if o.symbol != nil {
		if o.symbol.space != s {
			b.fail("the variable is %s, the instruction reads %s memory", o.symbol.space, s)
		}
		offset += b.offset(o.symbol)
	}
	if o.register < 0 {
		return b.value(0, 8), offset
	}
	if o.size < 4 {
		b.fail("the address has %d bits", 8*o.size)
	}
	return b.place[o.register], offset
}

// space is the space that the instruction names; generic if it names none.
func (b *builder) space() space {
	for i, m := range b.mods {
		if s, ok := spaces[m]; ok {
			b.seen |= 1 << i
			return s
		}
	}
	return generic
}
