package trainer

import (
	"time"

	"github.com/rubicon-rl/rubicon/internal/device"
)

// trainFLOPs are the floating-point operations of one trained token in a model of n weights: 2n forward and 2n for the
// gradient of the activations, and 2n more for that of the weights if they are trained. What is computed again in the
// backward pass, attention, and LoRA's own products do not count.
func trainFLOPs(n int, full bool) float64 {
	if full {
		return 6 * float64(n)
	}
	return 4 * float64(n)
}

// peak is how many floating-point operations a second the device does in one large product with a weight of type t, the
// best of a few: what model FLOPs utilisation is a share of. 0 if there is no memory to try.
func peak(dev device.Device, t device.DType, now func() time.Time) float64 {
	const rows, n, k = 512, 1024, 1024
	w, err := dev.NewWeight(t, n, k)
	if err != nil {
		return 0
	}
	defer dev.FreeWeight(w)
	x, err := dev.Alloc(device.Act, rows*k)
	if err != nil {
		return 0
	}
	defer dev.Free(x)
	y, err := dev.Alloc(device.Act, rows*n)
	if err != nil {
		return 0
	}
	defer dev.Free(y)
	values := make([]float32, n*k) // not zeros, with which a matrix unit is faster
	for i := range values {
		values[i] = device.Uniform(uint32(i)*2654435761) - 0.5
	}
	dev.Upload(x, 0, values[:rows*k])
	if dev.LoadWeight(w, 0, values) != nil {
		return 0
	}
	best := 0.0
	for range 8 {
		began := now()
		dev.Linear(device.View(y, rows, n), device.View(x, rows, k), device.Linear{W: w})
		if dev.Sync() != nil {
			return 0
		}
		if t := now().Sub(began).Seconds(); t > 0 {
			best = max(best, 2*rows*n*k/t)
		}
	}
	return best
}
