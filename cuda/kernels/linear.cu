// What a matrix product needs beside blas: conversions, and the gradient of a bias.
#include "mixed.cuh"

template <int N>
__device__ void packed(View y, View x, int rows, int cols, int round) {
  EACH_RUN(r, c) {
    float v[N];
    loads(v, x, r, c);
    if (round) {
#pragma unroll
      for (int i = 0; i < N; i++) v[i] = widen(narrow(v[i]));
    }
    stores(y, r, c, v);
  }
}

// pack: y = x, of bfloat16 values if round is set.
KERNEL pack(View y, View x, int rows, int cols, int round, int run) { BY_WIDTH(run, packed, y, x, rows, cols, round); }

template <int N>
__device__ void column_sums(float* sums, View x, int rows, int cols, int each) {
  int c = (blockIdx.x * blockDim.x + threadIdx.x) * N;
  if (c >= cols) return;
  float sum[N] = {}, v[N];
  int first = blockIdx.y * each, end = min(rows, first + each);
  for (int r = first; r < end; r++) {
    loads(v, x, r, c);
#pragma unroll
    for (int i = 0; i < N; i++) sum[i] += v[i];
  }
#pragma unroll
  for (int i = 0; i < N; i++) sums[(i64)blockIdx.y * cols + c + i] = sum[i];
}

// sum_columns: row b of sums is the sum of the rows b*each to (b+1)*each-1 of x.
KERNEL sum_columns(float* sums, View x, int rows, int cols, int each, int run) { BY_WIDTH(run, column_sums, sums, x, rows, cols, each); }
