package gguf

import (
	"fmt"
	"math"
	"strconv"
)

// meta reads metadata by key. The first key that is missing or of a wrong type is remembered in err.
type meta struct {
	values map[string]any
	err    error
}

func (m *meta) fail(key, want string) {
	if m.err != nil {
		return
	}
	if v, ok := m.values[key]; ok {
		m.err = fmt.Errorf("metadata %q is %v (%T); want %s", key, v, v, want)
	} else {
		m.err = fmt.Errorf("metadata %q is missing; want %s", key, want)
	}
}

func (m *meta) has(key string) bool { return m.values[key] != nil }

// number is an integer of any width that is at least 0 and below 2^31.
func (m *meta) number(key string) int {
	if n, ok := number(m.values[key]); ok {
		return n
	}
	m.fail(key, "a number from 0 to 2147483647")
	return 0
}

func number(v any) (n int, ok bool) {
	x := int64(-1)
	switch v := v.(type) {
	case uint8:
		x = int64(v)
	case int8:
		x = int64(v)
	case uint16:
		x = int64(v)
	case int16:
		x = int64(v)
	case uint32:
		x = int64(v)
	case int32:
		x = int64(v)
	case uint64:
		x = int64(min(v, math.MaxInt64))
	case int64:
		x = v
	}
	return int(x), x >= 0 && x <= math.MaxInt32
}

func (m *meta) numberOr(key string, otherwise int) int {
	if !m.has(key) {
		return otherwise
	}
	return m.number(key)
}

// float is a float32 or float64. A float32 becomes the shortest decimal number that it stands for: 1e-05, not
// 9.999999747378752e-06.
func (m *meta) float(key string) float64 {
	switch v := m.values[key].(type) {
	case float32:
		if x, err := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64); err == nil {
			return x
		}
	case float64:
		return v
	}
	m.fail(key, "a floating-point number")
	return 0
}

func (m *meta) text(key string) string {
	s, ok := m.values[key].(string)
	if !ok {
		m.fail(key, "a string")
	}
	return s
}

func (m *meta) textOr(key, otherwise string) string {
	if !m.has(key) {
		return otherwise
	}
	return m.text(key)
}

func (m *meta) boolOr(key string, otherwise bool) bool {
	if !m.has(key) {
		return otherwise
	}
	b, ok := m.values[key].(bool)
	if !ok {
		m.fail(key, "true or false")
	}
	return b
}

func (m *meta) texts(key string) []string {
	list, ok := m.values[key].([]any)
	texts := make([]string, len(list))
	for i, v := range list {
		s, isText := v.(string)
		ok = ok && isText
		texts[i] = s
	}
	if !ok {
		m.fail(key, "an array of strings")
	}
	return texts
}

func (m *meta) numbers(key string) []int {
	list, ok := m.values[key].([]any)
	numbers := make([]int, len(list))
	for i, v := range list {
		n, isNumber := number(v)
		ok = ok && isNumber
		numbers[i] = n
	}
	if !ok {
		m.fail(key, "an array of numbers")
	}
	return numbers
}
