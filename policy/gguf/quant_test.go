package gguf

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
	"github.com/rubicon-rl/rubicon/internal/half"
)

func quantTypes() []Type { return []Type{Q8_0, Q4_0, Q4_1, Q4_K, Q6_K} }

// quantBlocks are random blocks of type t with small finite scales.
func quantBlocks(t Type, blocks int, rng *rand.Rand) []byte {
	_, size := t.block()
	b := make([]byte, blocks*size)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	at := map[Type][]int{Q8_0: {0}, Q4_0: {0}, Q4_1: {0, 2}, Q4_K: {0, 2}, Q6_K: {208}}[t]
	for i := 0; i < len(b); i += size {
		for _, j := range at {
			binary.LittleEndian.PutUint16(b[i+j:], half.ToF16(float32(rng.NormFloat64()/64)))
		}
	}
	return b
}

// element is value i of a block of type t, written down from the description of the format: float32 operations in
// ggml's order.
func element(t Type, b []byte, i int) float32 {
	f16 := func(at int) float32 { return half.FromF16(binary.LittleEndian.Uint16(b[at:])) }
	nibble := func(x byte, high bool) int {
		if high {
			return int(x / 16)
		}
		return int(x % 16)
	}
	switch t {
	case Q8_0:
		return f16(0) * float32(int8(b[2+i]))
	case Q4_0:
		return f16(0) * float32(nibble(b[2+i%16], i >= 16)-8)
	case Q4_1:
		d := f16(0) * float32(nibble(b[4+i%16], i >= 16))
		return d + f16(2)
	case Q4_K:
		group, packed := i/32, b[4:16]
		var s, m byte
		if group < 4 {
			s, m = packed[group]%64, packed[group+4]%64
		} else {
			s = packed[group+4]%16 + packed[group-4]/64*16
			m = packed[group+4]/16 + packed[group]/64*16
		}
		q := nibble(b[16+i/64*32+i%32], i%64 >= 32)
		d, e := f16(0)*float32(s), f16(2)*float32(m)
		return float32(d*float32(q)) - e
	case Q6_K:
		// 256 values as two runs of 128; in a run, value 32k+l has its low bits in byte l (k even) or l+32 (k odd) of the
		// run's 64, low half for k < 2; its high bits are bits 2k of byte l of the run's 32.
		run, k, l := i/128, i%128/32, i%32
		low := nibble(b[64*run+32*(k%2)+l], k >= 2)
		high := int(b[128+32*run+l]) >> (2 * k) % 4
		return f16(208) * float32(int8(b[192+i/16])) * float32(low+16*high-32)
	}
	panic(t)
}

// Every quantised type is dequantised to the bits that the format's description gives; a weight of the type that it is
// loaded into holds these values rounded to bfloat16.
func TestQuantisedTypes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, typ := range quantTypes() {
		values, size := typ.block()
		rows, k := 3, 2*values
		data := quantBlocks(typ, 2*rows, rng)
		b := newBuilder()
		b.add("w", typ, []int{rows, k}, data)
		f, err := Parse("mem", b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, rows*k)
		if err := f.Tensors[0].Float32s(got); err != nil {
			t.Fatal(err)
		}
		kept := embedded(t, &stored{f.Tensors[0], func(r int) int { return r }}, rows, k)
		for i := range got {
			want := element(typ, data[i/values*size:], i%values)
			if math.Float32bits(got[i]) != math.Float32bits(want) {
				t.Fatalf("%v: value %d is %v, want %v", typ, i, got[i], want)
			}
			if rounded := half.FromBF16(half.ToBF16(want)); math.Float32bits(kept[i]) != math.Float32bits(rounded) {
				t.Fatalf("%v: value %d of the weight is %v, want %v", typ, i, kept[i], rounded)
			}
		}
	}
}

// embedded loads a tensor into a weight of its type, in two pieces, and reads that.
func embedded(t *testing.T, s *stored, rows, k int) []float32 {
	t.Helper()
	dev := reference.New()
	w, err := dev.NewWeight(s.DType(), rows, k)
	if err != nil {
		t.Fatal(err)
	}
	ids, _ := dev.Alloc(device.I32, rows)
	y, _ := dev.Alloc(device.F32, rows*k)
	for r := range rows {
		dev.UploadInts(ids, r, []int32{int32(r)})
	}
	for _, piece := range [][2]int{{0, 1}, {1, rows}} {
		if err := s.Pack(dev, w, piece[0], piece[0], piece[1]); err != nil {
			t.Fatal(err)
		}
	}
	dev.Embed(device.View(y, rows, k), w, ids)
	got := make([]float32, rows*k)
	if err := dev.Download(got, y, 0); err != nil {
		t.Fatal(err)
	}
	return got
}

// Blocks that the file does not hold whole, and scales that are no numbers, are errors.
func TestQuantisedHostile(t *testing.T) {
	for _, typ := range quantTypes() {
		values, size := typ.block()
		for name, c := range map[string]struct {
			shape []int
			cut   int // bytes of the data that are missing
			want  string
		}{
			"part of a block": {[]int{1, values / 2}, 0, fmt.Sprintf("whole blocks of %v", typ)},
			"short":           {[]int{2, values}, 1, "truncated or damaged"},
			"few blocks":      {[]int{2, values << 20}, 0, "truncated or damaged"},
			"huge":            {[]int{1 << 40, values << 30}, 0, "too large"},
		} {
			b := newBuilder()
			b.add("w", typ, c.shape, make([]byte, 2*size))
			file := b.Bytes()
			filled := (32 - 2*size%32) % 32
			_, err := Parse("mem", file[:len(file)-filled-c.cut])
			wantError(t, fmt.Sprintf("%v, %s", typ, name), err, c.want)
		}
		b := newBuilder()
		data := quantBlocks(typ, 1, rand.New(rand.NewPCG(1, 1)))
		at := map[Type]int{Q6_K: 208}[typ]
		data[at], data[at+1] = 0, 0x7C
		b.add("w", typ, []int{1, values}, data)
		f, err := Parse("mem", b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		dev := reference.New()
		w, _ := dev.NewWeight(typ.DType(), 1, values)
		err = (&stored{f.Tensors[0], func(r int) int { return r }}).Pack(dev, w, 0, 0, 1)
		wantError(t, fmt.Sprintf("%v, infinite scale", typ), err, "not finite")
	}
}

func wantError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v does not mention %s", what, err, want)
	}
}
