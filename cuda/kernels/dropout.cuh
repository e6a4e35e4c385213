// Dropout of a row's columns by the bits of a counter, device.Dropout on the device.
#pragma once
#include "philox.cuh"

// Drop is what Go's dropArgs appends. Without segments there is no dropout.
struct Drop {
  const int *seg, *pos;
  u32 key0, key1;
  float p;
};

// drop applies dropout to v, the columns from c on of row r; N is 1, or 8 and c a multiple of it.
template <int N>
__device__ __forceinline__ void drop(float (&v)[N], Drop d, i64 r, int c) {
  float scale = 1.f / (1.f - d.p);
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    uint4 q = philox(d.key0, d.key1, make_uint4(d.seg[r], d.pos[r], (c + i) / 4, 0));
    if constexpr (N == 1) {
      u32 word = c & 2 ? (c & 1 ? q.w : q.z) : (c & 1 ? q.y : q.x);
      v[0] = uniform(word) >= d.p ? v[0] * scale : 0.f;
    } else {
      u32 words[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
      for (int j = 0; j < 4; j++) v[i + j] = uniform(words[j]) >= d.p ? v[i + j] * scale : 0.f;
    }
  }
}
