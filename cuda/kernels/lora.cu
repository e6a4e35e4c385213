// Low-rank parts of a linear operation: at most four in a launch, each with its ranks filled up to a multiple of 16.
#include "dropout.cuh"
#include "mixed.cuh"

#define FILLED(r) (((r) + 15) / 16 * 16)

template <int N>
__device__ void dropped(View y, View x, int rows, int cols, Drop d) {
  EACH_RUN(r, c) {
    float v[N];
    loads(v, x, r, c);
    drop(v, d, r, c);
    stores(y, r, c, v);
  }
}

// drop: y = drop(x).
KERNEL drop(View y, View x, int rows, int cols, const int* seg, const int* pos, u32 key0, u32 key1, float p, int run) {
  Drop d = {seg, pos, key0, key1, p};
  BY_WIDTH(run, dropped, y, x, rows, cols, d);
}

// Thin is an A or its gradient, [r, K].
struct Thin {
  View m;
  int r;
};

// within is the one of four, stacked with filled up ranks, that has row r, which becomes a row of it; a row that only fills
// up has r >= the result's.
__device__ __forceinline__ Thin within(int& r, Thin t0, Thin t1, Thin t2, Thin t3) {
  Thin t = t0;
  int next = FILLED(t0.r);
  if (r >= next) r -= next, t = t1, next = FILLED(t1.r);
  else return t;
  if (r >= next) r -= next, t = t2, next = FILLED(t2.r);
  else return t;
  if (r >= next) r -= next, t = t3;
  return t;
}

template <int N>
__device__ void stacks(View y, int rows, int cols, Thin t0, Thin t1, Thin t2, Thin t3) {
  EACH_RUN(row, c) {
    int r = row;
    Thin t = within(r, t0, t1, t2, t3);
    float v[N] = {};
    if (r < t.r) loads(v, t.m, r, c);
    stores(y, row, c, v);
  }
}

// stack: y is four matrices one above the other, filled up with zeros.
KERNEL stack(View y, int rows, int cols, int run, View a0, int r0, View a1, int r1, View a2, int r2, View a3, int r3) {
  BY_WIDTH(run, stacks, y, rows, cols, Thin{a0, r0}, Thin{a1, r1}, Thin{a2, r2}, Thin{a3, r3});
}

template <int N>
__device__ void unstacks(View x, int rows, int cols, Thin t0, Thin t1, Thin t2, Thin t3) {
  EACH_RUN(row, c) {
    int r = row;
    Thin t = within(r, t0, t1, t2, t3);
    if (r >= t.r || !t.m.p) continue;
    float v[N], sum[N];
    loads(v, x, row, c);
    loads(sum, t.m, r, c);
#pragma unroll
    for (int i = 0; i < N; i++) sum[i] += v[i];
    stores(t.m, r, c, sum);
  }
}

// unstack adds the rows of x to the matrices that they are stacked of; those without memory are left out.
KERNEL unstack(View x, int rows, int cols, int run, View a0, int r0, View a1, int r1, View a2, int r2, View a3, int r3) {
  BY_WIDTH(run, unstacks, x, rows, cols, Thin{a0, r0}, Thin{a1, r1}, Thin{a2, r2}, Thin{a3, r3});
}

// Strip is scale*V on the columns [col, col+n).
struct Strip {
  View v;
  int col, n, r;
  float scale;
};

#define STRIP(i) View v##i, int col##i, int n##i, int r##i, float scale##i
#define AS_STRIP(i) Strip{v##i, col##i, n##i, r##i, scale##i}

// put writes element i of row c of a diagonal matrix if it is p's, whose ranks begin at column first.
__device__ __forceinline__ void put(View y, int c, int k, int& first, Strip p) {
  int j = k - first, end = FILLED(p.r);
  first += end;
  if (j < 0 || j >= end) return;
  bool mine = j < p.r && c >= p.col && c < p.col + p.n;
  store(y, c, k, mine ? p.scale * load(p.v, c - p.col, j) : 0.f);
}

// diagonal: y [rows, ranks], of fewer than 2^32 elements, is scale*B of each of four parts on its rows and ranks, 0 elsewhere.
KERNEL diagonal(View y, int rows, int ranks, STRIP(0), STRIP(1), STRIP(2), STRIP(3)) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x, c = i / ranks;
  int k = i % ranks, first = 0;
  if (c >= rows) return;
  put(y, c, k, first, AS_STRIP(0));
  put(y, c, k, first, AS_STRIP(1));
  put(y, c, k, first, AS_STRIP(2));
  put(y, c, k, first, AS_STRIP(3));
}

// The rows of x that a block of narrow does.
constexpr int FEW = 8;

template <int N>
__device__ void narrows(View u, View x, int rows, int cols, Thin t0, Thin t1, Thin t2, Thin t3) {
  __shared__ float room[32];
  int r = blockIdx.x, row = blockIdx.y * FEW;
  Thin t = within(r, t0, t1, t2, t3);
  float sum[FEW] = {};
  for (int c = threadIdx.x * N; r < t.r && c < cols; c += blockDim.x * N) {
    float a[N], v[N];
    loads(a, t.m, r, c);
#pragma unroll
    for (int i = 0; i < FEW; i++) {
      if (row + i >= rows) break;
      loads(v, x, row + i, c);
#pragma unroll
      for (int j = 0; j < N; j++) sum[i] = fmaf(v[j], a[j], sum[i]);
    }
  }
  for (int i = 0; i < FEW && row + i < rows; i++) {
    float all = block_sum(sum[i], room);
    if (threadIdx.x == 0) store(u, row + i, blockIdx.x, all);
  }
}

// narrow: u = x * A^T for four stacked A; a block does a column of u.
KERNEL narrow(View u, View x, int rows, int cols, int run, View a0, int r0, View a1, int r1, View a2, int r2, View a3, int r3) {
  BY_WIDTH(run, narrows, u, x, rows, cols, Thin{a0, r0}, Thin{a1, r1}, Thin{a2, r2}, Thin{a3, r3});
}
