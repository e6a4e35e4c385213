package cuda

import (
	"slices"
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// Of 1201 ids that are equally likely, those with odd numbers below 2402, a top-p of 0.5 removes the 600 highest: the sum of
// 600 is below a half, that of 601 is not. The least and the largest uniform number (devicetest's ends) draw the first and the
// last of the others. They lie in many segments of the kernel, and in several warps.
func TestSampleCutsTies(t *testing.T) {
	const vocabulary = 4000
	dev := simulated(driver.F32)(t)
	defer dev.Close()
	m, err := dev.Alloc(device.F32, 2*vocabulary)
	check(t, err)
	row := make([]float32, vocabulary)
	for v := range row {
		if row[v] = -200; v < 2402 && v%2 == 1 {
			row[v] = 3
		}
	}
	dev.Upload(m, 0, slices.Concat(row, row))
	out := device.SampleOut{IDs: make([]int32, 2), LogP: make([]float32, 2), Filtered: make([]float32, 2)}
	r := device.SampleRow{Temp: 1, TopP: 0.5, Penalty: 1, Key: device.NewKey(1, 2), Index: 11292475}
	last := r
	last.Index = 30892398
	dev.Sample(out, device.View(m, 2, vocabulary), []device.SampleRow{r, last})
	check(t, dev.Sync())
	if want := []int32{1, 1201}; !slices.Equal(out.IDs, want) {
		t.Errorf("drew %v, want %v", out.IDs, want)
	}
	// ln(1/1201) and ln(1/601)
	if d := max(largest(out.LogP, []float32{-7.0909, -7.0909}), largest(out.Filtered, []float32{-6.3986, -6.3986})); d > 1e-4 {
		t.Errorf("log-probabilities %v and filtered %v", out.LogP, out.Filtered)
	}
}

// A vocabulary that the kernel has no room for is an error before anything is read.
func TestSampleRefusesLargeVocabulary(t *testing.T) {
	dev := simulated(driver.F32)(t)
	defer dev.Close()
	m, err := dev.Alloc(device.F32, maxVocabulary+1)
	check(t, err)
	dev.Sample(device.SampleOut{IDs: make([]int32, 1), LogP: make([]float32, 1), Filtered: make([]float32, 1)},
		device.View(m, 1, maxVocabulary+1), []device.SampleRow{{Temp: 1, TopP: 1, Penalty: 1}})
	if dev.Err() == nil {
		t.Error("no error")
	}
}

// Each step of decoding samples: one kernel, and no memory of the host.
func TestSampleLaunches(t *testing.T) {
	r, dev := recorded(t)
	defer dev.Close()
	m, err := dev.Alloc(device.F32, 3*100)
	check(t, err)
	out := device.SampleOut{IDs: make([]int32, 3), LogP: make([]float32, 3), Filtered: make([]float32, 3)}
	rows := []device.SampleRow{
		{Temp: 1, TopP: 1, Penalty: 1}, {Temp: 0.7, TopP: 0.9, TopK: 10, MinP: 0.1, Penalty: 1.2, Seen: []int32{3, 4}},
		{Temp: 1, Greedy: true, TopP: 1, Penalty: 1, Allowed: []uint64{1, 2}},
	}
	call := func() { dev.Sample(out, device.View(m, 3, 100), rows) }
	r.calls = nil
	call()
	check(t, dev.Sync())
	if want := []string{"sample"}; !slices.Equal(r.calls, want) {
		t.Errorf("%v, want %v", r.calls, want)
	}
	r.silent = true
	if n := testing.AllocsPerRun(5, call); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
