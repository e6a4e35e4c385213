package cpu

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
	"github.com/rubicon-rl/rubicon/internal/golden"
)

// goldens is the folder of the optimiser's and the sampler's golden files.
const goldens = "../device/reference/testdata"

// cases reads the list of cases of a golden file.
func cases[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(goldens, name))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []T }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatalf("%s has no cases", name)
	}
	return file.Cases
}

// Ten steps of torch.optim.AdamW in float32.
func TestAdamWGolden(t *testing.T) {
	tensors := golden.Tensors(t, filepath.Join(goldens, "adamw.safetensors"))
	everyTierDevice(t, func(t *testing.T, d on) {
		worst := 0.0
		for i, c := range cases[struct {
			LR          float64
			Betas       [2]float64
			Eps         float64
			WeightDecay float64 `json:"weight_decay"`
		}](t, "adamw.json") {
			get := func(name string, step int) []float32 { return tensors[fmt.Sprintf("c%d.%s%d", i, name, step)].Float }
			mat := func(x []float32) device.Mat {
				m := d.mat(37, 5)
				d.Zero(m)
				d.Upload(m.Mem, 0, x)
				return m
			}
			w, m, v := mat(get("p", 0)), mat(nil), mat(nil)
			for step := 1; step <= 10; step++ {
				d.AdamW(w, mat(get("g", step)), m, v, device.AdamW{LR: c.LR * (1 - float64(step-1)/10), Beta1: c.Betas[0],
					Beta2: c.Betas[1], Eps: c.Eps, WeightDecay: c.WeightDecay, Step: step, GradScale: 1})
				for name, got := range map[string]device.Mat{"p": w, "m": m, "v": v} {
					if want := get(name, step); want != nil {
						worst = max(worst, relative(d.read(got), want))
					}
				}
			}
		}
		if t.Logf("largest relative difference: %.2g", worst); !(worst <= 1e-6) {
			t.Errorf("differs by %.2g of the largest element, more than 1e-6", worst)
		}
	})
}

// relative is the largest difference relative to the largest element of want.
func relative(got, want []float32) float64 {
	largest, worst := 0.0, 0.0
	for i, x := range want {
		largest = max(largest, math.Abs(float64(x)))
		worst = max(worst, math.Abs(float64(got[i])-float64(x)))
	}
	return worst / largest
}

// The processors keep as many tokens as those of transformers do, and the same ones.
func TestFilterGolden(t *testing.T) {
	tensors := golden.Tensors(t, filepath.Join(goldens, "warpers.safetensors"))
	logits, seen := tensors["logits"], tensors["context_ids"]
	rows, vocab := logits.Shape[0], logits.Shape[1]
	everyTier(t, func(t *testing.T, k *kernels) {
		for i, c := range cases[struct {
			Temperature float32
			TopK        int      `json:"top_k"`
			TopP        float32  `json:"top_p"`
			Penalty     float32  `json:"repetition_penalty"`
			MinP        *float32 `json:"min_p"`
			Kept        []int
		}](t, "warpers.json") {
			for r := range rows {
				row := device.SampleRow{Temp: c.Temperature, TopK: c.TopK, TopP: c.TopP, Penalty: c.Penalty, Seen: distinct(seen.Int, rows, r)}
				if c.MinP != nil {
					row.MinP = *c.MinP
				}
				f := filter{k: k, z: append([]float32(nil), logits.Float[r*vocab:(r+1)*vocab]...)}
				f.admit(&row)
				f.apply(&arena{}, &row)
				kept := 0
				probs := tensors[fmt.Sprintf("case%02d.probs", i)].Float[r*vocab:]
				for v, z := range f.z {
					if z == negInf() {
						continue
					}
					kept++
					if probs[v] == 0 && (r != 3 || c.TopP == 1) { // row 3 has ties, which top-p may break either way
						t.Errorf("case %d, row %d: id %d is kept", i, r, v)
					}
				}
				if kept != c.Kept[r] {
					t.Errorf("case %d, row %d: %d tokens are kept, want %d", i, r, kept, c.Kept[r])
				}
			}
		}
	})
}

// distinct are the different ids of row r of a [rows, n] tensor.
func distinct(ids []int64, rows, r int) []int32 {
	n := len(ids) / rows
	var list []int32
	have := map[int64]bool{}
	for _, id := range ids[r*n : (r+1)*n] {
		if !have[id] {
			list, have[id] = append(list, int32(id)), true
		}
	}
	return list
}
