// What Head and Sample know of a row of logits x: with t = scale·x - shift, shift the largest scale·x, the sums of exp(t)
// and of t·exp(t). Both take it from here, and so get the same bits for the same logits.
#pragma once
#include "rt.cuh"

// A block has a row: its threads are a power of two that follows from the size of the vocabulary (logits.go).
#define ROW_KERNEL KERNEL __launch_bounds__(1024)

__device__ __forceinline__ double block_sum(double v, double* room) {  // room is 32 doubles
  int lane = threadIdx.x & 31, warps = blockDim.x >> 5;
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  __syncthreads();
  if (lane == 0) room[threadIdx.x >> 5] = v;
  __syncthreads();
  v = lane < warps ? room[lane] : 0;
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

// quad is elements 4i to 4i+3 of a row; what is past the end is pad.
__device__ __forceinline__ float4 quad(const float* x, int i, int n, float pad) {
  if (4 * i + 4 <= n && ((u64)x & 15) == 0) return ((const float4*)x)[i];
  x += 4 * i;
  n -= 4 * i;
  return {x[0], n > 1 ? x[1] : pad, n > 2 ? x[2] : pad, n > 3 ? x[3] : pad};
}

struct Softmax {
  float shift;
  double sum, dot;

  // lse and entropy are in nats, logp that of the logit x.
  __device__ double lse() const { return shift + log(sum); }
  __device__ double entropy() const { return log(sum) - dot / sum; }
  __device__ double logp(float x, float scale) const { return (double)x * scale - lse(); }
};

// Sums are those of a thread over the quads that it has seen. Their shift rises with the largest element.
struct Sums {
  float shift, sum, dot;

  __device__ __forceinline__ float base() const { return shift == -INF ? 0.f : shift; }
  __device__ __forceinline__ void raise(float to) {
    if (sum != 0.f) {
      float f = expf(shift - to);
      dot = f * fmaf(shift - to, sum, dot);
      sum *= f;
    }
    shift = to;
  }
  template <bool DOT>
  __device__ __forceinline__ void add(float x, float scale) {
    float t = fmaf(x, scale, -base()), e = expf(t);
    sum += e;
    if (DOT && e != 0.f) dot = fmaf(t, e, dot);
  }
};

// softmax is the same in every thread of the block; dot is 0 unless it is asked for. A logit that is not finite, but for
// minus infinity, makes the sum no number.
template <bool DOT>
__device__ Softmax softmax(const float* x, int n, float scale, double* room) {
  Sums s = {-INF, 0.f, 0.f};
  for (int i = threadIdx.x; 4 * i < n; i += blockDim.x) {
    float4 q = quad(x, i, n, -INF);
    float top = fmaxf(fmaxf(q.x, q.y), fmaxf(q.z, q.w)) * scale;
    if (top > s.shift) s.raise(top);
    s.add<DOT>(q.x, scale);
    s.add<DOT>(q.y, scale);
    s.add<DOT>(q.z, scale);
    s.add<DOT>(q.w, scale);
  }
  float top = block_max(s.shift, (float*)room);
  if (top > s.shift) s.raise(top);
  Softmax all = {top, block_sum((double)s.sum, room), 0};
  if (DOT) all.dot = block_sum((double)s.dot, room);
  return all;
}
