// RMSNorm with its residual: a block takes a row. Gradients of weights are sums over rows: of parts, whose number and
// size follow from the number of rows alone, then of the parts in order.
#include "run.cuh"

// inverse is 1/rms of a row whose squares sum up to sum.
__device__ __forceinline__ float inverse(float sum, int cols, float eps) { return 1.f / sqrtf(sum / cols + eps); }

template <int N, int T>
__device__ void forward(View y, View x, View res, View w, int cols, float eps, float* room) {
  y.type = x.type = res.type = T, w.type = 0;
  i64 r = blockIdx.x;
  float sum = 0;
  for (int c = threadIdx.x * N; c < cols; c += blockDim.x * N) {
    float a[N], b[N];
    loads(a, x, r, c);
    if (res.p) {
      loads(b, res, r, c);
#pragma unroll
      for (int i = 0; i < N; i++) a[i] = rounded(x, a[i] + b[i]);  // backward reads x as it is kept
      stores(x, r, c, a);
    }
#pragma unroll
    for (int i = 0; i < N; i++) sum = fmaf(a[i], a[i], sum);
  }
  float inv = inverse(block_sum(sum, room), cols, eps);
  for (int c = threadIdx.x * N; c < cols; c += blockDim.x * N) {
    float a[N], b[N];
    loads(a, x, r, c);
    loads(b, w, 0, c);
#pragma unroll
    for (int i = 0; i < N; i++) a[i] *= inv * b[i];
    stores(y, r, c, a);
  }
}

KERNEL rmsnorm(View y, View x, View res, View w, int cols, float eps, int run) {
  __shared__ float room[32];
  BY_RUN(run, x.type, forward, y, x, res, w, cols, eps, room);
}

// backward: dx += inv*w*dy - x*inv^3/cols*sum(w*dy*x), and the row's inv, each if it is wanted.
template <int N, int T>
__device__ void backward(View dx, float* invs, View dy, View x, View w, int cols, float eps, float* room) {
  dx.type = dy.type = x.type = T, w.type = 0;
  i64 r = blockIdx.x;
  float squares = 0, dot = 0;
  for (int c = threadIdx.x * N; c < cols; c += blockDim.x * N) {
    float a[N], b[N], d[N];
    loads(a, x, r, c);
    loads(b, w, 0, c);
    loads(d, dy, r, c);
#pragma unroll
    for (int i = 0; i < N; i++) {
      squares = fmaf(a[i], a[i], squares);
      dot = fmaf(a[i] * b[i], d[i], dot);
    }
  }
  float inv = inverse(block_sum(squares, room), cols, eps);
  if (invs && threadIdx.x == 0) invs[r] = inv;
  if (!dx.p) return;
  float along = block_sum(dot, room) / cols * inv * inv * inv;
  for (int c = threadIdx.x * N; c < cols; c += blockDim.x * N) {
    float a[N], b[N], d[N], g[N];
    loads(a, x, r, c);
    loads(b, w, 0, c);
    loads(d, dy, r, c);
    loads(g, dx, r, c);
#pragma unroll
    for (int i = 0; i < N; i++) g[i] += inv * b[i] * d[i] - a[i] * along;
    stores(dx, r, c, g);
  }
}

KERNEL rmsnorm_grad(View dx, float* invs, View dy, View x, View w, int cols, float eps, int run) {
  __shared__ float room[32];
  BY_RUN(run, x.type, backward, dx, invs, dy, x, w, cols, eps, room);
}

// parts: part[p] = sum of dy*x*inv over the rows p*each to (p+1)*each; p is blockIdx.y.
template <int N, int T>
__device__ void parts(float* part, View dy, View x, const float* invs, int rows, int each, int cols) {
  dy.type = x.type = T;
  int c = (blockIdx.x * blockDim.x + threadIdx.x) * N;
  if (c >= cols) return;
  i64 p = blockIdx.y;
  float sum[N] = {};
  for (i64 r = p * each; r < rows && r < (p + 1) * each; r++) {
    float a[N], d[N], inv = invs[r];
    loads(a, x, r, c);
    loads(d, dy, r, c);
#pragma unroll
    for (int i = 0; i < N; i++) sum[i] = fmaf(a[i] * inv, d[i], sum[i]);
  }
#pragma unroll
  for (int i = 0; i < N; i++) part[p * cols + c + i] = sum[i];
}

KERNEL rmsnorm_parts(float* part, View dy, View x, const float* invs, int rows, int each, int cols, int run) {
  BY_RUN(run, x.type, parts, part, dy, x, invs, rows, each, cols);
}

// add_parts: dw += the sum of the parts.
KERNEL add_parts(View dw, const float* part, int parts, int cols) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= cols) return;
  dw.type = 0;
  float sum = 0;
  for (int p = 0; p < parts; p++) sum += part[(i64)p * cols + c];
  store(dw, 0, c, load(dw, 0, c) + sum);
}
