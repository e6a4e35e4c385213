// Attention and its gradients in float32 arithmetic, for any size of heads, type and alignment. A row of the result has
// `lanes` threads, each with C of its elements in registers, that read the same rows of the other side from shared memory. Where
// a block has threads to spare, `parts` such groups share a row's work, and their sums are added at the end.
#include "attention.cuh"

#define BLOCK 128
#define SIDE 32  // rows in shared memory

// Place is a thread's: row of the tile, part of its work, and first element.
struct Place {
  int row, part, column;
};
template <int C> __device__ __forceinline__ Place place(int lanes, int parts) {
  int group = threadIdx.x / lanes;
  return {group / parts, group % parts, (int)threadIdx.x % lanes * C};
}

__device__ __forceinline__ float value(float x) { return x; }
__device__ __forceinline__ float value(bf16 x) { return widen(x); }

// get reads a thread's elements of row r, head columns from `from` on; put writes them.
template <int C, class T> __device__ __forceinline__ void get(float* x, const T* p, int left) {
#pragma unroll
  for (int c = 0; c < C; c++) x[c] = c < left ? value(p[c]) : 0.f;
}
template <int C> __device__ __forceinline__ void get(float* x, View m, i64 r, int from, int column, int dim, bool here) {
  i64 at = r * m.stride + from + column;
  int left = here ? dim - column : 0;
  if (m.type) get<C>(x, (const bf16*)m.p + at, left);
  else get<C>(x, (const float*)m.p + at, left);
}
template <int C> __device__ __forceinline__ void put(View m, i64 r, int from, int column, int dim, const float* x, float f) {
#pragma unroll
  for (int c = 0; c < C; c++)
    if (column + c < dim) store(m, r, from + column + c, x[c] * f);
}

// copy reads rows r < n, from(r) of m, to shared memory, zeros beyond dim and, up to row `all`, beyond n. Rows are C*lanes long,
// a power of 2, and four floats apart, so that groups that read different rows do not meet in a bank.
template <int C, class T, class From> __device__ __forceinline__ void copy(float* to, const T* p, int stride, int n, int all, From from, int dim, int lanes) {
  int width = C * lanes, shift = __popc(width - 1);
  for (int c = threadIdx.x & (width - 1); c < width; c += BLOCK)
#pragma unroll 1
    for (int r = threadIdx.x >> shift; r < all; r += max(1, BLOCK >> shift))
      to[r * (width + 4) + c] = r < n && c < dim ? value(p[(i64)from(r) * stride + c]) : 0.f;
}
template <int C, class From> __device__ __forceinline__ void copy(float* to, View m, int n, int all, From from, int column, int dim, int lanes) {
  if (m.type) copy<C>(to, (const bf16*)m.p + column, m.stride, n, all, from, dim, lanes);
  else copy<C>(to, (const float*)m.p + column, m.stride, n, all, from, dim, lanes);
}

// over adds v over the threads of a warp that differ in the bits from `from` up to `to`.
__device__ __forceinline__ float over(float v, int from, int to) {
  for (int o = from; o < to; o <<= 1) v += __shfl_xor_sync(WHOLE, v, o);
  return v;
}

// four are the floats at an address of shared memory. By assembly, since the compiler splits and joins such loads in no fixed way.
__device__ __forceinline__ float4 four(u32 at) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at) : "memory");
  return v;
}

// dot is a row's product with one in shared memory: a lane's part, then all lanes'. Rows have several of 32 columns only.
template <int C> __device__ __forceinline__ float dot(const float* a, const float* row, int lanes) {
  float sum = 0.f;
  u32 at = shared_address(row);
#pragma unroll
  for (int c = 0; c < C; c += 4) {
    float4 x = four(at + 4 * c);
    sum = fmaf(a[c], x.x, sum);
    sum = fmaf(a[c + 1], x.y, sum);
    sum = fmaf(a[c + 2], x.z, sum);
    sum = fmaf(a[c + 3], x.w, sum);
  }
  return C < 32 ? sum : over(sum, 1, lanes);
}

// axpy is a += f·row.
template <int C> __device__ __forceinline__ void axpy(float* a, float f, const float* row) {
  u32 at = shared_address(row);
#pragma unroll
  for (int c = 0; c < C; c += 4) {
    float4 x = four(at + 4 * c);
    a[c] = fmaf(f, x.x, a[c]);
    a[c + 1] = fmaf(f, x.y, a[c + 1]);
    a[c + 2] = fmaf(f, x.z, a[c + 2]);
    a[c + 3] = fmaf(f, x.w, a[c + 3]);
  }
}

// visit takes G keys into a row's softmax: j, j+parts, .. of those in shared memory, of which the row sees the first `sees`.
template <int C> struct Row {
  float a[C], acc[C], top, sum;
};
template <int C, int G> __device__ __forceinline__ void visit(Row<C>& x, const float* k, const float* v, int j, int parts, int lanes, int sees) {
  int step = (C * lanes + 4) * parts;
  float s[G], top = x.top;
  k += (C * lanes + 4) * j;
  v += (C * lanes + 4) * j;
#pragma unroll
  for (int g = 0; g < G; g++) s[g] = dot<C>(x.a, k + g * step, lanes);
#pragma unroll
  for (int g = 0; g < G; g++) {
    if (j + g * parts >= sees) s[g] = -INF;
    top = fmaxf(top, s[g]);
  }
  if (top > x.top) {
    float keep = ex2(x.top - top);
    x.top = top;
    x.sum *= keep;
#pragma unroll
    for (int c = 0; c < C; c++) x.acc[c] *= keep;
  }
  if (top == -INF) return;
#pragma unroll
  for (int g = 0; g < G; g++) {
    float p = ex2(s[g] - top);
    x.sum += p;
    axpy<C>(x.acc, p, v + g * step);
  }
}

template <int C> __device__ __forceinline__ void forward(View o, View lse, View q, View k, View v, const int* path, QueryTile t, int group, int dim, int lanes, float scale) {
  extern __shared__ __align__(16) float room[];
  int head = blockIdx.y, from = head / group * dim;
  float *sk = room, *sv = room + SIDE * (C * lanes + 4);
  Place me = place<C>(lanes, t.parts);
  bool here = me.row < t.n;
  int sees = here ? t.pos + me.row + 1 : 0, last = warp_max(sees);
  Row<C> x;
  x.top = -INF;
  x.sum = 0.f;
  get<C>(x.a, q, t.row + me.row, head * dim, me.column, dim, here);
#pragma unroll
  for (int c = 0; c < C; c++) x.a[c] *= scale * LOG2E, x.acc[c] = 0.f;
  for (int at = 0; at < t.keys; at += SIDE) {
    auto row = [&](int r) { return path[at + r]; };
    int n = min(SIDE, t.keys - at), few = min(SIDE, last - at);
    __syncthreads();
    copy<C>(sk, k, n, SIDE, row, from, dim, lanes);
    copy<C>(sv, v, n, SIDE, row, from, dim, lanes);
    __syncthreads();
    if (t.parts <= SIDE / 4)
#pragma unroll 1
      for (int j = 0; j < few; j += 4 * t.parts) visit<C, 4>(x, sk + me.column, sv + me.column, j + me.part, t.parts, lanes, sees - at);
    else
#pragma unroll 1
      for (int j = 0; j < few; j += t.parts) visit<C, 1>(x, sk + me.column, sv + me.column, j + me.part, t.parts, lanes, sees - at);
  }
  float most = x.top;
  for (int o = lanes; o < lanes * t.parts; o <<= 1) most = fmaxf(most, __shfl_xor_sync(WHOLE, most, o));
  float part = most == -INF ? 0.f : ex2(x.top - most);
  x.sum = over(x.sum * part, lanes, lanes * t.parts);
#pragma unroll
  for (int c = 0; c < C; c++) x.acc[c] = over(x.acc[c] * part, lanes, lanes * t.parts);
  if (!here || me.part > 0) return;
  put<C>(o, t.row + me.row, head * dim, me.column, dim, x.acc, 1.f / x.sum);
  if (lse.p && me.column == 0) store(lse, t.row + me.row, head, (most + lg2(x.sum)) * LN2);
}

// queries: dq. Rows of no task become 0.
template <int C> __device__ __forceinline__ void queries(View dq, View grad, View lse, const float* delta, View q, View k, View v, const int* path, QueryTile t, int group, int dim, int lanes, float scale) {
  extern __shared__ __align__(16) float room[];
  int stride = C * lanes + 4, head = blockIdx.y, from = head / group * dim;
  float *sk = room, *sv = room + SIDE * stride;  // one after the other
  Place me = place<C>(lanes, t.parts);
  bool here = me.row < t.n, used = here && t.keys > 0;
  i64 mine = t.row + me.row;
  int sees = used ? t.pos + me.row + 1 : 0, last = warp_max(sees);
  float a[C], g[C], acc[C];
  get<C>(a, q, mine, head * dim, me.column, dim, used);
  get<C>(g, grad, mine, head * dim, me.column, dim, used);
#pragma unroll
  for (int c = 0; c < C; c++) a[c] *= scale * LOG2E, acc[c] = 0.f;
  float top = used ? load(lse, mine, head) * LOG2E : 0.f, mean = used ? delta[mine * gridDim.y + head] : 0.f;
  for (int at = 0; at < t.keys; at += SIDE) {
    auto row = [&](int r) { return path[at + r]; };
    int n = min(SIDE, t.keys - at);
    __syncthreads();
    copy<C>(sk, k, n, n, row, from, dim, lanes);
    copy<C>(sv, v, n, n, row, from, dim, lanes);
    __syncthreads();
    const float *key = sk + me.part * stride + me.column, *other = key + SIDE * stride;
#pragma unroll 1
    for (int j = at + me.part, end = me.part + min(at + SIDE, last); j < end; j += t.parts) {
      float s = dot<C>(a, key, lanes), d = dot<C>(g, other, lanes);
      if (j < sees) axpy<C>(acc, ex2(s - top) * (d - mean), key);
      key += t.parts * stride;
      other += t.parts * stride;
    }
  }
#pragma unroll
  for (int c = 0; c < C; c++) acc[c] = over(acc[c], lanes, lanes * t.parts);
  if (here && me.part == 0) put<C>(dq, mine, head * dim, me.column, dim, acc, scale);
}

// keys: dk and dv, over the uses of the tile's rows, their query heads and SIDE queries at a time.
template <int C> __device__ __forceinline__ void keys(View dk, View dv, View grad, View lse, const float* delta, View q, View k, View v, const Use* uses, KeyTile t, int group, int dim, int lanes, float scale) {
  extern __shared__ __align__(16) float room[];
  __shared__ float top[SIDE], mean[SIDE];
  int stride = C * lanes + 4, kv = blockIdx.y, total = gridDim.y * group;
  float *sq = room, *sg = room + SIDE * stride;
  Place me = place<C>(lanes, t.parts);
  bool here = me.row < t.n;
  i64 mine = t.row + me.row;
  int least = -warp_max(here ? -me.row : -(1 << 30));
  float a[C], b[C], ak[C], av[C];
  get<C>(a, k, mine, kv * dim, me.column, dim, here);
  get<C>(b, v, mine, kv * dim, me.column, dim, here);
#pragma unroll
  for (int c = 0; c < C; c++) a[c] *= scale * LOG2E, ak[c] = av[c] = 0.f;
  for (int i = 0; i < t.uses; i++) {
    Use use = uses[t.use + i];
    int before = use.pos - use.key - t.at;  // query j sees the tile's row r if r <= j + before
    for (int head = kv * group; head < (kv + 1) * group; head++)
      for (int at = max(0, -before); at < use.n; at += SIDE) {
        auto row = [&](int r) { return use.row + at + r; };
        int n = min(SIDE, use.n - at);
        __syncthreads();
        copy<C>(sq, q, n, n, row, head * dim, dim, lanes);
        copy<C>(sg, grad, n, n, row, head * dim, dim, lanes);
        if (threadIdx.x < n) {
          i64 r = row(threadIdx.x);
          top[threadIdx.x] = load(lse, r, head) * LOG2E;
          mean[threadIdx.x] = delta[r * total + head];
        }
        __syncthreads();
        int start = max(0, least - before - at) / t.parts * t.parts, from = min(n, me.row - before - at);  // the first that sees the row
        const float *query = sq + (start + me.part) * stride + me.column, *slope = query + SIDE * stride;
#pragma unroll 1
        for (int j = start + me.part, end = n + me.part; j < end; j += t.parts) {
          bool sees = (u32)(j - from) < (u32)(n - from);
          float p = dot<C>(a, query, lanes);
          p = sees ? ex2(p - top[j]) : 0.f;
          if (dk.p) {
            float d = dot<C>(b, slope, lanes);
            if (sees) axpy<C>(ak, p * (d - mean[j]), query);
          }
          if (dv.p && sees) axpy<C>(av, p, slope);
          query += t.parts * stride;
          slope += t.parts * stride;
        }
      }
  }
#pragma unroll
  for (int c = 0; c < C; c++) {
    ak[c] = over(ak[c], lanes, lanes * t.parts);
    av[c] = over(av[c], lanes, lanes * t.parts);
  }
  if (!here || me.part > 0) return;
  if (dk.p) put<C>(dk, mine, kv * dim, me.column, dim, ak, scale);
  if (dv.p) put<C>(dv, mine, kv * dim, me.column, dim, av, 1.f);
}

#define PLAIN(C)                                                                                                                     \
  KERNEL __launch_bounds__(BLOCK, 1)                                                                                \
      forward_##C(View o, View lse, View q, View k, View v, const int* paths, const QueryTile* tiles, int group, float scale,        \
                  int dim, int lanes) {                                                                                              \
    QueryTile t = tiles[blockIdx.x];                                                                                                 \
    forward<C>(o, lse, q, k, v, paths + t.path, t, group, dim, lanes, scale);                                                        \
  }                                                                                                                                  \
  KERNEL __launch_bounds__(BLOCK, 1)                                                                                \
      queries_##C(View dq, View grad, View lse, const float* delta, View q, View k, View v, const int* paths,                        \
                  const QueryTile* tiles, int group, float scale, int dim, int lanes) {                                              \
    QueryTile t = tiles[blockIdx.x];                                                                                                 \
    queries<C>(dq, grad, lse, delta, q, k, v, paths + t.path, t, group, dim, lanes, scale);                                          \
  }                                                                                                                                  \
  KERNEL __launch_bounds__(BLOCK, 1)                                                                                \
      keys_##C(View dk, View dv, View grad, View lse, const float* delta, View q, View k, View v, const Use* uses,                   \
               const KeyTile* tiles, int group, float scale, int dim, int lanes) {                                                   \
    keys<C>(dk, dv, grad, lse, delta, q, k, v, uses, tiles[blockIdx.x], group, dim, lanes, scale);                                   \
  }
PLAIN(8)
PLAIN(16)
PLAIN(32)
