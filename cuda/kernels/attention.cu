// Attention over a forest, bfloat16 with heads of 64 or 128: a block computes 64 queries of a head.
#include "attention.cuh"

template <int D> __device__ __forceinline__ void forward(View o, View lse, View q, View k, View v, const int* paths, QueryTile t, int group, float scale) {
  extern __shared__ __align__(256) bf16 room[];
  int head = blockIdx.y, warp = threadIdx.x >> 5, lane = threadIdx.x & 31, first = warp * 16 + (lane >> 2);
  fetch<D, 64, 128>(room, heads(q, head * D), [&](int r) { return r < t.n ? t.row + r : -1; });
  Softmax<D> x;
#pragma unroll
  for (int r = 0; r < 2; r++) x.sees[r] = first + r * 8 < t.n ? t.pos + first + r * 8 + 1 : 0;
  int column = head / group * D;
  attend<D>(x, room, room + 64 * D, room + 128 * D, (int*)(room + 192 * D), {heads(k, column), heads(v, column), paths + t.path, 0, t.keys}, scale * LOG2E);
#pragma unroll
  for (int r = 0; r < 2; r++) {
    if (first + r * 8 >= t.n) continue;
    i64 to = t.row + first + r * 8;
    float part = 1.f / x.sum[r];
    u32* out = (u32*)((bf16*)o.p + to * o.stride + head * D);
#pragma unroll
    for (int i = 0; i < D / 8; i++) out[i * 4 + (lane & 3)] = narrow2(x.acc[i][2 * r] * part, x.acc[i][2 * r + 1] * part);
    if (lse.p && (lane & 3) == 0) ((float*)lse.p)[to * lse.stride + head] = (x.top[r] * scale * LOG2E + lg2(x.sum[r])) * LN2;
  }
}

#define FORWARD(D)                                                                                                                   \
  KERNEL __launch_bounds__(128, 2)                                                                               \
      forward_##D(View o, View lse, View q, View k, View v, const int* paths, const QueryTile* tiles, int group, float scale) {      \
    forward<D>(o, lse, q, k, v, paths, tiles[blockIdx.x], group, scale);                                                             \
  }
FORWARD(64)
FORWARD(128)
