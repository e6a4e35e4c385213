package ptxsim

import (
	"errors"
	"fmt"
	"strings"
)

// line parses a statement, a label, a declaration or a brace of a kernel's body. After the last brace there is no scope.
func (p *parser) line() error {
	switch word := p.peek(); {
	case word == "":
		return errors.New("the body does not end")
	case word == ";":
		p.take()
	case word == "{":
		p.take()
		p.scope = newScope(p.scope)
	case word == "}":
		p.take()
		p.scope = p.scope.parent
	case word == ".loc":
		p.rest()
	case word == ".pragma":
		p.take()
		p.take()
		return p.expect(";")
	case strings.HasPrefix(word, "."):
		return p.declare()
	case len(p.tokens) > 1 && p.tokens[1].text == ":":
		if _, ok := p.scope.labels[word]; ok {
			return fmt.Errorf("there are two labels %s", word)
		}
		p.take()
		p.take()
		p.scope.labels[word] = len(p.k.statements)
	default:
		return p.instruction()
	}
	return nil
}

func (p *parser) instruction() error {
	start := p.tokens[0]
	s := statement{line: start.line, guard: -1, scope: p.scope}
	err := p.guard(&s)
	if err == nil {
		f := strings.Split(p.take(), ".")
		s.op, s.mods = f[0], f[1:]
		err = p.operands(&s)
	}
	end := p.tokens[0]
	s.text = p.src[start.at:end.at]
	if err == nil {
		err = p.expect(";")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", plain(s.text), err)
	}
	p.k.statements = append(p.k.statements, s)
	return nil
}

// plain is a statement's text on one line.
func plain(text string) string { return strings.Join(strings.Fields(text), " ") }

func (p *parser) guard(s *statement) error {
	if !p.accept("@") {
		return nil
	}
	s.negated = p.accept("!")
	o, err := p.operand()
	if err != nil {
		return err
	}
	if o.kind != predicateOperand || o.negated {
		return errors.New("the guard is no predicate")
	}
	s.guard = o.register
	return nil
}

func (p *parser) operands(s *statement) error {
	if p.peek() == ";" {
		return nil
	}
	if s.op == "bra" {
		s.label = p.take()
		return nil
	}
	for {
		o, err := p.operand()
		if err != nil {
			return err
		}
		if p.accept("|") {
			q, err := p.operand()
			if err != nil {
				return err
			}
			if q.kind != predicateOperand || q.negated {
				return errors.New("what follows | is no predicate")
			}
			o.second = q.register
		}
		s.args = append(s.args, o)
		if !p.accept(",") {
			return nil
		}
	}
}
