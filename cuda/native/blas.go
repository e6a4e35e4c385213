package native

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/rubicon-rl/rubicon/cuda/driver"
)

// Functions of cuBLAS.
const (
	fBlasCreate = iota
	fBlasDestroy
	fBlasGetProperty
	fBlasSetStream
	fBlasSetWorkspace
	fBlasSetMathMode
	fBlasGemmEx
)

func blasNames() []string {
	return []string{
		fBlasCreate: "cublasCreate_v2", fBlasDestroy: "cublasDestroy_v2", fBlasGetProperty: "cublasGetProperty",
		fBlasSetStream: "cublasSetStream_v2", fBlasSetWorkspace: "cublasSetWorkspace_v2", fBlasSetMathMode: "cublasSetMathMode",
		fBlasGemmEx: "cublasGemmEx",
	}
}

// Blas is cuBLAS on a device.
type Blas struct {
	*library
	driver    driver.Driver
	handle    uintptr
	version   string
	workspace driver.Ptr
	stream    driver.Stream // that the handle is set to
	bound     bool          // it is set
	sync      bool
}

var _ driver.Blas = (*Blas)(nil)

// workspaceBytes is memory that cuBLAS works in. It is fixed, for the choice of an algorithm depends on its size.
const workspaceBytes = 32 << 20

// Of cublasSetMathMode: sums of bfloat16 products are float32 throughout, also where a product is split over K.
const noReducedSums = 16

// OpenBlas opens cuBLAS for a device whose driver is for CUDA of this major version or later.
func OpenBlas(e Env, d driver.Driver, major int) (*Blas, error) {
	w := wanted{
		what: "cuBLAS", override: "RUBICON_CUBLAS", needs: "libcublasLt",
		hint: fmt.Sprintf("python3 -m pip install nvidia-cublas-cu12 (nvidia-cublas for CUDA 13; the driver is for CUDA %d), install the CUDA toolkit, or set RUBICON_CUBLAS to the file", major),
	}
	for v := major; v >= 11; v-- { // a newer one than the driver's does not start
		w.sonames = append(w.sonames, fmt.Sprintf("libcublas.so.%d", v))
		w.wheels = append(w.wheels, fmt.Sprintf("cu%d/lib", v))
	}
	w.wheels = append(w.wheels, "cublas/lib")
	l, err := w.load(e, blasNames(), blasError)
	if err != nil {
		return nil, err
	}
	b := &Blas{library: l, driver: d, sync: e.Getenv("RUBICON_CUDA_SYNC") == "1"}
	if err := b.open(); err != nil {
		return nil, fmt.Errorf("%s: %w", b.path, errors.Join(err, b.Close()))
	}
	return b, nil
}

func (b *Blas) open() (err error) {
	version := new([3]int32)
	for i := range version {
		if err := b.call(fBlasGetProperty, uintptr(i), uintptr(unsafe.Pointer(&version[i]))); err != nil {
			return err
		}
	}
	b.version = fmt.Sprintf("%d.%d.%d", version[0], version[1], version[2])
	handle := new(uintptr)
	if err := b.call(fBlasCreate, uintptr(unsafe.Pointer(handle))); err != nil {
		return err
	}
	b.handle = *handle
	if b.workspace, err = b.driver.Alloc(workspaceBytes); err != nil {
		return err
	}
	return b.call(fBlasSetMathMode, b.handle, noReducedSums)
}

// Name implements driver.Blas.
func (b *Blas) Name() string { return "cuBLAS " + b.version }

// Path is cuBLAS's file.
func (b *Blas) Path() string { return b.path }

// Close implements driver.Blas.
func (b *Blas) Close() error {
	var err error
	if b.handle != 0 {
		err = b.call(fBlasDestroy, b.handle)
	}
	if b.workspace != 0 {
		err = errors.Join(err, b.driver.Free(b.workspace))
	}
	b.handle, b.workspace = 0, 0
	return err
}

// use sets the stream. That takes the workspace away, so it is set again. Streams share the workspace: what one stream has
// to multiply must wait for what another multiplies.
func (b *Blas) use(s driver.Stream) error {
	if b.bound && s == b.stream {
		return nil
	}
	if err := b.call(fBlasSetStream, b.handle, uintptr(s)); err != nil {
		return err
	}
	b.stream, b.bound = s, true
	return b.call(fBlasSetWorkspace, b.handle, uintptr(b.workspace), workspaceBytes)
}

// Values of cublasGemmEx.
const (
	typeF32, typeBF16         = 0, 14 // cudaDataType
	computeF32, computeStrict = 68, 69
	algorithmDefault          = 0xffffffff // -1 as an unsigned int
)

// blasType is the element type of a matrix, blasTurn whether it is transposed.
func blasType(t driver.Type) uintptr {
	if t == driver.BF16 {
		return typeBF16
	}
	return typeF32
}

func blasTurn(turned bool) uintptr {
	if turned {
		return 1
	}
	return 0
}

// Gemm implements driver.Blas. To cuBLAS, whose matrices are column-major, a row-major matrix is the transpose of what it
// is to us, so it computes Cᵀ = op(B)ᵀ·op(A)ᵀ.
func (b *Blas) Gemm(g driver.Gemm, s driver.Stream) error {
	if g.M == 0 || g.N == 0 {
		return nil
	}
	if err := b.use(s); err != nil {
		return err
	}
	compute := uintptr(computeF32)
	if g.A.Type == driver.F32 {
		compute = computeStrict // no TF32, whose products have 10 bits
	}
	factors := &[2]float32{g.Alpha, g.Beta}
	err := b.call(fBlasGemmEx, b.handle, blasTurn(g.TransB), blasTurn(g.TransA), uintptr(g.N), uintptr(g.M), uintptr(g.K),
		uintptr(unsafe.Pointer(&factors[0])), uintptr(g.B.At), blasType(g.B.Type), uintptr(max(1, g.B.Stride)),
		uintptr(g.A.At), blasType(g.A.Type), uintptr(max(1, g.A.Stride)),
		uintptr(unsafe.Pointer(&factors[1])), uintptr(g.C.At), blasType(g.C.Type), uintptr(max(1, g.C.Stride)), compute, algorithmDefault)
	if err == nil && b.sync {
		err = b.driver.SyncStream(s)
	}
	if err != nil {
		return fmt.Errorf("product [%d,%d]·[%d,%d] with strides %d, %d, %d: %w", g.M, g.K, g.K, g.N, g.A.Stride, g.B.Stride, g.C.Stride, err)
	}
	return nil
}
