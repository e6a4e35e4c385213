// Gradients of attention, bfloat16 with heads of 64 or 128. Probabilities are taken again from scores and lse:
// p = exp(scale·q·k - lse), ds = p·(do·v - delta), dq = scale·ds·k, dk = scale·dsᵀ·q, dv = pᵀ·do. dq and dk, dv are sums of two
// kernels, each in one fixed order, so that they have the same bits in every run.
#include "attention.cuh"

// queries: a block computes dq of 64 queries of a head, over blocks of 32 keys, the next of which is copied meanwhile.
template <int D> __device__ __forceinline__ void queries(View dq, View grad, View lse, const float* delta, View q, View k, View v, const int* paths, QueryTile t, int group, float scale) {
  extern __shared__ __align__(256) bf16 room[];
  bf16 *sq = room, *sg = room + 64 * D, *sk = room + 128 * D, *sv = room + 192 * D;
  int* row = (int*)(room + 256 * D);
  int head = blockIdx.y, id = threadIdx.x, warp = id >> 5, lane = id & 31, first = warp * 16 + (lane >> 2);
  int column = head / group * D, sees[2];
  Heads keys = heads(k, column), values = heads(v, column);
  const int* path = paths + t.path;
  float acc[D / 8][4], top[2], mean[2];
  clear<D / 8>(acc);
  if (t.keys > 0) {
    auto mine = [&](int r) { return r < t.n ? t.row + r : -1; };
    fetch<D, 64, 128>(sq, heads(q, head * D), mine);
    fetch<D, 64, 128>(sg, heads(grad, head * D), mine);
    if (id < 64) row[id] = id < t.keys ? path[id] : -1;
    __syncthreads();
    fetch<D, 32, 128>(sk, keys, [&](int r) { return row[r]; });
    fetch<D, 32, 128>(sv, values, [&](int r) { return row[r]; });
    copies_commit();
  }
#pragma unroll
  for (int r = 0; r < 2; r++) {
    int i = first + r * 8;
    bool here = i < t.n && t.keys > 0;
    i64 from = t.row + i;
    sees[r] = here ? t.pos + i + 1 : 0;
    top[r] = here ? ((const float*)lse.p)[from * lse.stride + head] * LOG2E : 0.f;
    mean[r] = here ? delta[from * gridDim.y + head] : 0.f;
  }
  int last = warp_max(max(sees[0], sees[1]));
  for (int at = 0; at < t.keys; at += 32) {
    int now = (at & 32), then = now ^ 32, later = -1;
    copies_wait();
    __syncthreads();
    if (at + 32 < t.keys) {
      fetch<D, 32, 128>(sk + then * D, keys, [&](int r) { return row[then + r]; });
      fetch<D, 32, 128>(sv + then * D, values, [&](int r) { return row[then + r]; });
      copies_commit();
    }
    if (id < 32 && at + 64 + id < t.keys) later = path[at + 64 + id];
    if (at < last) {
      float s[4][4], d[4][4];
      clear<4>(s);
      clear<4>(d);
#pragma unroll
      for (int c = 0; c < D; c += 16) {
        u32 a[4], b[4], x[4];
        left<D>(a, sq, warp * 16, c);
        left<D>(b, sg, warp * 16, c);
#pragma unroll
        for (int n = 0; n < 32; n += 16) {
          right<D>(x, sk + now * D, n, c);
          mma(s[n / 8], a, x);
          mma(s[n / 8 + 1], a, x + 2);
          right<D>(x, sv + now * D, n, c);
          mma(d[n / 8], b, x);
          mma(d[n / 8 + 1], b, x + 2);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
          int r = j >> 1, key = at + i * 8 + (lane & 3) * 2 + (j & 1);
          float p = key < sees[r] ? ex2(fmaf(s[i][j], scale * LOG2E, -top[r])) : 0.f;
          d[i][j] = p * (d[i][j] - mean[r]) * scale;
        }
      sums<D, 32>(acc, d, sk + now * D);
    }
    if (id < 32) row[now + id] = later;
  }
#pragma unroll
  for (int r = 0; r < 2; r++) {
    if (first + r * 8 >= t.n) continue;
    u32* out = (u32*)((bf16*)dq.p + (i64)(t.row + first + r * 8) * dq.stride + head * D);
#pragma unroll
    for (int i = 0; i < D / 8; i++) out[i * 4 + (lane & 3)] = narrow2(acc[i][2 * r], acc[i][2 * r + 1]);
  }
}

// keys: a block computes dk and dv of 64 keys of a key head, over its uses, their query heads and blocks of 32 queries. Scores
// are taken transposed, [keys, queries], which is how the sums want them.
template <int D> __device__ __forceinline__ void keys(View dk, View dv, View grad, View lse, const float* delta, View q, View k, View v, const Use* uses, const KeyTile* tile, int group, float scale, float* partial) {
  extern __shared__ __align__(256) bf16 room[];
  bf16 *sk = room, *sv = room + 64 * D, *sq = room + 128 * D, *sg = room + 160 * D;
  float *top = (float*)(room + 192 * D), *mean = top + 32;
  int kv = blockIdx.y, id = threadIdx.x, warp = id >> 5, lane = id & 31, first = warp * 16 + (lane >> 2);
  {
    KeyTile t = *tile;
    auto mine = [&](int r) { return r < t.n ? t.row + r : -1; };
    fetch<D, 64, 128>(sk, heads(k, kv * D), mine);
    fetch<D, 64, 128>(sv, heads(v, kv * D), mine);
    copies_commit();
  }
  float ak[D / 8][4], av[D / 8][4];
  clear<D / 8>(ak);
  clear<D / 8>(av);
  const Use* end = uses + tile->use + tile->uses;
  for (uses += tile->use; uses < end; uses++) {
    Use use = *uses;
    int before = use.pos - use.key - tile->at;  // query j sees the tile's row r if r <= j + before
    for (int head = kv * group; head < (kv + 1) * group; head++)
      for (int at = max(0, -before); at < use.n; at += 32) {
        auto query = [&](int r) { return at + r < use.n ? use.row + at + r : -1; };
        fetch<D, 32, 128>(sq, heads(q, head * D), query);
        fetch<D, 32, 128>(sg, heads(grad, head * D), query);
        copies_commit();
        if (id < 32) {
          i64 from = use.row + at + id;
          bool here = at + id < use.n;
          top[id] = here ? ((const float*)lse.p)[from * lse.stride + head] * LOG2E : INF;
          mean[id] = here ? delta[from * gridDim.y * group + head] : 0.f;
        }
        copies_wait();
        __syncthreads();
        float s[4][4], d[4][4];
        clear<4>(s);
        clear<4>(d);
#pragma unroll 4
        for (int c = 0; c < D; c += 16) {
          u32 a[4], b[4], x[4];
          left<D>(a, sk, warp * 16, c);
          left<D>(b, sv, warp * 16, c);
#pragma unroll
          for (int n = 0; n < 32; n += 16) {
            right<D>(x, sq, n, c);
            mma(s[n / 8], a, x);
            mma(s[n / 8 + 1], a, x + 2);
            right<D>(x, sg, n, c);
            mma(d[n / 8], b, x);
            mma(d[n / 8 + 1], b, x + 2);
          }
        }
#pragma unroll
        for (int n = 0; n < 4; n++)
#pragma unroll
          for (int j = 0; j < 4; j++) {
            int c = n * 8 + (lane & 3) * 2 + (j & 1), r = first + (j >> 1) * 8;
            s[n][j] = r <= at + c + before ? ex2(fmaf(s[n][j], scale * LOG2E, -top[c])) : 0.f;
            d[n][j] = s[n][j] * (d[n][j] - mean[c]) * scale;
          }
        sums<D, 32>(av, s, sg);
        sums<D, 32>(ak, d, sq);
        __syncthreads();
      }
  }
  copies_wait();       // of the tile, if none uses it
  KeyTile t = *tile;  // read again, for registers
#pragma unroll
  for (int r = 0; r < 2; r++) {
    int i = first + r * 8;
    if (i >= t.n) continue;
    if (t.slot >= 0) {
      float* to = partial + (((i64)t.slot * 64 + i) * gridDim.y + kv) * 2 * D + (lane & 3) * 2;
#pragma unroll
      for (int c = 0; c < D / 8; c++) {
        *(float2*)(to + c * 8) = make_float2(ak[c][2 * r], ak[c][2 * r + 1]);
        *(float2*)(to + D + c * 8) = make_float2(av[c][2 * r], av[c][2 * r + 1]);
      }
      continue;
    }
    i64 row = t.row + i;
    u32 *outk = (u32*)((bf16*)dk.p + row * dk.stride + kv * D), *outv = (u32*)((bf16*)dv.p + row * dv.stride + kv * D);
#pragma unroll
    for (int c = 0; c < D / 8; c++) {
      if (dk.p) outk[c * 4 + (lane & 3)] = narrow2(ak[c][2 * r], ak[c][2 * r + 1]);
      if (dv.p) outv[c * 4 + (lane & 3)] = narrow2(av[c][2 * r], av[c][2 * r + 1]);
    }
  }
}

#define GRADIENTS(D)                                                                                                                 \
  KERNEL __launch_bounds__(128, 2)                                                                               \
      queries_##D(View dq, View grad, View lse, const float* delta, View q, View k, View v, const int* paths,                        \
                  const QueryTile* tiles, int group, float scale) {                                                                  \
    queries<D>(dq, grad, lse, delta, q, k, v, paths, tiles[blockIdx.x], group, scale);                                               \
  }                                                                                                                                  \
  KERNEL __launch_bounds__(128, 2)                                                                               \
      keys_##D(View dk, View dv, View grad, View lse, const float* delta, View q, View k, View v, const Use* uses,                   \
               const KeyTile* tiles, int group, float scale, float* partial) {                                                       \
    keys<D>(dk, dv, grad, lse, delta, q, k, v, uses, tiles + blockIdx.x, group, scale, partial);                                      \
  }
GRADIENTS(64)
GRADIENTS(128)

// merge: dk and dv of 64 rows of k are the sums of consecutive slots, in order. A tile's slot is the first, its uses how many.
KERNEL merge(View dk, View dv, const KeyTile* tiles, const float* partial, int width, int dim) {
  KeyTile t = tiles[blockIdx.x];
  i64 cells = 2ll * width, size = 64 * cells;
  for (int i = threadIdx.x; i < t.n * width; i += blockDim.x) {
    int r = i / width, c = i % width, kv = c / dim;
    const float* from = partial + t.slot * size + r * cells + (i64)kv * 2 * dim + c % dim;
    float a = 0.f, b = 0.f;
    for (int s = 0; s < t.uses; s++, from += size) {
      a += from[0];
      b += from[dim];
    }
    if (dk.p) store(dk, t.row + r, c, a);
    if (dv.p) store(dv, t.row + r, c, b);
  }
}
