//go:build amd64 && !purego

package cpu

import x86 "golang.org/x/sys/cpu"

// unpackerSets are the sets of unpackers that the machine can run.
func unpackerSets() map[string]unpackers {
	sets := map[string]unpackers{"portable": unpackersGo()}
	for _, t := range tiers() {
		sets[t.name] = t.make(false).unpack
	}
	if _, ok := sets["avx512"]; ok {
		sets["avx512-integers"] = unpackersAVX512(false)
		if x86.X86.HasAVX512BF16 {
			sets["avx512-native"] = unpackersAVX512(true)
		}
	}
	return sets
}
