// delta[r, h] = sum over head h of row r of do·o, which the gradients of attention's scores need. A row and head have `lanes`
// threads, a power of 2, each of which takes eight elements at a time; `whole` says that these can be read in one piece.
#include "rt.cuh"

__device__ __forceinline__ void eight(float* x, View m, i64 at, int n, int whole) {
  if (whole) {
    uint4 v = *(const uint4*)((const bf16*)m.p + at);
    u32 pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      x[2 * i] = __uint_as_float(pairs[i] << 16);
      x[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; i++) x[i] = i >= n ? 0.f : m.type ? widen(((const bf16*)m.p)[at + i]) : ((const float*)m.p)[at + i];
}

KERNEL delta(float* out, View grad, View o, int rows, int heads, int dim, int lanes, int whole) {
  i64 i = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / lanes, r = i / heads;
  bool here = i < (i64)rows * heads;
  int head = (int)(i % heads), lane = threadIdx.x & (lanes - 1);
  float sum = 0.f;
  if (here)
    for (int c = lane * 8; c < dim; c += lanes * 8) {
      float x[8], y[8];
      eight(x, grad, r * grad.stride + head * dim + c, dim - c, whole);
      eight(y, o, r * o.stride + head * dim + c, dim - c, whole);
#pragma unroll
      for (int j = 0; j < 8; j++) sum = fmaf(x[j], y[j], sum);
    }
  for (int b = 1; b < lanes; b <<= 1) sum += __shfl_xor_sync(0xffffffffu, sum, b);
  if (here && lane == 0) out[i] = sum;
}
