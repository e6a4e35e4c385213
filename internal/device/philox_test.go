package device

import "testing"

// Known answers of philox4x32-10: Random123's kat_vectors.
func TestPhiloxKnownAnswers(t *testing.T) {
	const ones = 0xffffffff
	for _, c := range []struct {
		counter [4]uint32
		key     PhiloxKey
		want    [4]uint32
	}{
		{[4]uint32{}, PhiloxKey{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{ones, ones, ones, ones}, PhiloxKey{ones, ones}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, PhiloxKey{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := Philox(c.key, c.counter); got != c.want {
			t.Errorf("Philox(%x, %x) = %x, want %x", c.key, c.counter, got, c.want)
		}
	}
}

// The first word goes through the splitmix64 generator from state 0 if it cancels the start; the first output of that
// generator for seed 0 is 0xe220a8397b1dcdaf (Vigna's splitmix64.c).
func TestNewKey(t *testing.T) {
	if got, want := NewKey(0x9E3779B97F4A7C15), (PhiloxKey{0x7b1dcdaf, 0xe220a839}); got != want {
		t.Errorf("NewKey = %x, want %x", got, want)
	}
	seen := map[PhiloxKey][]uint64{}
	for _, words := range [][]uint64{{}, {0}, {0, 0}, {1}, {1, 0}, {0, 1}, {1, 2, 3}, {3, 2, 1}} {
		k := NewKey(words...)
		if other, ok := seen[k]; ok {
			t.Errorf("words %v and %v have one key", words, other)
		}
		seen[k] = words
	}
}

// A uniform of exactly 0 or 1 would draw a token of probability 0.
func TestUniformIsOpen(t *testing.T) {
	for w, want := range map[uint32]float32{0: 1.0 / (1 << 24), 0xffffffff: 1 - 1.0/(1<<24), 1 << 31: 0.5 + 1.0/(1<<24)} {
		if got := Uniform(w); got != want {
			t.Errorf("Uniform(%#x) = %v, want %v", w, got, want)
		}
	}
}
