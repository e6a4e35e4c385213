//go:build slow

package cuda

import (
	"testing"

	"github.com/rubicon-rl/rubicon/cuda/driver"
	"github.com/rubicon-rl/rubicon/internal/device"
)

// A grid has at most 65535 blocks in y; the rows beyond them are not forgotten.
func TestMoreRowsThanBlocks(t *testing.T) {
	const rows = maxGrid + 3
	d := simulated(driver.F32)(t)
	defer d.Close()
	x, y := column(t, d, rows), column(t, d, rows)
	values, from := make([]float32, rows), make([]int32, rows)
	for i := range values {
		values[i], from[i] = float32(i), int32(rows-1-i)
	}
	d.Upload(x.Mem, 0, values)
	d.GatherRows(y, x, indices(t, d, from...))
	got := make([]float32, rows)
	if err := d.Download(got, y.Mem, 0); err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if v != float32(rows-1-i) {
			t.Fatalf("row %d is %g, want %d", i, v, rows-1-i)
		}
	}
}

func column(t *testing.T, d device.Device, rows int) device.Mat {
	m, err := d.Alloc(device.F32, rows)
	if err != nil {
		t.Fatal(err)
	}
	return device.View(m, rows, 1)
}
