// Rotary embedding with an optional RMS norm of each head: so many lanes (a power of two, at most a warp) take one head of
// one row, called an item, and step over its pairs (i, i+half).
#include "run.cuh"

struct Turn {  // the angle of a pair is that of its row's position
  View cos, sin;
  const int* pos;
  float sign;  // -1 turns back
};

// turn rotates the pairs i to i+N-1, (a, b), of a row at position p.
template <int N>
__device__ __forceinline__ void turn(float (&a)[N], float (&b)[N], Turn t, int p, int i) {
  t.cos.type = t.sin.type = 0;
  float cos[N], sin[N];
  loads(cos, t.cos, p, i);
  loads(sin, t.sin, p, i);
#pragma unroll
  for (int k = 0; k < N; k++) {
    float s = t.sign * sin[k], x = a[k];
    a[k] = x * cos[k] - b[k] * s;
    b[k] = b[k] * cos[k] + x * s;
  }
}

// sum is the sum over the lanes of an item; every lane of the warp takes part.
__device__ __forceinline__ float sum(float v, int lanes) {
  for (int o = lanes / 2; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

struct Item {
  int index, lane, c;  // c is its first column
  i64 r;
  bool on;  // there is such an item; otherwise it stands for the first one and must write nothing
};

__device__ __forceinline__ Item item(int rows, int heads, int half, int lanes) {
  Item t;
  t.index = blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes;
  t.lane = threadIdx.x % lanes;
  t.on = t.index < rows * heads;
  if (!t.on) t.index = 0;
  t.r = t.index / heads;
  t.c = t.index % heads * 2 * half;
  return t;
}

__device__ __forceinline__ float inverse(float squares, int half, float eps) { return 1.f / sqrtf(squares / (2 * half) + eps); }

template <int N, int T>
__device__ void forward(View y, View x, Turn t, View norm, int rows, int heads, int half, float eps, int lanes) {
  y.type = x.type = T, norm.type = 0;
  Item at = item(rows, heads, half, lanes);
  float inv = 1;
  if (norm.p) {
    float squares = 0;
    for (int i = at.lane * N; i < half; i += lanes * N) {
      float a[N], b[N];
      loads(a, x, at.r, at.c + i);
      loads(b, x, at.r, at.c + half + i);
#pragma unroll
      for (int k = 0; k < N; k++) squares += a[k] * a[k] + b[k] * b[k];
    }
    inv = inverse(sum(squares, lanes), half, eps);
  }
  if (!at.on) return;
  for (int i = at.lane * N; i < half; i += lanes * N) {
    float a[N], b[N], v[N], w[N];
    loads(a, x, at.r, at.c + i);
    loads(b, x, at.r, at.c + half + i);
    if (norm.p) {
      loads(v, norm, 0, i);
      loads(w, norm, 0, half + i);
#pragma unroll
      for (int k = 0; k < N; k++) a[k] *= inv * v[k], b[k] *= inv * w[k];
    }
    turn(a, b, t, t.pos[at.r], i);
    stores(y, at.r, at.c + i, a);
    stores(y, at.r, at.c + half + i, b);
  }
}

KERNEL rotary(View y, View x, View cos, View sin, const int* pos, float sign, View norm, int rows, int heads, int half, float eps,
              int lanes, int run) {
  Turn t{cos, sin, pos, sign};
  BY_RUN(run, x.type, forward, y, x, t, norm, rows, heads, half, eps, lanes);
}

// backward through turn and norm: with d = dy turned back, dx = inv*w*d - x*inv^3/dim*sum(w*d*x), and the item's inv, each if it
// is wanted.
template <int N, int T>
__device__ void backward(View dx, float* invs, View dy, View x, Turn t, View norm, int rows, int heads, int half, float eps, int lanes) {
  dx.type = dy.type = x.type = T, norm.type = 0;
  Item at = item(rows, heads, half, lanes);
  int p = t.pos[at.r];
  float squares = 0, dot = 0;
  for (int i = at.lane * N; i < half; i += lanes * N) {
    float a[N], b[N], c[N], d[N], v[N], w[N];
    loads(a, x, at.r, at.c + i);
    loads(b, x, at.r, at.c + half + i);
    loads(c, dy, at.r, at.c + i);
    loads(d, dy, at.r, at.c + half + i);
    loads(v, norm, 0, i);
    loads(w, norm, 0, half + i);
    turn(c, d, t, p, i);
#pragma unroll
    for (int k = 0; k < N; k++) {
      squares += a[k] * a[k] + b[k] * b[k];
      dot += a[k] * v[k] * c[k] + b[k] * w[k] * d[k];
    }
  }
  float inv = inverse(sum(squares, lanes), half, eps);
  float along = sum(dot, lanes) / (2 * half) * inv * inv * inv;
  if (!at.on) return;
  if (invs && at.lane == 0) invs[at.index] = inv;
  if (!dx.p) return;
  for (int i = at.lane * N; i < half; i += lanes * N) {
    float a[N], b[N], c[N], d[N], v[N], w[N];
    loads(a, x, at.r, at.c + i);
    loads(b, x, at.r, at.c + half + i);
    loads(c, dy, at.r, at.c + i);
    loads(d, dy, at.r, at.c + half + i);
    loads(v, norm, 0, i);
    loads(w, norm, 0, half + i);
    turn(c, d, t, p, i);
#pragma unroll
    for (int k = 0; k < N; k++) {
      c[k] = inv * v[k] * c[k] - a[k] * along;
      d[k] = inv * w[k] * d[k] - b[k] * along;
    }
    stores(dx, at.r, at.c + i, c);
    stores(dx, at.r, at.c + half + i, d);
  }
}

KERNEL rotary_norm_grad(View dx, float* invs, View dy, View x, View cos, View sin, const int* pos, View norm, int rows, int heads,
                        int half, float eps, int lanes, int run) {
  Turn t{cos, sin, pos, -1};
  BY_RUN(run, x.type, backward, dx, invs, dy, x, t, norm, rows, heads, half, eps, lanes);
}

// rotary_norm_parts: part[p] = sum of d*x*inv over the items p*each to (p+1)*each; p is blockIdx.x. A thread takes a pair and every
// blockDim.y-th item.
KERNEL rotary_norm_parts(float* part, View dy, View x, View cos, View sin, const int* pos, const float* invs, int items, int each,
                         int heads, int half) {
  __shared__ float room[2][256];
  x.type = dy.type;
  int i = blockIdx.y * blockDim.x + threadIdx.x, own = threadIdx.y * blockDim.x + threadIdx.x, p = blockIdx.x;
  Turn t{cos, sin, pos, -1};
  float first = 0, second = 0;
  if (i < half)
    for (int q = p * each + threadIdx.y; q < items && q < (p + 1) * each; q += blockDim.y) {
      i64 r = q / heads;
      int c = q % heads * 2 * half + i;
      float a[1] = {load(dy, r, c)}, b[1] = {load(dy, r, c + half)}, inv = invs[q];
      turn(a, b, t, pos[r], i);
      first = fmaf(a[0] * inv, load(x, r, c), first);
      second = fmaf(b[0] * inv, load(x, r, c + half), second);
    }
  room[0][own] = first;
  room[1][own] = second;
  __syncthreads();
  if (threadIdx.y || i >= half) return;
  for (int k = 1; k < blockDim.y; k++) {
    first += room[0][k * blockDim.x + threadIdx.x];
    second += room[1][k * blockDim.x + threadIdx.x];
  }
  part[(i64)p * 2 * half + i] = first;
  part[(i64)p * 2 * half + half + i] = second;
}
