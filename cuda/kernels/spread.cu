// spread: y = bias + drop(u * V) for strips V of few ranks, on the matrix unit. A float32 number is the sum of bfloat16
// ones: two hold 16 of its 24 bits, three all. spread takes two for u and one for V, as an activation is bfloat16 anyway;
// spread_exact takes three for both, with the products that count in float32.
#include "dropout.cuh"
#include "mixed.cuh"

// A block does 64 columns. Its four warps step over rows, 16 each at a time.
constexpr int COLS = 64, ROWS = 64;

struct Strip {
  View v;
  int col, n, r;
  float scale;
};

// split writes two neighbours as sums of S pairs of bfloat16.
template <int S>
__device__ __forceinline__ void split(u32 (&to)[S], float x, float y) {
#pragma unroll
  for (int i = 0; i < S; i++) {
    to[i] = narrow2(x, y);
    x -= __uint_as_float(to[i] << 16);
    y -= __uint_as_float(to[i] & 0xffff0000u);
  }
}

__device__ __forceinline__ void mma(float (&c)[4], const u32 (&a)[4], uint2 b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

// Columns are dealt so that a lane of a warp has 8 neighbours: column q*8 + j*2 + e of 32 is column 2q + e of product j.

// stage puts a strip's V for the columns from c0 on into shared memory, in the order in which lanes take it: planes of
// [step of 16 ranks][32 columns][product][lane]. live gets the bits of the steps that are not all zero.
template <int VS>
__device__ void stage(uint2* planes, int steps, int& step, u32& live, Strip p, int c0, int turned) {
  int own = (p.r + 15) / 16;
  if (own && p.col < c0 + COLS && c0 < p.col + p.n) {
    live |= ((1u << own) - 1) << step;
    for (int i = threadIdx.x; i < own * 256; i += blockDim.x) {
      int lane = i & 31, k = i / 256 * 16 + (lane & 3) * 2;
      int c = c0 - p.col + (i >> 7 & 1) * 32 + (lane >> 3) * 8 + (i >> 5 & 3) * 2 + (lane >> 2 & 1);
      float v[4];
#pragma unroll
      for (int e = 0; e < 4; e++) {
        int rank = k + (e & 1) + (e >> 1) * 8;
        bool in = c >= 0 && c < p.n && rank < p.r;
        v[e] = !in ? 0.f : p.scale * (turned ? load(p.v, rank, c) : load(p.v, c, rank));
      }
      u32 low[VS], high[VS];
      split(low, v[0], v[1]);
      split(high, v[2], v[3]);
#pragma unroll
      for (int s = 0; s < VS; s++) planes[(s * steps + step) * 256 + i] = make_uint2(low[s], high[s]);
    }
  }
  step += own;
}

// pair is two neighbours from an even column on.
__device__ __forceinline__ float2 pair(View m, i64 r, int c) {
  i64 i = r * m.stride + c;
  if (!m.type) return *(const float2*)((const float*)m.p + i);
  u32 both = *(const u32*)((const bf16*)m.p + i);
  return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000u));
}

// write sets, or adds to, 8 columns of a row.
__device__ __forceinline__ void write(View y, i64 r, int c, int cols, const float (&v)[8], int add, int run) {
  if (run == 8) {
    if (c >= cols) return;
    float sum[8];
    if (add) {
      loads(sum, y, r, c);
#pragma unroll
      for (int i = 0; i < 8; i++) sum[i] += v[i];
      stores(y, r, c, sum);
    } else {
      stores(y, r, c, v);
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
    if (c + i < cols) store(y, r, c + i, add ? load(y, r, c + i) + v[i] : v[i]);
}

// What spread has beside strips.
struct Spread {
  View y, bias, u;
  int rows, cols, steps, add, turned, run;
  Drop d;
};

// product adds u*V of a warp's 16 rows from row on to acc, [32 columns][product][of a lane].
template <int US, int VS>
__device__ __forceinline__ void product(float (&acc)[2][4][4], const Spread& t, const uint2* planes, u32 live, i64 row) {
  int lane = threadIdx.x & 31;
  i64 r0 = min(row + lane / 4, (i64)t.rows - 1), r1 = min(row + lane / 4 + 8, (i64)t.rows - 1);
  for (int step = 0; step < t.steps; step++) {
    if (!(live >> step & 1)) continue;
    int k = step * 16 + (lane & 3) * 2;
    u32 a[US][4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
      float2 v = pair(t.u, e & 1 ? r1 : r0, k + e / 2 * 8);
      u32 parts[US];
      split(parts, v.x, v.y);
#pragma unroll
      for (int i = 0; i < US; i++) a[i][e] = parts[i];
    }
#pragma unroll
    for (int q = 0; q < 8; q++)
#pragma unroll
      for (int s = 0; s < VS; s++) {
        uint2 b = planes[((s * t.steps + step) * 8 + q) * 32 + lane];
#pragma unroll
        for (int i = 0; i < US; i++)
          if (i + s < (US > VS ? US : VS)) mma(acc[q / 4][q % 4], a[i], b);
      }
  }
}

template <int US, int VS>
__device__ void spreads(Spread t, Strip p0, Strip p1, Strip p2, Strip p3) {
  extern __shared__ uint2 planes[];
  int c0 = blockIdx.x * COLS, step = 0, lane = threadIdx.x & 31;
  u32 live = 0;
#pragma unroll 1
  for (int i = 0; i < 4; i++) stage<VS>(planes, t.steps, step, live, i < 2 ? (i ? p1 : p0) : i < 3 ? p2 : p3, c0, t.turned);
  __syncthreads();
  float bias[2][8];
#pragma unroll
  for (int i = 0; i < 16; i++) {
    int c = c0 + i / 8 * 32 + (lane & 3) * 8 + i % 8;
    bias[i / 8][i % 8] = t.bias.p && c < t.cols ? load(t.bias, 0, c) : 0.f;
  }
  for (i64 row = (i64)blockIdx.y * ROWS + threadIdx.x / 32 * 16; row < t.rows; row += (i64)gridDim.y * ROWS) {
    float acc[2][4][4] = {};
    product<US, VS>(acc, t, planes, live, row);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      i64 r = row + lane / 4 + i / 2 * 8;
      int c = c0 + i % 2 * 32 + (lane & 3) * 8;
      if (r >= t.rows) continue;
      float v[8];
#pragma unroll
      for (int e = 0; e < 8; e++) v[e] = acc[i % 2][e / 2][i / 2 * 2 + e % 2];
      if (t.d.seg) drop(v, t.d, r, c);
#pragma unroll
      for (int e = 0; e < 8; e++) v[e] += bias[i % 2][e];
      write(t.y, r, c, t.cols, v, t.add, t.run);
    }
  }
}

#define STRIP(i) View v##i, int col##i, int n##i, int r##i, float scale##i
#define SPREAD(name, US, VS)                                                                                          \
  KERNEL name(View y, View bias, View u, int rows, int cols, int steps, int add, int turned, int run, const int* seg, \
              const int* pos, u32 key0, u32 key1, float p, STRIP(0), STRIP(1), STRIP(2), STRIP(3)) {                  \
    spreads<US, VS>(Spread{y, bias, u, rows, cols, steps, add, turned, run, {seg, pos, key0, key1, p}},               \
                    Strip{v0, col0, n0, r0, scale0}, Strip{v1, col1, n1, r1, scale1},                                 \
                    Strip{v2, col2, n2, r2, scale2}, Strip{v3, col3, n3, r3, scale3});                                \
  }

SPREAD(spread, 2, 1)
SPREAD(spread_exact, 3, 3)
