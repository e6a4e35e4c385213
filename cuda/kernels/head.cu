// Rows of a chunk of logits: their log-probabilities (Head), and the loss's gradient in them (HeadGrad). Rows of z are at
// multiples of stride, which 8 divides.
#include "softmax.cuh"

// cross is Σ exp(t)·(r - x) with t = scale·r - shift, in every thread of the block.
__device__ double cross(const float* x, const float* r, int n, float scale, float shift, double* room) {
  float sum = 0.f;
  for (int i = threadIdx.x; 4 * i < n; i += blockDim.x) {
    float4 a = quad(x, i, n, 0.f), b = quad(r, i, n, 0.f);
    int left = n - 4 * i;
    sum = fmaf(expf(fmaf(b.x, scale, -shift)), b.x - a.x, sum);
    if (left > 1) sum = fmaf(expf(fmaf(b.y, scale, -shift)), b.y - a.y, sum);
    if (left > 2) sum = fmaf(expf(fmaf(b.z, scale, -shift)), b.z - a.z, sum);
    if (left > 3) sum = fmaf(expf(fmaf(b.w, scale, -shift)), b.w - a.w, sum);
  }
  return block_sum((double)sum, room);
}

// head writes a row of Head's results; views that are not wanted have no address. r are the reference's logits.
// KL = Σ p_ref·(log p_ref - log p) = scale·Σ p_ref·(r - z) + lse - lse_ref.
ROW_KERNEL head(const float* z, const float* r, int stride, int n, float scale, const int* target, View logp, View lse,
                View entropy, View kl, View ref_lse) {
  __shared__ double room[32];
  i64 row = blockIdx.x;
  z += row * stride;
  Softmax s = entropy.p ? softmax<true>(z, n, scale, room) : softmax<false>(z, n, scale, room);
  if (threadIdx.x == 0) {
    store(lse, row, 0, s.lse());
    store(logp, row, 0, s.logp(z[target[row]], scale));
    if (entropy.p) store(entropy, row, 0, s.entropy());
  }
  if (!kl.p) return;
  r += row * stride;
  Softmax ref = softmax<false>(r, n, scale, room);
  double apart = cross(z, r, n, scale, ref.shift, room);
  if (threadIdx.x == 0) {
    store(ref_lse, row, 0, ref.lse());
    store(kl, row, 0, scale * apart / ref.sum + s.lse() - ref.lse());
  }
}

__device__ __forceinline__ float optional(View v, i64 row) { return v.p ? load(v, row, 0) : 0.f; }

// grad writes a row of the gradient in the logits to g, which may be z. With t = scale·z - lse and p = exp(t) it is
// scale·(dlogp·(1[v = target] - p) - dentropy·p·(t + entropy) + dkl·(p - p_ref)).
KERNEL grad(View g, const float* z, const float* r, int stride, int n, float scale, const int* target, View lse,
            View entropy, View ref_lse, View dlogp, View dentropy, View dkl) {
  i64 row = blockIdx.x;
  float dl = scale * optional(dlogp, row), de = scale * optional(dentropy, row), dk = scale * optional(dkl, row);
  float c0 = dk - dl, c1 = -de, shift = load(lse, row, 0), ref = 0.f;
  if (de != 0.f) c0 = fmaf(c1, load(entropy, row, 0), c0);
  if (dkl.p) ref = load(ref_lse, row, 0);
  int hit = target[row];
  z += row * stride;
  r += row * stride;
  for (int i = threadIdx.x; 4 * i < n; i += blockDim.x) {
    float4 a = quad(z, i, n, 0.f), b = {};
    if (dkl.p) b = quad(r, i, n, 0.f);
    float in[4] = {a.x, a.y, a.z, a.w}, other[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
      float t = fmaf(in[k], scale, -shift);
      in[k] = expf(t) * fmaf(c1, t, c0);
      if (dkl.p) in[k] = fmaf(-dk, expf(fmaf(other[k], scale, -ref)), in[k]);
      if (4 * i + k == hit) in[k] += dl;
    }
    // What is past the row's end is in the stride, and read by nothing.
    if (g.type) ((ushort4*)((bf16*)g.p + row * stride))[i] = {narrow(in[0]).bits, narrow(in[1]).bits, narrow(in[2]).bits, narrow(in[3]).bits};
    else ((float4*)((float*)g.p + row * stride))[i] = {in[0], in[1], in[2], in[3]};
  }
}
