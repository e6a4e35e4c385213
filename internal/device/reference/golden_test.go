package reference_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/device/reference"
)

// tensors are the values of a safetensors file, whole numbers as float32 too.
func tensors(t *testing.T, name string) map[string][]float32 {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(raw)
	var header map[string]struct {
		DType   string    `json:"dtype"`
		Offsets [2]uint64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(raw[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]float32)
	for name, h := range header {
		at := raw[8+n:][h.Offsets[0]:h.Offsets[1]]
		var values []float32
		for len(at) > 0 && h.DType == "F32" {
			values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(at)))
			at = at[4:]
		}
		for len(at) > 0 && h.DType == "I64" {
			values = append(values, float32(binary.LittleEndian.Uint64(at)))
			at = at[8:]
		}
		all[name] = values
	}
	return all
}

// cases reads the "cases" of a golden file's description.
func cases[T any](t *testing.T, name string) []T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []T }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatalf("%s has no cases", name)
	}
	return file.Cases
}

// Probabilities after transformers 5.24's logits processors (testdata/warpers.json says on what).
func TestWarpersGolden(t *testing.T) {
	const vocab = 1000
	golden := tensors(t, "warpers.safetensors")
	worst := 0.0
	for i, c := range cases[struct {
		Temperature float32
		TopK        int     `json:"top_k"`
		TopP        float32 `json:"top_p"`
		Penalty     float32 `json:"repetition_penalty"`
		MinP        float32 `json:"min_p"`
		Kept        []int
	}](t, "warpers.json") {
		for r, kept := range c.Kept {
			logits := golden["logits"][r*vocab : (r+1)*vocab]
			want := golden[fmt.Sprintf("case%02d.probs", i)][r*vocab : (r+1)*vocab]
			row := device.SampleRow{Temp: c.Temperature, TopK: c.TopK, TopP: c.TopP, MinP: c.MinP, Penalty: c.Penalty}
			seen := map[float32]bool{}
			for _, id := range golden["context_ids"][r*20 : (r+1)*20] {
				if !seen[id] {
					row.Seen = append(row.Seen, int32(id))
				}
				seen[id] = true
			}
			n := 0
			for v, p := range reference.Distribution(logits, row) {
				if p > 0 {
					n++
				}
				// Row 3 has ties at the top; which of them top-p keeps depends on the sort.
				if r == 3 && c.TopP < 1 {
					continue
				}
				worst = max(worst, math.Abs(p-float64(want[v])))
				if (p > 0) != (want[v] > 0) || math.Abs(p-float64(want[v])) > 1e-6 {
					t.Errorf("case %d row %d id %d: probability %g, want %g", i, r, v, p, want[v])
				}
			}
			if n != kept {
				t.Errorf("case %d row %d keeps %d, want %d", i, r, n, kept)
			}
		}
	}
	t.Logf("largest error of a probability: %.2g", worst)
}

// Ten steps of torch.optim.AdamW with a learning rate that falls and a zero gradient at step 4.
func TestAdamWGolden(t *testing.T) {
	golden := tensors(t, "adamw.safetensors")
	worst, compared := 0.0, 0
	for i, c := range cases[struct {
		LR          float64
		Betas       [2]float64
		Eps         float64
		WeightDecay float64 `json:"weight_decay"`
	}](t, "adamw.json") {
		d := reference.New()
		mat := func(values []float32) device.Mat {
			m, err := d.Alloc(device.F32, 37*5)
			if err != nil {
				t.Fatal(err)
			}
			d.Upload(m, 0, values)
			return device.View(m, 37, 5)
		}
		get := func(name string, step int) []float32 { return golden[fmt.Sprintf("c%d.%s%d", i, name, step)] }
		w, m, v := mat(get("p", 0)), mat(nil), mat(nil)
		for step := 1; step <= 10; step++ {
			d.AdamW(w, mat(get("g", step)), m, v, device.AdamW{LR: c.LR * (1 - float64(step-1)/10), Beta1: c.Betas[0], Beta2: c.Betas[1],
				Eps: c.Eps, WeightDecay: c.WeightDecay, Step: step, GradScale: 1})
			for name, got := range map[string]device.Mat{"p": w, "m": m, "v": v} {
				if want := get(name, step); want != nil {
					compared++
					worst = max(worst, relative(t, fmt.Sprintf("case %d: %s after step %d", i, name, step), reference.Float64s(got.Mem), want))
				}
			}
		}
		if err := d.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if compared != 3*4*3 { // three cases, steps 1, 2, 5 and 10, three tensors
		t.Errorf("compared %d tensors", compared)
	}
	t.Logf("largest relative error: %.2g", worst)
}

// relative is the largest difference relative to the largest of want; more than 1e-6 fails the test.
func relative(t *testing.T, what string, got []float64, want []float32) float64 {
	t.Helper()
	largest, worst := 0.0, 0.0
	for i, x := range want {
		largest = max(largest, math.Abs(float64(x)))
		worst = max(worst, math.Abs(got[i]-float64(x)))
	}
	if largest > 0 {
		worst /= largest
	}
	if !(worst <= 1e-6) {
		t.Errorf("%s is off by %.2g of its largest element", what, worst)
	}
	return worst
}

// torch.nn.utils.clip_grad_norm_ over three tensors, the last of them zero: SumSquares gives the norm, and the
// gradient that AdamW takes is scaled by min(1, max/(norm+1e-6)). With beta1 0 the first moment is that gradient.
func TestClipGolden(t *testing.T) {
	golden := tensors(t, "clip_grad_norm.safetensors")
	for _, most := range []float64{1, 100} {
		d := reference.New()
		var grads []device.Mat
		squares := 0.0
		for i := range 3 {
			values := golden[fmt.Sprintf("g%d", i)]
			m, err := d.Alloc(device.F32, len(values))
			if err != nil {
				t.Fatal(err)
			}
			d.Upload(m, 0, values)
			grads = append(grads, device.View(m, 1, len(values)))
			squares += d.SumSquares(grads[i])
		}
		norm := math.Sqrt(squares)
		relative(t, fmt.Sprintf("max %g: norm", most), []float64{norm}, golden[fmt.Sprintf("max%.1f.norm", most)])
		for i, g := range grads {
			var zero [3]device.Mat
			for j := range zero {
				m, err := d.Alloc(device.F32, g.Cols)
				if err != nil {
					t.Fatal(err)
				}
				zero[j] = device.View(m, 1, g.Cols)
			}
			d.AdamW(zero[0], g, zero[1], zero[2], device.AdamW{LR: 1, Eps: 1e-8, Step: 1, GradScale: min(1, most/(norm+1e-6))})
			relative(t, fmt.Sprintf("max %g: gradient %d", most, i), reference.Float64s(zero[1].Mem), golden[fmt.Sprintf("max%.1f.out%d", most, i)])
		}
		if err := d.Err(); err != nil {
			t.Fatal(err)
		}
	}
}
