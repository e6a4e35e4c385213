// Rows of an embedding and their gradient: a thread takes a run of columns.
#include "mixed.cuh"

template <int N>
__device__ void embeds(View y, View w, const int* ids, int rows, int cols) {
  EACH_RUN(r, c) {
    float v[N];
    loads(v, w, ids[r], c);
    stores(y, r, c, v);
  }
}

// embed: y[r] = w[ids[r]].
KERNEL embed(View y, View w, const int* ids, int rows, int cols, int run) { BY_WIDTH(run, embeds, y, w, ids, rows, cols); }

template <int N>
__device__ void embed_grads(View dw, View dy, const int* to, const int* ends, const int* from, int rows, int cols) {
  EACH_RUN(r, c) {
    float sum[N], v[N];
    loads(sum, dw, to[r], c);
    for (int k = r ? ends[r - 1] : 0; k < ends[r]; k++) {
      loads(v, dy, from[k], c);
#pragma unroll
      for (int i = 0; i < N; i++) sum[i] += v[i];
    }
    stores(dw, to[r], c, sum);
  }
}

// embed_grad: group r (of rows) adds the rows from[ends[r-1]] to from[ends[r]-1] of dy to row to[r] of dw.
KERNEL embed_grad(View dw, View dy, const int* to, const int* ends, const int* from, int rows, int cols, int run) {
  BY_WIDTH(run, embed_grads, dw, dy, to, ends, from, rows, cols);
}
