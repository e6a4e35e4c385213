// SwiGLU: y = silu(g)*u with gu = [g | u].
#include "run.cuh"

__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.f, 1.f + expf(-x)); }

template <int N, int T>
__device__ void forward(View y, View gu, int rows, int cols) {
  y.type = gu.type = T;
  EACH_RUN(r, c) {
    float g[N], u[N];
    loads(g, gu, r, c);
    loads(u, gu, r, cols + c);
#pragma unroll
    for (int i = 0; i < N; i++) u[i] *= g[i] * sigmoid(g[i]);
    stores(y, r, c, u);
  }
}

KERNEL swiglu(View y, View gu, int rows, int cols, int run) {
  BY_RUN(run, gu.type, forward, y, gu, rows, cols);
}

template <int N, int T>
__device__ void backward(View dgu, View dy, View gu, int rows, int cols) {
  dgu.type = dy.type = gu.type = T;
  EACH_RUN(r, c) {
    float g[N], u[N], d[N];
    loads(g, gu, r, c);
    loads(u, gu, r, cols + c);
    loads(d, dy, r, c);
#pragma unroll
    for (int i = 0; i < N; i++) {
      float s = sigmoid(g[i]);
      u[i] *= d[i] * s * (1.f + g[i] * (1.f - s));
      d[i] *= g[i] * s;
    }
    stores(dgu, r, c, u);
    stores(dgu, r, cols + c, d);
  }
}

KERNEL swiglu_grad(View dgu, View dy, View gu, int rows, int cols, int run) {
  BY_RUN(run, gu.type, backward, dgu, dy, gu, rows, cols);
}
