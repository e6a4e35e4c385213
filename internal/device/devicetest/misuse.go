package devicetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// foreignMem and foreignWeight belong to no device.
type foreignMem struct{}

func (foreignMem) Kind() device.Kind { return device.Act }
func (foreignMem) Len() int          { return 1 << 20 }

type foreignWeight struct{}

func (foreignWeight) Shape() (n, k int)   { return 8, 4 }
func (foreignWeight) DType() device.DType { return device.Float32 }
func (foreignWeight) Bytes() int64        { return 128 }

// misuse is a wrong call; says is part of the error that it has to leave behind.
type misuse struct {
	name string
	says string
	call func(sc *scene)
}

// testMisuse: each wrong call, on a device of its own, is a sticky error and no panic, and stops what comes after it.
func testMisuse(t *testing.T, open Opener) {
	for _, list := range [][]misuse{memoryMisuses(), quantMisuses(), modelMisuses(), attentionMisuses(), headMisuses(), sampleMisuses()} {
		for _, m := range list {
			t.Run(m.name, func(t *testing.T) {
				dev := open(t)
				defer dev.Close()
				sc := newScene(t, dev)
				after := sc.param("after", 2, 2, 1)
				before := sc.contents(after.Mem)
				if err := dev.Err(); err != nil {
					t.Fatalf("error before the misuse: %v", err)
				}
				m.call(sc)
				err := dev.Err()
				if err == nil {
					t.Fatal("no error")
				}
				if !strings.Contains(err.Error(), m.says) {
					t.Errorf("error %q does not say %q", err, m.says)
				}
				dev.Zero(after)
				if got := make([]float32, 4); dev.Download(got, after.Mem, 0) == nil {
					t.Error("download reports no error")
				} else if !slices.Equal(got, make([]float32, 4)) && !slices.Equal(got, before) {
					t.Errorf("memory is %v after the error, %v before", got, before)
				}
				if dev.Sync() == nil || dev.Err().Error() != err.Error() {
					t.Errorf("the error did not stick: sync %v, err %v", dev.Sync(), dev.Err())
				}
			})
		}
	}
}

// act is an input activation that a wrong call never gets to read.
func (s *scene) act(rows, cols int) device.Mat { return s.in("", rows, cols) }

func (s *scene) w84() device.Weight { return s.weight(device.Float32, 8, 4, 1) }

func memoryMisuses() []misuse {
	return []misuse{
		{"upload past the end", "elements", func(sc *scene) { sc.Upload(sc.act(1, 4).Mem, 2, make([]float32, 3)) }},
		{"upload before the start", "elements", func(sc *scene) { sc.Upload(sc.act(1, 4).Mem, -1, make([]float32, 1)) }},
		{"upload floats to ints", "int32", func(sc *scene) { sc.Upload(sc.ints(upTo(4)), 0, make([]float32, 4)) }},
		{"upload ints to floats", "int32", func(sc *scene) { sc.UploadInts(sc.act(1, 4).Mem, 0, make([]int32, 4)) }},
		{"upload to nothing", "absent", func(sc *scene) { sc.Upload(nil, 0, make([]float32, 1)) }},
		{"download past the end", "elements", func(sc *scene) { _ = sc.Download(make([]float32, 5), sc.act(1, 4).Mem, 0) }},
		{"download ints from floats", "int32", func(sc *scene) { _ = sc.DownloadInts(make([]int32, 4), sc.act(1, 4).Mem, 0) }},
		{"foreign memory", "", func(sc *scene) { sc.Zero(device.View(foreignMem{}, 2, 2)) }},
		{"foreign free", "", func(sc *scene) { sc.Free(foreignMem{}) }},
		{"free twice", "", func(sc *scene) {
			m := sc.act(2, 2).Mem
			sc.Free(m)
			sc.Free(m)
		}},
		{"free weight twice", "", func(sc *scene) {
			w := sc.w84()
			sc.FreeWeight(w)
			sc.FreeWeight(w)
		}},
		{"use after free", "", func(sc *scene) {
			x := sc.act(2, 2)
			sc.Free(x.Mem)
			sc.Scale(x, 2)
		}},
		{"weight after free", "", func(sc *scene) {
			w := sc.w84()
			sc.FreeWeight(w)
			sc.Linear(sc.act(2, 8), sc.act(2, 4), device.Linear{W: w})
		}},
		{"foreign weight", "", func(sc *scene) { sc.Linear(sc.act(2, 8), sc.act(2, 4), device.Linear{W: foreignWeight{}}) }},
		{"load part of a row", "whole number of rows", func(sc *scene) { _ = sc.LoadWeight(sc.w84(), 0, make([]float32, 5)) }},
		{"load too many rows", "rows [7,9) of 8", func(sc *scene) { _ = sc.LoadWeight(sc.w84(), 7, make([]float32, 8)) }},
		{"load bf16 too many rows", "rows [7,9) of 8", func(sc *scene) { _ = sc.LoadWeightBF16(sc.w84(), 7, make([]uint16, 8)) }},
		{"load nothing", "absent", func(sc *scene) { _ = sc.LoadWeight(nil, 0, make([]float32, 8)) }},
		{"repack too many rows", "rows [7,9) of 8", func(sc *scene) { sc.Repack(sc.w84(), 7, sc.param("", 2, 4, 1)) }},
		{"repack other width", "want [1,4]", func(sc *scene) { sc.Repack(sc.w84(), 0, sc.param("", 1, 5, 1)) }},
		{"view past its memory", "does not fit", func(sc *scene) { sc.Zero(device.Mat{Mem: sc.act(2, 4).Mem, Off: 1, Rows: 2, Cols: 4, Stride: 4}) }},
		{"view before its memory", "does not fit", func(sc *scene) { sc.Zero(sc.act(2, 4).RowsOf(-1, 1)) }},
		{"view with overlapping rows", "does not fit", func(sc *scene) { sc.Zero(device.Mat{Mem: sc.act(2, 4).Mem, Rows: 2, Cols: 4, Stride: 2}) }},
		{"negative rows", "does not fit", func(sc *scene) { sc.Zero(sc.act(2, 4).RowsOf(1, 0)) }},
		{"add other shape", "want [2,4]", func(sc *scene) { sc.Add(sc.act(2, 4), sc.act(2, 5), 1) }},
		{"copy absent", "absent", func(sc *scene) { sc.Copy(sc.act(2, 4), device.Mat{}) }},
		{"scale ints", "int32", func(sc *scene) { sc.Scale(device.View(sc.ints(upTo(4)), 2, 2), 2) }},
		{"squares of nothing", "absent", func(sc *scene) { sc.SumSquares(device.Mat{}) }},
		{"gather beyond", "row 1 is 3", func(sc *scene) { sc.GatherRows(sc.act(2, 4), sc.act(3, 4), sc.ints([]int32{0, 3})) }},
		{"scatter beyond", "row 0 is -1", func(sc *scene) { sc.ScatterRows(sc.act(3, 4), sc.act(2, 4), sc.ints([]int32{-1, 0})) }},
		{"scatter add with few rows", "has 1 entries, want 2", func(sc *scene) { sc.ScatterAddRows(sc.act(3, 4), sc.act(2, 4), sc.ints([]int32{0})) }},
		{"mean of no rows", "no rows", func(sc *scene) { sc.MeanRows(sc.param("", 1, 4, 1), sc.act(3, 4), []device.Span{{Row: 1}}) }},
		{"mean beyond", "rows [2,4) of 3", func(sc *scene) { sc.MeanRows(sc.param("", 1, 4, 1), sc.act(3, 4), []device.Span{{Row: 2, N: 2}}) }},
		{"mean gradient of other count", "want [1,4]", func(sc *scene) { sc.MeanRowsGrad(sc.act(3, 4), sc.param("", 2, 4, 1), []device.Span{{N: 2}}) }},
		{"adamw step 0", "step 0", func(sc *scene) {
			w := sc.param("", 2, 2, 1)
			sc.AdamW(w, w, w, w, device.AdamW{LR: 1, Beta1: 0.9, Beta2: 0.9, GradScale: 1})
		}},
		{"adamw other shape", "want [2,2]", func(sc *scene) {
			w := sc.param("", 2, 2, 1)
			sc.AdamW(w, w, sc.param("", 4, 1, 1), w, device.AdamW{Step: 1})
		}},
		{"adamw on activations", "not of kind F32", func(sc *scene) {
			w := sc.param("", 2, 2, 1)
			sc.AdamW(w, sc.act(2, 2), w, w, device.AdamW{Step: 1})
		}},
	}
}

func modelMisuses() []misuse {
	none := device.Mat{}
	linear := func(change func(sc *scene, l *device.Linear)) func(*scene) {
		return func(sc *scene) {
			l := device.Linear{W: sc.w84(), LoRA: []device.LoRA{sc.lora(2, 6, 4, 3, nil)}}
			change(sc, &l)
			sc.Linear(sc.act(2, 8), sc.act(2, 4), l)
		}
	}
	rotary := func(change func(sc *scene, r *device.Rotary)) func(*scene) {
		return func(sc *scene) {
			r := sc.rotary(4, true, sc.ints([]int32{0, 1}))
			change(sc, &r)
			sc.Rotary(sc.act(2, 8), sc.act(2, 8), r)
		}
	}
	return []misuse{
		{"embed other width", "want [8,5]", func(sc *scene) { sc.Embed(sc.act(2, 5), sc.w84(), sc.ints(upTo(2))) }},
		{"embed id beyond", "id 1 is 8", func(sc *scene) { sc.Embed(sc.act(2, 4), sc.w84(), sc.ints([]int32{7, 8})) }},
		{"embed float ids", "not of kind I32", func(sc *scene) { sc.Embed(sc.act(2, 4), sc.w84(), sc.act(2, 1).Mem) }},
		{"embed without ids", "absent", func(sc *scene) { sc.Embed(sc.act(2, 4), sc.w84(), nil) }},
		{"embed without weight", "absent", func(sc *scene) { sc.Embed(sc.act(2, 4), nil, sc.ints(upTo(2))) }},
		{"embed gradient id beyond", "id 0 is -1", func(sc *scene) { sc.EmbedGrad(sc.param("", 8, 4, 1), sc.act(1, 4), sc.ints([]int32{-1})) }},
		{"rmsnorm other rows", "want [2,4]", func(sc *scene) { sc.RMSNorm(sc.act(3, 4), sc.act(2, 4), none, sc.param("", 1, 4, 1), 0) }},
		{"rmsnorm other weight", "want [1,4]", func(sc *scene) { sc.RMSNorm(sc.act(2, 4), sc.act(2, 4), none, sc.param("", 1, 3, 1), 0) }},
		{"rmsnorm negative eps", "eps", func(sc *scene) { sc.RMSNorm(sc.act(2, 4), sc.act(2, 4), none, sc.param("", 1, 4, 1), -1) }},
		{"rmsnorm gradient other rows", "want [2,4]", func(sc *scene) {
			sc.RMSNormGrad(sc.act(1, 4), none, sc.act(2, 4), sc.act(2, 4), sc.param("", 1, 4, 1), 0)
		}},
		{"linear without weight", "absent", linear(func(_ *scene, l *device.Linear) { l.W = nil })},
		{"linear other weight", "want [8,4]", linear(func(sc *scene, l *device.Linear) { l.W = sc.weight(device.BFloat16, 8, 5, 1) })},
		{"linear other bias", "want [1,8]", linear(func(sc *scene, l *device.Linear) { l.Bias = sc.param("", 1, 7, 1) })},
		{"linear part beyond its columns", "columns [3,9) of 8", linear(func(_ *scene, l *device.Linear) { l.LoRA[0].Col = 3 })},
		{"linear part of other rank", "want [6,2]", linear(func(sc *scene, l *device.Linear) { l.LoRA[0].A = sc.param("", 2, 4, 1) })},
		{"linear part without B", "absent", linear(func(_ *scene, l *device.Linear) { l.LoRA[0].B = none })},
		{"linear dropout 1", "dropout", linear(func(sc *scene, l *device.Linear) {
			l.LoRA[0].Drop = &device.Dropout{P: 1, Seg: sc.ints(upTo(2)), Pos: sc.ints(upTo(2))}
		})},
		{"linear dropout without positions", "absent", linear(func(sc *scene, l *device.Linear) {
			l.LoRA[0].Drop = &device.Dropout{P: 0.5, Seg: sc.ints(upTo(2))}
		})},
		{"linear gradient other rows", "want [2,4]", func(sc *scene) {
			sc.LinearGrad(sc.act(1, 4), sc.act(2, 8), sc.act(2, 4), device.Linear{W: sc.w84()})
		}},
		{"linear gradient other dW", "want [8,4]", func(sc *scene) {
			sc.LinearGrad(none, sc.act(2, 8), sc.act(2, 4), device.Linear{W: sc.w84(), DW: sc.param("", 4, 8, 1)})
		}},
		{"rotary odd head", "head dimension", rotary(func(_ *scene, r *device.Rotary) { r.HeadDim = 3 })},
		{"rotary part of a head", "whole number of heads", rotary(func(_ *scene, r *device.Rotary) { r.HeadDim = 6 })},
		{"rotary position beyond", "position 1 is 100", rotary(func(sc *scene, r *device.Rotary) { r.Pos = sc.ints([]int32{0, 100}) })},
		{"rotary without table", "absent", rotary(func(_ *scene, r *device.Rotary) { r.Sin = none })},
		{"rotary gradient of no norm", "without norm", rotary(func(_ *scene, r *device.Rotary) { r.Norm = none })},
		{"rotary gradient without x", "absent", func(sc *scene) { sc.RotaryGrad(sc.act(1, 4), sc.act(1, 4), none, sc.rotary(4, true, sc.ints(upTo(1)))) }},
		{"swiglu other width", "want [2,6]", func(sc *scene) { sc.SwiGLU(sc.act(2, 3), sc.act(2, 8)) }},
		{"swiglu gradient other width", "want [2,6]", func(sc *scene) { sc.SwiGLUGrad(sc.act(2, 3), sc.act(2, 3), sc.act(2, 6)) }},
	}
}

func attentionMisuses() []misuse {
	call := func(change func(a *device.Attention)) func(*scene) {
		return func(sc *scene) {
			a := heads(4, 2, 3)
			a.Tasks = []device.AttentionTask{
				{Q: device.Span{Row: 0, N: 2}, Pos: 3, Keys: []device.Span{{Row: 1, N: 4}, {Row: 6, N: 1}}},
				{Q: device.Span{Row: 2, N: 1}, Keys: []device.Span{{Row: 0, N: 1}}},
			}
			change(&a)
			q, k := sc.act(3, 12), sc.act(7, 6)
			sc.Attention(sc.act(3, 12), device.Mat{}, q, k, k, a)
		}
	}
	return []misuse{
		{"attention group", "no multiple", call(func(a *device.Attention) { a.KVHeads = 3 })},
		{"attention no heads", "positive", call(func(a *device.Attention) { a.KVHeads = 0 })},
		{"attention head size", "want", call(func(a *device.Attention) { a.HeadDim = 4 })},
		{"attention few keys", "cover 5", call(func(a *device.Attention) { a.Tasks[0].Pos = 4 })},
		{"attention negative position", "position -1", call(func(a *device.Attention) { a.Tasks[0].Pos = -1 })},
		{"attention queries beyond", "query rows [2,4) of 3", call(func(a *device.Attention) { a.Tasks[1].Q.N = 2 })},
		{"attention queries twice", "in common", call(func(a *device.Attention) { a.Tasks[1].Q.Row = 1 })},
		{"attention keys beyond", "rows [6,8) of 7", call(func(a *device.Attention) { a.Tasks[0].Keys[1].N = 2 })},
		{"attention gradient without lse", "absent", func(sc *scene) {
			m := sc.act(1, 3)
			sc.AttentionGrad(m, m, m, m, m, device.Mat{}, m, m, m, heads(1, 1, 3))
		}},
		{"attention gradient other dk", "want [1,3]", func(sc *scene) {
			m := sc.act(1, 3)
			sc.AttentionGrad(m, sc.act(2, 3), m, m, m, sc.param("", 1, 1, 1), m, m, m, heads(1, 1, 3))
		}},
	}
}
