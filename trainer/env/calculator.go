package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"strings"
)

// Limits of an expression and of its numbers, so that none takes long.
const (
	maxExpression = 1000
	maxBits       = 4096
)

// calculator computes an expression with exact fractions, and writes the result as a decimal number of up to 12 places.
func calculator(_ context.Context, arguments json.RawMessage) (string, error) {
	var in struct {
		Expression string `json:"expression"`
	}
	if err := json.Unmarshal(arguments, &in); err != nil || in.Expression == "" {
		return "", errors.New(`the arguments are {"expression": "..."}`)
	}
	if len(in.Expression) > maxExpression {
		return "", fmt.Errorf("an expression has at most %d characters", maxExpression)
	}
	e, err := parser.ParseExpr(in.Expression)
	if err != nil {
		return "", fmt.Errorf("%q is no expression of numbers, + - * / %% and parentheses", in.Expression)
	}
	v, err := value(e)
	if err != nil {
		return "", err
	}
	text := v.FloatString(12)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), "."), nil
}

// value computes an expression.
func value(e ast.Expr) (*big.Rat, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return value(e.X)
	case *ast.UnaryExpr:
		v, err := value(e.X)
		if err == nil && e.Op == token.SUB {
			v = v.Neg(v)
		} else if err == nil && e.Op != token.ADD {
			err = fmt.Errorf("there is no operation %s", e.Op)
		}
		return v, err
	case *ast.BasicLit:
		v, ok := number(e)
		if !ok {
			return nil, fmt.Errorf("%q is no number, or too long", e.Value)
		}
		return v, nil
	case *ast.BinaryExpr:
		x, err := value(e.X)
		if err != nil {
			return nil, err
		}
		y, err := value(e.Y)
		if err != nil {
			return nil, err
		}
		return operate(e.Op, x, y)
	}
	return nil, errors.New("only numbers, + - * / % and parentheses are known")
}

// number reads a plain decimal number; one with an exponent could be of any length.
func number(e *ast.BasicLit) (*big.Rat, bool) {
	if e.Kind != token.INT && e.Kind != token.FLOAT || strings.ContainsAny(e.Value, "xXoObBeEpP_") {
		return nil, false
	}
	return new(big.Rat).SetString(strings.TrimLeft(e.Value[:len(e.Value)-1], "0") + e.Value[len(e.Value)-1:])
}

func operate(op token.Token, x, y *big.Rat) (*big.Rat, error) {
	switch op {
	case token.ADD:
		x.Add(x, y)
	case token.SUB:
		x.Sub(x, y)
	case token.MUL:
		x.Mul(x, y)
	case token.QUO, token.REM:
		if y.Sign() == 0 {
			return nil, errors.New("division by zero")
		}
		if op == token.QUO {
			x.Quo(x, y)
			break
		}
		if !x.IsInt() || !y.IsInt() {
			return nil, errors.New("% is for whole numbers")
		}
		x.SetInt(new(big.Int).Rem(x.Num(), y.Num()))
	default:
		return nil, fmt.Errorf("there is no operation %s", op)
	}
	if x.Num().BitLen() > maxBits || x.Denom().BitLen() > maxBits {
		return nil, errors.New("the numbers become too large")
	}
	return x, nil
}
