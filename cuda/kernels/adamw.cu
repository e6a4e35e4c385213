// AdamW as internal/cpu computes it: the constants come from float64, the state is float32.
#include "run.cuh"

struct Constants {
  float grad, beta1, rest1, beta2, rest2, decay, rate, unbias2, eps;
};

template <int N>
__device__ void update(View w, View g, View m, View v, Constants k, int rows, int cols) {
  w.type = g.type = m.type = v.type = 0;
  EACH_RUN(r, c) {
    float a[N], b[N], d[N], x[N];
    loads(d, g, r, c);
    loads(a, m, r, c);
    loads(b, v, r, c);
    loads(x, w, r, c);
#pragma unroll
    for (int i = 0; i < N; i++) {
      float grad = d[i] * k.grad;
      a[i] = k.beta1 * a[i] + k.rest1 * grad;
      b[i] = k.beta2 * b[i] + k.rest2 * grad * grad;
      x[i] = x[i] * k.decay - k.rate * a[i] / (sqrtf(b[i]) * k.unbias2 + k.eps);
    }
    stores(m, r, c, a);
    stores(v, r, c, b);
    stores(w, r, c, x);
  }
}

KERNEL adamw(View w, View g, View m, View v, int rows, int cols, int run, float grad, float beta1, float rest1, float beta2, float rest2,
             float decay, float rate, float unbias2, float eps) {
  Constants k{grad, beta1, rest1, beta2, rest2, decay, rate, unbias2, eps};
  if (run == 8) update<8>(w, g, m, v, k, rows, cols);
  else update<1>(w, g, m, v, k, rows, cols);
}
