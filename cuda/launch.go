package cuda

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

//go:embed ptx/*.ptx.gz
var code embed.FS

// kernels are the loaded modules and functions. A module is loaded when its first kernel is launched, so that a run
// compiles only what it uses.
type kernels struct {
	modules map[string]driver.Module
	funcs   map[kernel]driver.Func
	args    *driver.Args
}

// kernel is a kernel by its file (kernels/FILE.cu) and name.
type kernel struct{ file, name string }

func newKernels() kernels {
	return kernels{modules: map[string]driver.Module{}, funcs: map[kernel]driver.Func{}, args: new(driver.Args)}
}

// ptx is the code of a file of kernels.
func ptx(file string) ([]byte, error) {
	packed, err := code.ReadFile("ptx/" + file + ".ptx.gz")
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func (d *gpu) function(k kernel) (driver.Func, error) {
	if f, ok := d.kernels.funcs[k]; ok {
		return f, nil
	}
	m, ok := d.kernels.modules[k.file]
	if !ok {
		text, err := ptx(k.file)
		if err != nil {
			return 0, err
		}
		if m, err = d.Load(text); err != nil {
			return 0, fmt.Errorf("load kernels %s: %w", k.file, err)
		}
		d.kernels.modules[k.file] = m
	}
	f, err := d.Func(m, k.name)
	if err != nil {
		return 0, fmt.Errorf("kernel %s: %w", k.name, err)
	}
	d.kernels.funcs[k] = f
	return f, nil
}

// args returns the emptied arguments of the next launch.
func (d *gpu) args() *driver.Args { return d.kernels.args.Reset() }

// shape is the grid, the block and the dynamic shared memory of a launch.
type shape struct {
	grid, block [3]int
	shared      int
}

// launch puts a kernel in the stream. A grid without blocks is nothing to do.
func (d *gpu) launch(k kernel, s shape, a *driver.Args) {
	if d.err != nil || s.grid[0] == 0 || s.grid[1] == 0 || s.grid[2] == 0 {
		return
	}
	f, err := d.function(k)
	if err == nil && s.shared > 48<<10 {
		err = d.SetShared(f, s.shared)
	}
	if err == nil {
		err = d.Launch(f, driver.Launch{Grid: s.grid, Block: s.block, Shared: s.shared, Stream: d.stream}, a)
	}
	if err != nil {
		d.ok(fmt.Errorf("kernel %s, grid %v, block %v, %d bytes of shared memory: %w", k.name, s.grid, s.block, s.shared, err))
	}
}

// Block sizes, and the most blocks that y and z of a grid may have.
const (
	threads = 256
	maxGrid = 65535
)

// cells covers a [rows, cols] matrix with threads, a column each; kernels step over rows beyond the grid.
func cells(rows, cols int) shape {
	return shape{grid: [3]int{(cols + threads - 1) / threads, min(rows, maxGrid), 1}, block: [3]int{threads, 1, 1}}
}

// perRow has a block for each of so many rows.
func perRow(rows int) shape { return shape{grid: [3]int{rows, 1, 1}, block: [3]int{threads, 1, 1}} }
