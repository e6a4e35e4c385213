package devicetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

func testSample(s *suite) {
	for _, c := range []struct {
		v       int
		std     float64
		strided bool
	}{
		{1, 1, false}, {2, 1, true}, {31, 3, false}, {32, 3, true}, {33, 3, false}, {64, 2, false}, {65, 2, true},
		{1025, 3, false}, {1025, 1e4, true}, {4864, 2, false}, {151936, 3, false},
	} {
		s.Run(fmt.Sprintf("v%d-std%g-strided=%v", c.v, c.std, c.strided), func(t *testing.T) {
			sc := newScene(t, s.dev)
			defer sc.free()
			sc.strided = c.strided
			testDraws(s, sc, c.v, c.std)
		})
	}
	s.Run("ties", func(t *testing.T) { testTies(t, s.dev) })
	s.Run("ends", func(t *testing.T) { testEnds(t, s.dev) })
	s.invariant(testSampleInvariant)
}

// plain is a row that samples at temperature 1 with every processor off.
func plain(index int) device.SampleRow {
	return device.SampleRow{Temp: 1, TopP: 1, Penalty: 1, Key: device.NewKey(1, 2), Index: uint32(index)}
}

// settings are sample rows with the processors one by one and together, for a vocabulary of v.
func settings(v int) []device.SampleRow {
	even := make([]uint64, (v+63)/64)
	for i := range even {
		even[i] = 0x5555555555555555 // even ids; the bits past the vocabulary are set on purpose
	}
	one := make([]uint64, (v+63)/64)
	one[(v-1)/64] = 1 << ((v - 1) % 64)
	var seen []int32
	for id := 0; id < v; id += 1 + v/20 {
		seen = append(seen, int32(id))
	}
	set := func(change func(r *device.SampleRow)) device.SampleRow {
		r := plain(0)
		change(&r)
		return r
	}
	return []device.SampleRow{
		plain(0),
		set(func(r *device.SampleRow) { r.Temp = 0.7 }),
		set(func(r *device.SampleRow) { r.Temp = 0.01 }),
		set(func(r *device.SampleRow) { r.Temp = 1000 }),
		set(func(r *device.SampleRow) { r.TopK = 1 }),
		set(func(r *device.SampleRow) { r.TopK = 20 }),
		set(func(r *device.SampleRow) { r.TopK = 1 << 30 }),
		set(func(r *device.SampleRow) { r.TopP = 0.9 }),
		set(func(r *device.SampleRow) { r.TopP = 1e-6 }),
		set(func(r *device.SampleRow) { r.TopP, r.Temp = 0.97, 1.5 }),
		set(func(r *device.SampleRow) { r.MinP = 0.1 }),
		set(func(r *device.SampleRow) { r.MinP = 1 }),
		set(func(r *device.SampleRow) { r.Penalty, r.Seen = 1.3, seen }),
		set(func(r *device.SampleRow) { r.Penalty, r.Seen = 0.8, seen }),
		set(func(r *device.SampleRow) { r.Allowed = even }),
		set(func(r *device.SampleRow) { r.Allowed = one }),
		set(func(r *device.SampleRow) { r.Temp, r.TopK, r.TopP, r.MinP = 0.6, 20, 0.95, 0.01 }),
		set(func(r *device.SampleRow) {
			r.Temp, r.TopK, r.TopP, r.MinP, r.Penalty, r.Seen, r.Allowed = 1.3, 50, 0.9, 0.05, 1.2, seen, even
		}),
		set(func(r *device.SampleRow) { r.Greedy, r.Temp = true, 0.5 }),
		set(func(r *device.SampleRow) { r.Greedy, r.Penalty, r.Seen, r.Allowed = true, 2, seen, even }),
		set(func(r *device.SampleRow) { r.Greedy, r.TopK, r.TopP = true, 5, 0.5 }),
	}
}

// testDraws samples every setting several times and compares with the reference. Ids have to be equal where neither
// the uniform nor a threshold is within 1e-6 of a boundary, which has to be so for most rows (of the largest vocabulary, whose
// ids are about as probable as that, an eighth is not on average).
func testDraws(s *suite, sc *scene, v int, std float64) {
	var rows []device.SampleRow
	for i, r := range settings(v) {
		for draw := range max(1, min(5, 20000/v)) {
			r.Key, r.Index = device.NewKey(uint64(v), uint64(i)), uint32(draw)
			rows = append(rows, r)
		}
	}
	logits := sc.mat("logits", device.F32, scratch, len(rows), v, normal(std))
	host := sc.rows(logits)
	got := sampled(len(rows))
	sc.Sample(got, logits, rows)
	if err := sc.Sync(); err != nil {
		sc.t.Fatal(err)
	}
	sc.tensors[0].check(sc.t, sc.contents(logits.Mem), nil, 0, 0) // wrote inside its view only

	ref := newScene(sc.t, reference.New())
	ref.tape, ref.replay, ref.strided = sc.tape, true, sc.strided
	want := sampled(len(rows))
	ref.Sample(want, ref.mat("logits", device.F32, scratch, len(rows), v, nil), rows)
	if err := ref.Sync(); err != nil {
		sc.t.Fatal(err)
	}
	unclear := 0
	for i, r := range rows {
		if !decided(host[i], r, int(want.IDs[i])) {
			unclear++
			continue
		}
		if got.IDs[i] != want.IDs[i] {
			sc.t.Errorf("row %d drew %d, want %d: %+v", i, got.IDs[i], want.IDs[i], brief(r))
			continue
		}
		tol := s.tol.Forward * max(1, 5*std/float64(r.Temp))
		near(sc.t, fmt.Sprintf("row %d: logp", i), got.LogP[i], want.LogP[i], tol)
		near(sc.t, fmt.Sprintf("row %d: filtered logp", i), got.Filtered[i], want.Filtered[i], tol)
	}
	if unclear > len(rows)/4 {
		sc.t.Errorf("%d of %d rows are too close to a boundary to say anything", unclear, len(rows))
	}
}

func sampled(n int) device.SampleOut {
	return device.SampleOut{IDs: make([]int32, n), LogP: make([]float32, n), Filtered: make([]float32, n)}
}

// brief leaves out of r what is too long to print.
func brief(r device.SampleRow) device.SampleRow {
	r.Seen, r.Allowed = r.Seen[:min(len(r.Seen), 4)], nil
	return r
}

func near(t *testing.T, what string, got, want float32, tol float64) {
	t.Helper()
	if diff := math.Abs(float64(got) - float64(want)); !(diff <= tol) {
		t.Errorf("%s is %g, want %g: differs by %.2g, more than %.2g", what, got, want, diff, tol)
	}
}

// decided reports whether rounding cannot change the draw of id from logits: the uniform is not within 1e-6 of a
// boundary of the cumulative distribution, and thresholds that much higher or lower keep the same tokens.
func decided(logits []float32, r device.SampleRow, id int) bool {
	if r.Greedy {
		return true
	}
	const margin = 1e-6
	p := reference.Distribution(logits, r)
	for _, shift := range []float32{-margin, margin} {
		shifted := r
		if r.TopP < 1 {
			shifted.TopP = max(1e-9, r.TopP+shift)
		}
		shifted.MinP = min(1, r.MinP*(1+shift))
		for v, q := range reference.Distribution(logits, shifted) {
			if (q > 0) != (p[v] > 0) {
				return false
			}
		}
	}
	u := float64(device.Uniform(device.Philox(r.Key, [4]uint32{r.Index, 0, 0, 0})[0]))
	below := 0.0
	for _, x := range p[:id] {
		below += x
	}
	return u-below > margin && below+p[id]-u > margin
}

// testTies: top-k keeps ties with the k-th, the arg max is the lowest id, and top-p with room for one token keeps the
// lowest id of the most probable.
func testTies(t *testing.T, d device.Device) {
	// Ids 3, 7, 8 and 40 share the top, ids 10 and 11 come next.
	values := make([]float32, 70)
	for _, v := range []int{3, 7, 8, 40} {
		values[v] = 5
	}
	values[10], values[11] = 4, 4
	for _, c := range []struct {
		name string
		row  func(r *device.SampleRow)
		want []int32 // ids that are drawn, all of them
	}{
		{"top-k 1", func(r *device.SampleRow) { r.TopK = 1 }, []int32{3, 7, 8, 40}},
		{"top-k 2", func(r *device.SampleRow) { r.TopK = 2 }, []int32{3, 7, 8, 40}},
		{"top-k 5", func(r *device.SampleRow) { r.TopK = 5 }, []int32{3, 7, 8, 10, 11, 40}},
		{"min-p 1", func(r *device.SampleRow) { r.MinP = 1 }, []int32{3, 7, 8, 40}},
		{"greedy", func(r *device.SampleRow) { r.Greedy = true }, []int32{3}},
		{"penalised greedy", func(r *device.SampleRow) { r.Greedy, r.Penalty, r.Seen = true, 1.5, []int32{3, 7, 40} }, []int32{8}},
		{"top-p", func(r *device.SampleRow) { r.TopP = 1e-3 }, []int32{3}},
		{"top-k and top-p", func(r *device.SampleRow) { r.TopK, r.TopP = 1, 0.6 }, []int32{3, 7, 8}},
	} {
		const draws = 200
		sc := newScene(t, d)
		rows := make([]device.SampleRow, draws)
		for i := range rows {
			rows[i] = plain(i)
			c.row(&rows[i])
		}
		out := sampled(draws)
		sc.Sample(out, sc.mat("logits", device.F32, scratch, draws, len(values), data(slices.Repeat(values, draws), len(values))), rows)
		if err := sc.Sync(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(out.IDs)
		if got := slices.Compact(out.IDs); !slices.Equal(got, c.want) {
			t.Errorf("%s draws %v, want %v", c.name, got, c.want)
		}
		sc.free()
	}
}

// testEnds: under plain's key, index 11292475 has the word 0xc and 30892398 has 0xffffffc3, whose uniforms are the
// least and the largest there are: they draw the first and the last of what is left.
func testEnds(t *testing.T, d device.Device) {
	sc := newScene(t, d)
	defer sc.free()
	rows := []device.SampleRow{plain(11292475), plain(30892398), plain(11292475), plain(30892398)}
	for i := range rows[2:] {
		rows[2+i].Allowed = []uint64{0xffffffffffffffe0, 0} // ids 5 to 63 of 70
	}
	out := sampled(len(rows))
	sc.Sample(out, sc.mat("logits", device.F32, scratch, len(rows), 70, normal(0.1)), rows)
	if err := sc.Sync(); err != nil {
		t.Fatal(err)
	}
	if want := []int32{0, 69, 5, 63}; !slices.Equal(out.IDs, want) {
		t.Errorf("drew %v, want %v", out.IDs, want)
	}
}

// testSampleInvariant: a row is drawn the same in every batch, and its log-probability has the bits of Head's.
func testSampleInvariant(s *suite) {
	const d, v = 40, 1025
	base := newScene(s.T, s.dev)
	hs := base.pool(d, 1)
	w := base.weight(device.BFloat16, v, d, 0.5)
	rows := settings(v)
	for i := len(rows); i < poolSize; i++ {
		r := plain(i)
		r.Temp = []float32{1, 0.7, 1.3}[i%3]
		rows = append(rows, r)
	}
	s.sameBits("draws", func(sc *scene, batch []int) []device.Mat {
		logits := sc.outF32("logits", len(batch), v)
		sc.Logits(logits, sc.mat("h", device.Act, input, len(batch), d, hs.take(batch)), w)
		picked := make([]device.SampleRow, len(batch))
		for i, r := range batch {
			picked[i] = rows[r]
		}
		out := sampled(len(batch))
		sc.Sample(out, logits, picked)
		result := make([]float32, 0, 3*len(batch))
		for i := range batch {
			result = append(result, float32(out.IDs[i]), out.LogP[i], out.Filtered[i])
		}
		return []device.Mat{sc.mat("draws", device.F32, input, len(batch), 3, data(result, 3))}
	})
	s.Run("same-logp-as-head", func(t *testing.T) {
		for i := range rows {
			sc := newScene(t, s.dev)
			logits, drawn := sc.outF32("logits", 1, v), sampled(1)
			sc.Logits(logits, sc.mat("h", device.Act, input, 1, d, hs.take([]int{i})), w)
			sc.Sample(drawn, logits, rows[i:i+1])
			// Head sees the row among others.
			targets := slices.Repeat(drawn.IDs, poolSize)
			out := device.HeadOut{LogP: sc.outF32("logp", poolSize, 1), LSE: sc.outF32("lse", poolSize, 1)}
			sc.Head(out, sc.mat("h", device.Act, input, poolSize, d, hs.take(everyRow())),
				device.Head{W: w, Temp: rows[i].Temp, Targets: sc.ints(targets)})
			equalBits(t, fmt.Sprintf("row %d: Sample's logp against Head's", i), drawn.LogP, sc.rows(out.LogP)[i])
			sc.free()
		}
	})
	base.free()
}
