// Copies and sums of whole rows: a thread takes a run of columns. Where several rows meet in one, a thread adds them in order.
#include "run.cuh"

template <int N, int T>
__device__ void gathered(View y, View x, const int* at, int rows, int cols) {
  y.type = x.type = T;
  EACH_RUN(r, c) {
    float v[N];
    loads(v, x, at[r], c);
    stores(y, r, c, v);
  }
}

KERNEL gather(View y, View x, const int* at, int rows, int cols, int run) {
  BY_RUN(run, x.type, gathered, y, x, at, rows, cols);
}

template <int N, int T>
__device__ void scattered(View y, View x, const int* at, int rows, int cols) {
  y.type = x.type = T;
  EACH_RUN(r, c) {
    float v[N];
    loads(v, x, r, c);
    stores(y, at[r], c, v);
  }
}

KERNEL scatter(View y, View x, const int* at, int rows, int cols, int run) {
  BY_RUN(run, x.type, scattered, y, x, at, rows, cols);
}

// scatter_add: group r (of rows) adds the rows from[ends[r-1]] to from[ends[r]-1] of x to row to[r] of y.
template <int N, int T>
__device__ void scattered_sums(View y, View x, const int* to, const int* ends, const int* from, int rows, int cols) {
  y.type = x.type = T;
  EACH_RUN(r, c) {
    float sum[N], v[N];
    loads(sum, y, to[r], c);
    for (int k = r ? ends[r - 1] : 0; k < ends[r]; k++) {
      loads(v, x, from[k], c);
#pragma unroll
      for (int i = 0; i < N; i++) sum[i] += v[i];
    }
    stores(y, to[r], c, sum);
  }
}

KERNEL scatter_add(View y, View x, const int* to, const int* ends, const int* from, int rows, int cols, int run) {
  BY_RUN(run, x.type, scattered_sums, y, x, to, ends, from, rows, cols);
}

// mean: span r is the rows spans[2r] to spans[2r]+spans[2r+1]-1 of x.
template <int N, int T>
__device__ void means(View y, View x, const int* spans, int rows, int cols) {
  y.type = 0, x.type = T;
  EACH_RUN(r, c) {
    float sum[N] = {}, v[N];
    int first = spans[2 * r], n = spans[2 * r + 1];
    for (int k = 0; k < n; k++) {
      loads(v, x, first + k, c);
#pragma unroll
      for (int i = 0; i < N; i++) sum[i] += v[i];
    }
#pragma unroll
    for (int i = 0; i < N; i++) sum[i] /= n;
    stores(y, r, c, sum);
  }
}

KERNEL mean(View y, View x, const int* spans, int rows, int cols, int run) {
  BY_RUN(run, x.type, means, y, x, spans, rows, cols);
}

// mean_grad: every row of dx looks through all spans for those that it is in.
template <int N, int T>
__device__ void means_grad(View dx, View dy, const int* spans, int count, int rows, int cols) {
  dx.type = T, dy.type = 0;
  EACH_RUN(r, c) {
    float sum[N], v[N];
    loads(sum, dx, r, c);
    for (int s = 0; s < count; s++) {
      int first = spans[2 * s], n = spans[2 * s + 1];
      if (r < first || r >= first + n) continue;
      loads(v, dy, s, c);
#pragma unroll
      for (int i = 0; i < N; i++) sum[i] += v[i] / n;
    }
    stores(dx, r, c, sum);
  }
}

KERNEL mean_grad(View dx, View dy, const int* spans, int count, int rows, int cols, int run) {
  BY_RUN(run, dx.type, means_grad, dx, dy, spans, count, rows, cols);
}
