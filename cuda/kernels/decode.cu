// Attention of few queries over long paths, bfloat16 with heads of 64 or 128: a block computes one range of path positions for
// the queries of one or more tasks whose paths share it, all query heads of a key head at once, so that the range is read once
// for them all. The parts of a query are merged after.
#include "attention.cuh"

// Query is row `row` of q, which sees so many path positions; its parts are slots[part..part+parts).
struct Query {
  int row, sees, part, parts;
};

// Item is the path positions [first, end) of queries[query..query+n), whose rows are paths[path+first..path+end). Query i's
// part goes to slot+i.
struct Item {
  int query, n, path, first, end, slot;
};

// Part is, of slot s and head h, the output times the sum of exp(score-top), and both, to base 2: at s*heads + h.
struct Parts {
  float* out;
  float2* score;
};

// fetch_queries begins the copy of an item's queries to a tile of ROWS rows: row r is query r/group, head r%group of the group.
template <int D, int ROWS> __device__ __forceinline__ void fetch_queries(bf16* tile, View q, const Query* queries, Item it, int group) {
  int kv = blockIdx.y;
#pragma unroll
  for (int i = 0; i < ROWS * D / 8 / 128; i++) {
    int e = i * 128 + threadIdx.x, r = e / (D / 8), c = e % (D / 8) * 8;
    bool here = r < it.n * group;
    i64 row = here ? queries[it.query + r / group].row : 0;
    int head = kv * group + (here ? r % group : 0);
    copy16(tile + swizzle<D>(r, c), (const bf16*)q.p + row * q.stride + head * D + c, here);
  }
}

// wide: 64 rows, 16 a warp, over blocks of 64 keys.
template <int D> __device__ __forceinline__ void wide(Parts parts, View q, View k, View v, const int* paths, const Query* queries, Item it, int group, float scale) {
  extern __shared__ __align__(256) bf16 room[];
  int kv = blockIdx.y, lane = threadIdx.x & 31, first = (threadIdx.x >> 5) * 16 + (lane >> 2);
  fetch_queries<D, 64>(room, q, queries, it, group);
  Softmax<D> x;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    int i = first + r * 8;
    x.sees[r] = i < it.n * group ? min(queries[it.query + i / group].sees, it.end) : 0;
  }
  Keys keys = {heads(k, kv * D), heads(v, kv * D), paths + it.path, it.first, it.end};
  attend<D>(x, room, room + 64 * D, room + 128 * D, (int*)(room + 192 * D), keys, scale * LOG2E);
#pragma unroll
  for (int r = 0; r < 2; r++) {
    int i = first + r * 8;
    if (i >= it.n * group) continue;
    i64 to = (i64)(it.slot + i / group) * gridDim.y * group + kv * group + i % group;
    float* out = parts.out + to * D + (lane & 3) * 2;
#pragma unroll
    for (int c = 0; c < D / 8; c++) *(float2*)(out + c * 8) = make_float2(x.acc[c][2 * r], x.acc[c][2 * r + 1]);
    if ((lane & 3) == 0) parts.score[to] = make_float2(x.top[r] * scale * LOG2E, x.sum[r]);
  }
}

// narrow: 16 rows, which all four warps compute, each over its own blocks of 32 keys, at no one's pace but its own; at the
// end the warps' sums are merged, in order.
template <int D> __device__ __forceinline__ void narrow(Parts parts, View q, View k, View v, const int* paths, const Query* queries, Item it, int group, float scale) {
  extern __shared__ __align__(256) bf16 room[];
  __shared__ float tops[4][16], totals[4][16];
  int kv = blockIdx.y, warp = threadIdx.x >> 5, lane = threadIdx.x & 31, first = lane >> 2;
  bf16 *sq = room, *sk = room + 16 * D + warp * 64 * D, *sv = sk + 32 * D;
  Heads keys = heads(k, kv * D), values = heads(v, kv * D);
  const int* path = paths + it.path;
  auto number = [&](int at) { return at + lane < it.end ? path[at + lane] : -1; };
  int at = it.first + warp * 32, now = number(at);
  fetch_queries<D, 16>(sq, q, queries, it, group);
  fetch<D, 32, 32>(sk, keys, [&](int r) { return __shfl_sync(WHOLE, now, r); });
  copies_commit();
  Softmax<D> x;
  begin(x);
#pragma unroll
  for (int r = 0; r < 2; r++) {
    int i = first + r * 8;
    x.sees[r] = i < it.n * group ? min(queries[it.query + i / group].sees, it.end) : 0;
  }
  copies_wait();
  __syncthreads();
  u32 a[D / 16][4];
#pragma unroll
  for (int c = 0; c < D; c += 16) left<D>(a[c / 16], sq, 0, c);
  for (; at < it.end; at += 128) {
    copies_wait();
    __syncwarp();  // keys are here, values are not used any more
    fetch<D, 32, 32>(sv, values, [&](int r) { return __shfl_sync(WHOLE, now, r); });
    copies_commit();
    now = number(at + 128);
    float s[4][4];
    products<D, 32>(s, a, sk);
    copies_wait();
    __syncwarp();  // values are here, keys are not used any more
    if (at + 128 < it.end) fetch<D, 32, 32>(sk, keys, [&](int r) { return __shfl_sync(WHOLE, now, r); });
    copies_commit();
    weigh<D, 4>(x, s, at, scale * LOG2E);
    sums<D, 32>(x.acc, s, sv);
  }
  finish(x);
  __syncthreads();  // tiles are not used any more
  float* mine = (float*)room + warp * 16 * D;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float* out = mine + (first + r * 8) * D + (lane & 3) * 2;
#pragma unroll
    for (int c = 0; c < D / 8; c++) *(float2*)(out + c * 8) = make_float2(x.acc[c][2 * r], x.acc[c][2 * r + 1]);
    if ((lane & 3) == 0) {
      tops[warp][first + r * 8] = x.top[r];
      totals[warp][first + r * 8] = x.sum[r];
    }
  }
  __syncthreads();
  for (int e = threadIdx.x; e < it.n * group * D; e += 128) {
    int i = e / D, c = e % D;
    float top = fmaxf(fmaxf(tops[0][i], tops[1][i]), fmaxf(tops[2][i], tops[3][i]));
    float base = top == -INF ? 0.f : top * scale * LOG2E, total = 0.f, sum = 0.f;
#pragma unroll
    for (int w = 0; w < 4; w++) {
      float f = ex2(fmaf(tops[w][i], scale * LOG2E, -base));
      total = fmaf(totals[w][i], f, total);
      sum = fmaf(((float*)room)[(w * 16 + i) * D + c], f, sum);
    }
    i64 to = (i64)(it.slot + i / group) * gridDim.y * group + kv * group + i % group;
    parts.out[to * D + c] = sum;
    if (c == 0) parts.score[to] = make_float2(top * scale * LOG2E, total);
  }
}

#define DECODE(NAME, D)                                                                                                              \
  KERNEL __launch_bounds__(128, 2)                                                                               \
      NAME##_##D(float* out, float2* score, View q, View k, View v, const int* paths, const Query* queries, const Item* items,       \
                 int group, float scale) {                                                                                           \
    NAME<D>({out, score}, q, k, v, paths, queries, items[blockIdx.x], group, scale);                                                 \
  }
DECODE(wide, 64)
DECODE(wide, 128)
DECODE(narrow, 64)
DECODE(narrow, 128)

// join merges the parts of each query and head: a warp each.
KERNEL join(View o, View lse, const float* out, const float2* score, const Query* queries, const int* slots, int n, int heads, int dim) {
  int i = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), lane = threadIdx.x & 31;
  if (i >= n * heads) return;
  int head = i % heads;
  Query query = queries[i / heads];
  slots += query.part;
  float top = -INF, sum = 0.f;
  for (int p = 0; p < query.parts; p++) top = fmaxf(top, score[(i64)slots[p] * heads + head].x);
  for (int p = 0; p < query.parts; p++) {
    float2 s = score[(i64)slots[p] * heads + head];
    sum = fmaf(s.y, ex2(s.x - top), sum);
  }
  for (int c = lane * 2; c < dim; c += 64) {
    float a = 0.f, b = 0.f;
    for (int p = 0; p < query.parts; p++) {
      i64 at = (i64)slots[p] * heads + head;
      float f = ex2(score[at].x - top);
      float2 x = *(const float2*)(out + at * dim + c);
      a = fmaf(x.x, f, a);
      b = fmaf(x.y, f, b);
    }
    *(u32*)((bf16*)o.p + (i64)query.row * o.stride + head * dim + c) = narrow2(a / sum, b / sum);
  }
  if (lse.p && lane == 0) ((float*)lse.p)[(i64)query.row * lse.stride + head] = (top + lg2(sum)) * LN2;
}
