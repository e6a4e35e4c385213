// Runs of N neighbouring elements of a row: 8, read and written 16 bytes at a time, where runOf (cuda/run.go) says that
// every matrix of the call allows it, else 1.
#pragma once
#include "rt.cuh"

// BY_RUN calls a function template f<N, T> for the run and for the type of the call's activations, which is one for all: f sets
// the types of its views, so that no access has to ask.
#define BY_RUN(run, type, f, ...)                 \
  if (run == 8) {                                 \
    if (type) f<8, 1>(__VA_ARGS__);               \
    else f<8, 0>(__VA_ARGS__);                    \
  } else {                                        \
    if (type) f<1, 1>(__VA_ARGS__);               \
    else f<1, 0>(__VA_ARGS__);                    \
  }

// EACH_RUN steps a thread, whose columns are c to c+N-1, over rows.
#define EACH_RUN(r, c)                                            \
  int c = (blockIdx.x * blockDim.x + threadIdx.x) * N;            \
  if (c < cols)                                                   \
    for (i64 r = blockIdx.y; r < rows; r += gridDim.y)

template <int N>
__device__ __forceinline__ void loads(float (&v)[N], View m, i64 r, int c) {
  if constexpr (N == 1) {
    v[0] = load(m, r, c);
  } else if (m.type) {
    uint4 q = *(const uint4*)((const bf16*)m.p + (r * m.stride + c));
    u32 pair[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int i = 0; i < N; i++) v[i] = __uint_as_float(i % 2 ? pair[i / 2] & 0xffff0000u : pair[i / 2] << 16);
  } else {
    const float4* p = (const float4*)((const float*)m.p + (r * m.stride + c));
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      float4 q = p[i / 4];
      v[i] = q.x, v[i + 1] = q.y, v[i + 2] = q.z, v[i + 3] = q.w;
    }
  }
}

template <int N>
__device__ __forceinline__ void stores(View m, i64 r, int c, const float (&v)[N]) {
  if constexpr (N == 1) {
    store(m, r, c, v[0]);
  } else if (m.type) {
    u32 pair[4];
#pragma unroll
    for (int i = 0; i < N; i += 2) pair[i / 2] = narrow2(v[i], v[i + 1]);
    *(uint4*)((bf16*)m.p + (r * m.stride + c)) = make_uint4(pair[0], pair[1], pair[2], pair[3]);
  } else {
    float4* p = (float4*)((float*)m.p + (r * m.stride + c));
#pragma unroll
    for (int i = 0; i < N; i += 4) p[i / 4] = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
  }
}

// rounded is x as m keeps it.
__device__ __forceinline__ float rounded(View m, float x) { return m.type ? widen(narrow(x)) : x; }
