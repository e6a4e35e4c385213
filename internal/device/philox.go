package device

import "math/bits"

// PhiloxKey is the key of a Philox4x32-10 stream (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
type PhiloxKey [2]uint32

// NewKey derives a key from words such as (run seed, step, prompt, sample) by the splitmix64 finaliser, order mattering.
func NewKey(words ...uint64) PhiloxKey {
	h := uint64(0x9E3779B97F4A7C15)
	for _, w := range words {
		h ^= w
		h += 0x9E3779B97F4A7C15
		h = (h ^ h>>30) * 0xBF58476D1CE4E5B9
		h = (h ^ h>>27) * 0x94D049BB133111EB
		h ^= h >> 31
	}
	return PhiloxKey{uint32(h), uint32(h >> 32)}
}

// Philox returns the four words of one counter.
func Philox(k PhiloxKey, c [4]uint32) [4]uint32 {
	for range 10 {
		h0, l0 := bits.Mul32(0xD2511F53, c[0])
		h1, l1 := bits.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{h1 ^ c[1] ^ k[0], l1, h0 ^ c[3] ^ k[1], l0}
		k[0] += 0x9E3779B9
		k[1] += 0xBB67AE85
	}
	return c
}

// Uniform maps a word to (0,1): (w>>9 + 0.5)·2⁻²³. Both steps are exact in float32, so that every value is inside and as
// likely as any other.
func Uniform(w uint32) float32 { return (float32(w>>9) + 0.5) * (1.0 / (1 << 23)) }
