package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// quantised are the types that have unpackers.
func quantised() (list []device.DType) {
	for t := range unpackers(unpackersGo()) {
		if _, ok := layoutOf(device.DType(t)); ok {
			list = append(list, device.DType(t))
		}
	}
	return list
}

// randomPanel is a panel over k of any bits, but with numbers that are finite; every float16 occurs.
func randomPanel(l *blockLayout, k int, rng *rand.Rand) []uint32 {
	words := make([]uint32, l.panelWords(k))
	for i := range words {
		words[i] = rng.Uint32()
	}
	for at := 0; at < k; at += l.span {
		b := l.blockAt(words, at)
		halves := lane[uint16](b, 0, panel)
		if l.Min {
			halves = append(halves[:panel:panel], lane[uint16](b, l.minimum, panel)...)
		}
		for i, h := range halves {
			if h&0x7c00 == 0x7c00 {
				halves[i] &^= 0x4000
			}
		}
		copy(lane[uint16](b, 0, panel), halves)
		if l.Min {
			copy(lane[uint16](b, l.minimum, panel), halves[panel:])
		}
	}
	return words
}

// Every unpacker writes the pairs that the portable one does, for any first unit and number of them, and nothing else.
func TestUnpackers(t *testing.T) {
	const k, guard = 1024, 0xabcdef01
	rng := rand.New(rand.NewPCG(1, 2))
	for _, dtype := range quantised() {
		l, _ := layoutOf(dtype)
		for name, set := range unpackerSets() {
			t.Run(fmt.Sprintf("%v/%s", dtype, name), func(t *testing.T) {
				for range 40 {
					words := randomPanel(&l, k, rng)
					first := rng.IntN(k / unit)
					units := 1 + rng.IntN(min(16, k/unit-first))
					n := units * unit / 2 * panel
					want, got := slices.Repeat([]uint32{guard}, n+panel), slices.Repeat([]uint32{guard}, n+panel)
					unpackGo(&l)(&want[0], &words[0], first, units)
					set[dtype](&got[0], &words[0], first, units)
					for i := range want {
						if got[i] != want[i] {
							t.Fatalf("units %d+%d: pair %d of row %d is %08x, want %08x", first, units, i/panel, i%panel, got[i], want[i])
						}
					}
				}
			})
		}
	}
}

// On every tier the number of threads changes no bit of a product with a quantised weight, nor does it matter that the
// weight is not kept in bfloat16; the vector tiers agree with each other.
func TestQuantisedProducts(t *testing.T) {
	const rows, n, k = 700, 330, 768
	product := func(d on, w device.Weight, x, dy []float32) [][]float32 {
		xm, dym, y, dx := d.mat(rows, k), d.mat(rows, n), d.mat(rows, n), d.mat(rows, k)
		d.Upload(xm.Mem, 0, x)
		d.Upload(dym.Mem, 0, dy)
		d.Zero(dx)
		d.Linear(y, xm, device.Linear{W: w})
		d.LinearGrad(dx, dym, xm, device.Linear{W: w})
		return [][]float32{d.read(y), d.read(dx)}
	}
	for _, dtype := range quantised() {
		var vector [][]float32
		for _, tier := range testedTiers() {
			if tier.name == "portable" { // where products of this size take long; the conformance suite has small ones
				continue
			}
			var first [][]float32
			for _, threads := range []int{1, 2} {
				d := onDevice(t, Options{Threads: threads, Tier: tier.name})
				x, dy, w := d.values(rows*k), d.values(rows*n), d.quantised(dtype, n, k)
				got := product(d, w, x, dy)
				if first == nil {
					wide, err := d.NewWeight(device.BFloat16, n, k)
					if err != nil {
						t.Fatal(err)
					}
					if err := d.LoadWeight(wide, 0, d.elements(w)); err != nil {
						t.Fatal(err)
					}
					first = product(d, wide, x, dy)
				}
				if vector == nil && tier.name != "amx" {
					vector = first
				}
				for i := range got {
					what := fmt.Sprintf("%v on %s with %d threads, result %d", dtype, tier.name, threads, i)
					sameBits(t, what, got[i], first[i])
					if tier.name != "amx" {
						sameBits(t, what+", against the first vector tier", got[i], vector[i])
					}
				}
			}
		}
	}
}

// quantised is a weight of random codes.
func (d on) quantised(t device.DType, n, k int) device.Weight {
	w, err := d.NewWeight(t, n, k)
	if err != nil {
		d.t.Fatal(err)
	}
	own := w.(*weight)
	for i, words := 0, own.layout.panelWords(k); i < len(own.blocks); i += words {
		copy(own.blocks[i:], randomPanel(&own.layout, k, d.rng))
	}
	return w
}

// elements are the elements [n,k] of a weight.
func (d on) elements(w device.Weight) []float32 {
	n, k := w.Shape()
	y := d.mat(n, k)
	d.Embed(y, w, d.ints(n, func(i int) int32 { return int32(i) }))
	return d.read(y)
}

// BenchmarkUnpack reports weights unpacked per second, from the caches.
func BenchmarkUnpack(b *testing.B) {
	const k = 256
	rng := rand.New(rand.NewPCG(1, 2))
	for _, dtype := range quantised() {
		l, _ := layoutOf(dtype)
		words, out := randomPanel(&l, k, rng), aligned[uint32](k/2*panel)
		for name, set := range unpackerSets() {
			b.Run(fmt.Sprintf("%v/%s", dtype, name), func(b *testing.B) {
				for b.Loop() {
					set[dtype](&out[0], &words[0], 0, k/unit)
				}
				b.ReportMetric(float64(k*panel)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gweights/s")
			})
		}
	}
}
