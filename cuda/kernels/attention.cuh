// What the attention kernels share: the descriptors that the host makes (cuda/attention_plan.go), and tiles of bfloat16 in shared
// memory, multiplied by the tensor cores' mma.sync, with a running softmax over blocks of keys (Milakov & Gimelshein, "Online
// normalizer calculation for softmax", 2018; Dao, "FlashAttention-2", 2023).
#pragma once
#include "rt.cuh"

#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f
#define WHOLE 0xffffffffu

// QueryTile is the queries [row, row+n), the first at path position pos, whose path's rows begin at paths[path]; none sees a
// path position from keys on. keys 0: rows of no task. Plain kernels give each query `parts` threads.
struct QueryTile {
  int row, n, pos, path, keys, parts;
};

// KeyTile is the rows [row, row+n) of k and the uses that see them; the first row is `at` path positions after a use's key.
// Its sums go to slot `slot` of partial sums, or, if that is negative, to dk and dv.
struct KeyTile {
  int row, n, use, uses, at, parts, slot;
};

// Use is a task's queries [row, row+n), the first at path position pos, that see a run of keys from path position key on.
struct Use {
  int row, n, pos, key;
};

__device__ __forceinline__ float ex2(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ __forceinline__ float lg2(float x) {
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ __forceinline__ int warp_max(int v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v = max(v, __shfl_xor_sync(WHOLE, v, o));
  return v;
}

// Instructions without a builtin.
__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void copy16(void* to, const void* from, bool ok) {  // zeros if not ok
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(ok ? 16 : 0) : "memory");
}
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void copies_wait() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }
__device__ __forceinline__ void matrices(u32* r, u32 p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(p)
               : "memory");
}
__device__ __forceinline__ void matrices_turned(u32* r, u32 p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(p)
               : "memory");
}
__device__ __forceinline__ void mma(float* c, const u32* a, const u32* b) {  // c += a·b, 16x8x16
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// swizzle is where element (r, c) of a [rows, D] tile lies: chunks of 16 bytes are exchanged by the row, so that eight rows of
// a column of chunks lie in different banks.
template <int D> __device__ __forceinline__ int swizzle(int r, int c) { return r * D + ((((c >> 3) ^ (r & 7)) << 3) | (c & 7)); }

// Fragments of tiles. left: rows r0.., columns c0.. as the left operand, 16x16. right: the right operands of two products
// from a tile whose rows are the product's columns; right_turned: from one whose rows are the summed index. Tiles begin at
// multiples of their rows' size, so that a column of chunks changes bits of the address, which costs no register for each.
template <int D> __device__ __forceinline__ void left(u32* a, const bf16* s, int r0, int c0) {
  int l = threadIdx.x & 31;
  matrices(a, (shared_address(s + swizzle<D>(l & 15, (l >> 4) * 8)) ^ (c0 * 2)) + r0 * D * 2);
}
template <int D> __device__ __forceinline__ void right(u32* b, const bf16* s, int r0, int c0) {
  int l = threadIdx.x & 31;
  matrices(b, (shared_address(s + swizzle<D>((l & 7) + ((l >> 4) << 3), ((l >> 3) & 1) * 8)) ^ (c0 * 2)) + r0 * D * 2);
}
template <int D> __device__ __forceinline__ void right_turned(u32* b, const bf16* s, int r0, int c0) {
  int l = threadIdx.x & 31;
  matrices_turned(b, (shared_address(s + swizzle<D>(l & 15, (l >> 4) * 8)) ^ (c0 * 2)) + r0 * D * 2);
}
// packed is columns 8·i.. of a warp's accumulators as a left operand.
__device__ __forceinline__ void packed(u32* a, const float (*s)[4], int i) {
  a[0] = narrow2(s[i][0], s[i][1]);
  a[1] = narrow2(s[i][2], s[i][3]);
  a[2] = narrow2(s[i + 1][0], s[i + 1][1]);
  a[3] = narrow2(s[i + 1][2], s[i + 1][3]);
}
template <int N> __device__ __forceinline__ void clear(float (*s)[4]) {
#pragma unroll
  for (int i = 0; i < N; i++) s[i][0] = s[i][1] = s[i][2] = s[i][3] = 0.f;
}

// Rows of a matrix, at a head's columns, for tiles.
struct Heads {
  const bf16* p;
  int stride;
};
__device__ __forceinline__ Heads heads(View m, int column) { return {(const bf16*)m.p + column, m.stride}; }

// fetch begins to copy ROWS rows to a tile by THREADS threads; row(r) is negative where zeros are wanted.
template <int D, int ROWS, int THREADS, class Row> __device__ __forceinline__ void fetch(bf16* tile, Heads m, Row row) {
#pragma unroll
  for (int i = 0; i < ROWS * D / 8 / THREADS; i++) {
    int e = i * THREADS + (int)(threadIdx.x % THREADS), r = e / (D / 8), c = e % (D / 8) * 8, from = row(r);
    copy16(tile + swizzle<D>(r, c), m.p + (i64)max(from, 0) * m.stride + c, from >= 0);
  }
}

// products is S = A·Bᵀ for 16 rows of A, in registers, and ROWS rows of B.
template <int D, int ROWS> __device__ __forceinline__ void products(float (*s)[4], const u32 (*a)[4], const bf16* b) {
  clear<ROWS / 8>(s);
#pragma unroll
  for (int k = 0; k < D; k += 16)
#pragma unroll
    for (int n = 0; n < ROWS; n += 16) {
      u32 x[4];
      right<D>(x, b, n, k);
      mma(s[n / 8], a[k / 16], x);
      mma(s[n / 8 + 1], a[k / 16], x + 2);
    }
}
// sums is acc += S·B for the ROWS rows of B.
template <int D, int ROWS> __device__ __forceinline__ void sums(float (*acc)[4], const float (*s)[4], const bf16* b) {
#pragma unroll
  for (int k = 0; k < ROWS; k += 16) {
    u32 a[4];
    packed(a, s, k / 8);
#pragma unroll
    for (int n = 0; n < D; n += 16) {
      u32 x[4];
      right_turned<D>(x, b, k, n);
      mma(acc[n / 8], a, x);
      mma(acc[n / 8 + 1], a, x + 2);
    }
  }
}

// Softmax is a thread's part of 16 rows: of the two rows lane/4 and lane/4+8 that it has elements of, the largest score, the
// sum of exp(score-top), and the sum of exp(score-top)·v. sees is how many path positions each sees, 0 for no row.
template <int D> struct Softmax {
  float acc[D / 8][4], top[2], sum[2];
  int sees[2];
};
template <int D> __device__ __forceinline__ void begin(Softmax<D>& x) {
  clear<D / 8>(x.acc);
  x.top[0] = x.top[1] = -INF;
  x.sum[0] = x.sum[1] = 0.f;
}

// weigh replaces the scores of N*8 keys from path position `first` on by exp(score-top); scale is the scores' to base 2.
template <int D, int N> __device__ __forceinline__ void weigh(Softmax<D>& x, float (*s)[4], int first, float scale) {
  int t = threadIdx.x & 3;
  if (first + N * 8 > min(x.sees[0], x.sees[1])) {
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (first + i * 8 + t * 2 + (j & 1) >= x.sees[j >> 1]) s[i][j] = -INF;
  }
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float top = x.top[r];
#pragma unroll
    for (int i = 0; i < N; i++) top = fmaxf(top, fmaxf(s[i][2 * r], s[i][2 * r + 1]));
    top = fmaxf(top, __shfl_xor_sync(WHOLE, top, 1));
    top = fmaxf(top, __shfl_xor_sync(WHOLE, top, 2));
    float base = top == -INF ? 0.f : top * scale;  // a row that has seen no key has zeros
    float keep = ex2(fmaf(x.top[r], scale, -base)), sum = 0.f;
    x.top[r] = top;
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
      for (int j = 2 * r; j < 2 * r + 2; j++) {
        s[i][j] = ex2(fmaf(s[i][j], scale, -base));
        sum += s[i][j];
      }
    x.sum[r] = fmaf(x.sum[r], keep, sum);
#pragma unroll
    for (int i = 0; i < D / 8; i++) {
      x.acc[i][2 * r] *= keep;
      x.acc[i][2 * r + 1] *= keep;
    }
  }
}
// finish adds the parts that the four threads of a row have.
template <int D> __device__ __forceinline__ void finish(Softmax<D>& x) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    x.sum[r] += __shfl_xor_sync(WHOLE, x.sum[r], 1);
    x.sum[r] += __shfl_xor_sync(WHOLE, x.sum[r], 2);
  }
}

// attend computes 16 rows of a warp, of 64 of a block, over the path positions [first, end). Queries are in tile q, whose
// copy has begun; k and v are room for tiles of 64 rows, row for 128 row numbers. While a block's scores are taken its values
// are copied, and while these are summed the next block's keys.
struct Keys {
  Heads k, v;
  const int* path;
  int first, end;
};
template <int D> __device__ __forceinline__ void attend(Softmax<D>& x, const bf16* q, bf16* k, bf16* v, int* row, Keys keys, float scale) {
  int id = threadIdx.x, last = warp_max(max(x.sees[0], x.sees[1]));
  begin(x);
  if (id < 64) row[id] = keys.first + id < keys.end ? keys.path[keys.first + id] : -1;
  __syncthreads();
  fetch<D, 64, 128>(k, keys.k, [&](int r) { return row[r]; });
  copies_commit();
  copies_wait();
  __syncthreads();
  u32 a[D / 16][4];
#pragma unroll
  for (int c = 0; c < D; c += 16) left<D>(a[c / 16], q, id / 32 * 16, c);
  for (int at = keys.first; at < keys.end; at += 64) {
    int *now = row + ((at - keys.first) & 64), *then = row + ((at - keys.first + 64) & 64), later = -1;
    copies_wait();
    __syncthreads();  // keys are here, values are not used any more
    fetch<D, 64, 128>(v, keys.v, [&](int r) { return now[r]; });
    copies_commit();
    if (id < 64 && at + 64 + id < keys.end) later = keys.path[at + 64 + id];
    float s[8][4];
    if (at < last) products<D, 64>(s, a, k);
    if (id < 64) then[id] = later;
    copies_wait();
    __syncthreads();  // values are here, keys are not used any more
    if (at + 64 < keys.end) fetch<D, 64, 128>(k, keys.k, [&](int r) { return then[r]; });
    copies_commit();
    if (at < last) {
      weigh<D, 8>(x, s, at, scale);
      sums<D, 64>(x.acc, s, v);
    }
  }
  finish(x);
}
