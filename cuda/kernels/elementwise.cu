// Elementwise operations on [rows, cols] matrices: a thread takes a column and steps over rows.
#include "rt.cuh"

#define EACH(r, c)                                            \
  int c = blockIdx.x * blockDim.x + threadIdx.x;              \
  if (c < cols)                                               \
    for (i64 r = blockIdx.y; r < rows; r += gridDim.y)

KERNEL add(View y, View x, int rows, int cols, float a) {
  EACH(r, c) store(y, r, c, fmaf(a, load(x, r, c), load(y, r, c)));
}
KERNEL scale(View y, View x, int rows, int cols, float a) {
  EACH(r, c) store(y, r, c, a * load(x, r, c));
}
KERNEL zero(View y, View x, int rows, int cols, float a) {
  EACH(r, c) store(y, r, c, 0.f);
}
KERNEL copy(View y, View x, int rows, int cols, float a) {
  EACH(r, c) store(y, r, c, load(x, r, c));
}

// squares: partial[b] = sum of the squares of the elements b, b+B, ... of blocks of threads, in float64.
KERNEL squares(double* partial, View x, int rows, int cols) {
  __shared__ double room[256];
  i64 n = (i64)rows * cols;
  double sum = 0;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) {
    double v = load(x, i / cols, (int)(i % cols));
    sum += v * v;
  }
  room[threadIdx.x] = sum;
  for (int o = blockDim.x / 2; o > 0; o >>= 1) {
    __syncthreads();
    if (threadIdx.x < o) room[threadIdx.x] += room[threadIdx.x + o];
  }
  if (threadIdx.x == 0) partial[blockIdx.x] = room[0];
}
