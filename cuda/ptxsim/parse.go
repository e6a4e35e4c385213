package ptxsim

import (
	"fmt"
	"strconv"
	"strings"
)

// parser reads a module from its tokens.
type parser struct {
	src     string
	tokens  []token
	m       *module
	globals map[string]*symbol // variables of the module
	bodies  []*body            // kernels that were read
	k       *body              // kernel that is being read
	scope   *scope             // innermost
}

// body is a kernel as it is written.
type body struct {
	kernel     *kernel
	symbols    map[string]*symbol
	statements []statement
	sizes      []int // bytes of each register; 0 for a predicate
}

// statement is an instruction as it is written.
type statement struct {
	line    int
	text    string
	op      string
	mods    []string
	args    []operand
	guard   int // predicate, or -1
	negated bool
	label   string // of a branch
	scope   *scope
}

// parse reads a module. Whatever it does not know is an error that names the line.
func parse(src string) (*module, error) {
	tokens, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{src: src, tokens: tokens, m: &module{kernels: map[string]*kernel{}}, globals: map[string]*symbol{}}
	for p.peek() != "" {
		line := p.tokens[0].line
		if err := p.directive(); err != nil {
			return nil, fmt.Errorf("line %d: %w", max(line, p.tokens[0].line), err)
		}
	}
	for _, b := range p.bodies {
		if err := b.build(); err != nil {
			return nil, err
		}
		b.kernel.consts = p.m.consts
	}
	return p.m, nil
}

func (p *parser) peek() string { return p.tokens[0].text }

// take returns the next token; the end stays.
func (p *parser) take() string {
	t := p.tokens[0]
	if t.text != "" {
		p.tokens = p.tokens[1:]
	}
	return t.text
}

func (p *parser) accept(text string) bool {
	if p.peek() != text {
		return false
	}
	p.take()
	return true
}

func (p *parser) expect(text string) error {
	if got := p.peek(); !p.accept(text) {
		return fmt.Errorf("expected %q, not %q", text, got)
	}
	return nil
}

// isName reports whether a token can name something.
func isName(word string) bool { return word != "" && inWord(word[0]) && word[0] != '.' }

func (p *parser) number(low, high int) (int, error) {
	word := p.take()
	n, err := strconv.Atoi(word)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("expected a number in [%d, %d], not %q", low, high, word)
	}
	return n, nil
}

// rest skips to the end of the line.
func (p *parser) rest() {
	for line := p.tokens[0].line; p.peek() != "" && p.tokens[0].line == line; {
		p.take()
	}
}

// directive parses what stands outside of kernels.
func (p *parser) directive() error {
	linkage := 0
	for ; p.tokens[linkage].text == ".visible" || p.tokens[linkage].text == ".weak"; linkage++ {
	}
	switch word := p.tokens[linkage].text; word {
	case ".version", ".target", ".address_size", ".file":
		p.rest()
		return nil
	case ".entry":
		p.tokens = p.tokens[linkage+1:]
		return p.entry()
	case ".extern", ".shared", ".const", ".global":
		return p.declare()
	default:
		return fmt.Errorf("unsupported directive %q", word)
	}
}

// entry parses a kernel from its name on.
func (p *parser) entry() error {
	name := p.take()
	if !isName(name) || p.m.kernels[name] != nil {
		return fmt.Errorf("a kernel cannot be named %q, or there are two of that name", name)
	}
	p.k = &body{kernel: &kernel{name: name}, symbols: map[string]*symbol{}}
	defer func() { p.k, p.scope = nil, nil }()
	if p.accept("(") {
		if err := p.parameters(); err != nil {
			return err
		}
	}
	if err := p.limits(); err != nil {
		return err
	}
	p.scope = newScope(nil)
	for p.scope != nil {
		if err := p.line(); err != nil {
			return fmt.Errorf("kernel %s: %w", name, err)
		}
	}
	p.m.kernels[name] = p.k.kernel
	p.bodies = append(p.bodies, p.k)
	return nil
}

// maxParameters is how many bytes the parameters of a kernel may have.
const maxParameters = 4096

func (p *parser) parameters() error {
	k := p.k.kernel
	for !p.accept(")") {
		if len(k.params) > 0 {
			if err := p.expect(","); err != nil {
				return err
			}
		}
		s, name := &symbol{space: parameter, size: 1, align: 1, placed: true}, ""
		for name == "" {
			if err := p.parameterWord(s, &name); err != nil {
				return err
			}
		}
		if p.accept("[") {
			n, err := p.number(1, maxParameters)
			if err != nil {
				return err
			}
			s.size *= n
			if err := p.expect("]"); err != nil {
				return err
			}
		}
		s.offset = up(k.paramSize, s.align)
		k.params = append(k.params, param{s.offset, s.size})
		if k.paramSize = s.offset + s.size; k.paramSize > maxParameters {
			return fmt.Errorf("the parameters have more than %d bytes", maxParameters)
		}
		p.k.symbols[name] = s
	}
	return nil
}

// parameterWord parses a word of the declaration of a parameter, of which the last is its name.
func (p *parser) parameterWord(s *symbol, name *string) error {
	switch word := p.take(); word {
	case ".param", ".ptr", ".global", ".shared", ".const", ".local":
	case ".align":
		n, err := p.number(1, maxParameters)
		if err != nil {
			return err
		}
		s.align = max(s.align, n)
	default:
		t, ok := types[strings.TrimPrefix(word, ".")]
		switch {
		case isName(word):
			*name = word
		case !ok || t.size == 0:
			return fmt.Errorf("%q in a parameter", word)
		default:
			s.size, s.align = t.size, max(s.align, t.size)
		}
	}
	return nil
}

// limits parses what stands between the parameters and the body.
func (p *parser) limits() error {
	for {
		switch word := p.take(); word {
		case "{":
			return nil
		case ".maxntid":
			for i := range 3 {
				n, err := p.number(1, 1024)
				if err != nil {
					return err
				}
				p.k.kernel.block[i] = n
				if i < 2 && !p.accept(",") {
					break
				}
			}
		case ".minnctapersm", ".maxnreg":
			if _, err := p.number(1, 1024); err != nil {
				return err
			}
		default:
			return fmt.Errorf("expected the kernel's body, not %q", word)
		}
	}
}
