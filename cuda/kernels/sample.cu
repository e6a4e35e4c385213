// Sampling: a block draws the token of a row of logits. Nothing is sorted. A threshold is found by its bits, from the first
// on, in histograms of what lies where; probabilities are whole numbers there, so that sums do not depend on their order.
#include "philox.cuh"
#include "softmax.cuh"

// Row says how a row is drawn (sample.go).
struct Row {
  u64 beyond;        // (1 - top-p)·2^64; 0: off
  double min;        // log of min-p; -inf: off
  float scale;       // 1 / temperature
  float temp;        // what logits are divided by before the choice: 1 if that is greedy
  float penalty;
  u32 key[2], index; // of the random numbers
  int greedy, plain; // plain: no processor changes the distribution
  int top_k;         // 0: off
  int seen, seen_n;  // first word and length of the list of seen ids
  int mask;          // first word of the mask; -1: all are allowed
};

struct Result {
  int id;  // -1: the logits are not finite
  float logp, filtered;
};

#define THREADS 1024  // of a block, at most

struct Room {
  double sums[32];
  u64 scan[32];
  union {
    u32 bins[2][2 * THREADS];  // the low words of sums, then the high ones
    u64 segments[THREADS];
  };
  u64 below;
  int found;
  float raw;

  __device__ __forceinline__ u64 bin(int i) const { return (u64)bins[1][i] << 32 | bins[0][i]; }
};

// Logits are a row's, after the processors so far; one that was removed is -inf.
struct Logits {
  const float* x;
  const u32* mask;
  float temp;
  float low;       // what is below it is removed,
  float tied;      // and what equals this one from id end on
  int n, end;

  __device__ __forceinline__ float at(int v) const {
    if (mask && !(mask[v >> 5] >> (v & 31) & 1)) return -INF;
    float z = temp == 1.f ? x[v] : x[v] / temp;
    return z < low || (z == tied && v >= end) ? -INF : z;
  }
};

// order is a number that grows with x; the zeros are equal.
__device__ __forceinline__ u32 order(float x) {
  u32 b = __float_as_uint(x + 0.f);
  return b & 0x80000000u ? ~b : b | 0x80000000u;
}
__device__ __forceinline__ float ordered(u32 o) { return __uint_as_float(o & 0x80000000u ? o & 0x7fffffffu : ~o); }

// The masses that are summed: of a logit that was not removed 1; of one that equals some value 1; and the weight
// exp(z - top), whose 1 is ONE. A row has at most 2^20 logits.
#define ONE 8796093022208.f  // 2^43
struct Each {
  __device__ __forceinline__ u64 operator()(float z) const { return z != -INF; }
};
struct Equal {
  float value;
  __device__ __forceinline__ u64 operator()(float z) const { return z == value; }
};
struct Weight {
  float top;
  __device__ __forceinline__ u64 operator()(float z) const { return __float2ull_rn(expf(z - top) * ONE); }
};

// before is the sum of the masses of the threads before this one.
__device__ u64 before(u64 mine, u64* total, u64* room) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  u64 sum = mine;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    u64 left = __shfl_up_sync(0xffffffffu, sum, o);
    if (lane >= o) sum += left;
  }
  __syncthreads();
  if (lane == 31) room[warp] = sum;
  __syncthreads();
  u64 warps = lane < blockDim.x >> 5 ? room[lane] : 0;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    u64 left = __shfl_up_sync(0xffffffffu, warps, o);
    if (lane >= o) warps += left;
  }
  *total = __shfl_sync(0xffffffffu, warps, 31);
  u64 earlier = __shfl_sync(0xffffffffu, warps, (warp + 31) & 31);
  return (warp ? earlier : 0) + sum - mine;
}

// The one cell at which the sum of masses first exceeds goal tells the block.
__device__ __forceinline__ void claim(Room& s, int cell, u64 below, u64 mass, u64 goal) {
  if (below <= goal && goal < below + mass) {
    s.found = cell;
    s.below = below;
  }
}

// pick is the lowest id at which the sum of masses, ids ascending, exceeds goal(total); -1 if none is. Ids are cut into
// segments of as many as the block has threads, and a row has no more segments than that.
template <class Mass, class Goal>
__device__ int pick(const Logits& z, Mass mass, Goal goal, Room& s, u64* total) {
  int lane = threadIdx.x & 31, size = blockDim.x, count = (z.n + size - 1) / size;
  __syncthreads();
  if (threadIdx.x == 0) s.found = -1;
  for (int i = threadIdx.x >> 5; i < count; i += blockDim.x / 32) {
    u64 sum = 0;
#pragma unroll 4
    for (int v = i * size + lane; v < min(z.n, (i + 1) * size); v += 32) sum += mass(z.at(v));
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (lane == 0) s.segments[i] = sum;
  }
  __syncthreads();
  u64 mine = threadIdx.x < count ? s.segments[threadIdx.x] : 0, below = before(mine, total, s.scan), limit = goal(*total), all;
  claim(s, threadIdx.x, below, mine, limit);
  __syncthreads();
  if (s.found < 0) return -1;
  int v = s.found * size + threadIdx.x;
  mine = v < z.n ? mass(z.at(v)) : 0;
  below = s.below;
  below += before(mine, &all, s.scan);
  claim(s, v, below, mine, limit);
  __syncthreads();
  return s.found;
}

// Crossing is a value of logits, the mass of those below it, and of those that equal it.
struct Crossing {
  float value;
  u64 below, mass;
};

// crossing is the value at which the sum of masses, logits ascending, exceeds *limit = goal(total).
template <class Mass, class Goal>
__device__ Crossing crossing(const Logits& z, Mass mass, Goal goal, Room& s, u64* limit) {
  u32 prefix = 0;
  u64 under = 0, size = 0, total;
  int bits = 32 - __clz(blockDim.x);  // a thread sums up two bins
#pragma unroll 1
  for (int from = 32, to = 32 - bits; from > 0; from = to, to = max(0, to - bits)) {
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * blockDim.x; i += blockDim.x) s.bins[0][i] = s.bins[1][i] = 0;
    if (threadIdx.x == 0) s.found = 0;
    __syncthreads();
    u32 last = (1u << (from - to)) - 1;
#pragma unroll 4
    for (int v = threadIdx.x; v < z.n; v += blockDim.x) {
      float x = z.at(v);
      u32 o = order(x), bin = o >> to & last;
      u64 m = mass(x);
      if (m == 0 || (from < 32 && o >> from != prefix)) continue;
      // A 64-bit sum out of two of 32 bits, which shared memory adds to by itself.
      u32 part = (u32)m, was = atomicAdd(&s.bins[0][bin], part), carry = was + part < part;
      if (m >> 32 || carry) atomicAdd(&s.bins[1][bin], (u32)(m >> 32) + carry);
    }
    __syncthreads();
    int cell = 2 * threadIdx.x;
    u64 a = s.bin(cell), b = s.bin(cell + 1);
    u64 below = under + before(a + b, &total, s.scan);
    if (from == 32) *limit = goal(total);
    claim(s, cell, below, a, *limit);
    claim(s, cell + 1, below + a, b, *limit);
    __syncthreads();
    prefix = prefix << (from - to) | s.found;
    under = s.below;
    size = s.bin(s.found);
  }
  return {ordered(prefix), under, size};
}

// penalise changes the logits of the ids seen, and saves them as they were.
__device__ void penalise(float* x, const Row& r, const int* seen, float* saved) {
  for (int i = threadIdx.x; i < r.seen_n; i += blockDim.x) {
    float z = x[seen[i]];
    saved[i] = z;
    x[seen[i]] = z > 0.f ? z / r.penalty : z * r.penalty;
  }
  __syncthreads();
}

// largest is the order of the largest logit, and below that the complement of its lowest id.
__device__ u64 largest(const Logits& z, u64* room) {
  u64 top = 0;
#pragma unroll 4
  for (int v = threadIdx.x; v < z.n; v += blockDim.x) top = max(top, (u64)order(z.at(v)) << 32 | (u32)~v);
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) top = max(top, __shfl_xor_sync(0xffffffffu, top, o));
  __syncthreads();
  if ((threadIdx.x & 31) == 0) room[threadIdx.x >> 5] = top;
  __syncthreads();
  top = (threadIdx.x & 31) < blockDim.x >> 5 ? room[threadIdx.x & 31] : 0;
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) top = max(top, __shfl_xor_sync(0xffffffffu, top, o));
  return top;
}

// filter applies top-k, top-p and min-p.
__device__ void filter(Logits& z, const Row& r, float top, Room& s) {
  u64 limit, total;
  if (r.top_k > 0 && r.top_k < z.n) {
    Each each;
    u64 k = r.top_k;
    Crossing c = crossing(z, each, [k](u64 all) { return all > k ? all - k : 0; }, s, &limit);
    if (limit > 0) z.low = c.value;
  }
  if (r.beyond > 0) {
    Weight weight = {top};
    u64 beyond = r.beyond;
    Crossing c = crossing(z, weight, [beyond](u64 all) { return __umul64hi(all, beyond); }, s, &limit);
    u64 one = weight(c.value), cut = (limit - c.below) / one, keep = c.mass / one - cut;
    z.low = c.value;
    if (cut > 0) {
      Equal equal = {c.value};
      z.end = pick(z, equal, [keep](u64) { return keep; }, s, &total);
      z.tied = c.value;
    }
  }
  if (r.min > -INF) z.low = fmaxf(z.low, __double2float_ru(top + r.min));
}

// raw is the logit of id before the penalty.
__device__ float raw(const float* x, int id, const Row& r, const int* seen, const float* saved, Room& s) {
  if (threadIdx.x == 0) s.raw = x[id];
  __syncthreads();
  for (int i = threadIdx.x; i < r.seen_n; i += blockDim.x)
    if (seen[i] == id) s.raw = saved[i];
  __syncthreads();
  return s.raw;
}

// sample: words are the rows, then what they refer to; saved has room for every id seen.
ROW_KERNEL sample(View logits, int n, const u32* words, float* saved, Result* out) {
  __shared__ Room s;
  const Row r = ((const Row*)words)[blockIdx.x];
  const int* seen = (const int*)words + r.seen;
  saved += r.seen - gridDim.x * (sizeof(Row) / 4);
  float* x = (float*)logits.p + (i64)blockIdx.x * logits.stride;
  Softmax full = softmax<false>(x, n, r.scale, s.sums);
  double lse = full.lse();
  Result result = {-1, 0.f, 0.f};
  if (!(lse - lse == 0)) {  // no number, or infinite
    if (threadIdx.x == 0) out[blockIdx.x] = result;
    return;
  }
  penalise(x, r, seen, saved);
  Logits z = {x, r.mask < 0 ? nullptr : words + r.mask, r.temp, -INF, __int_as_float(0x7fffffff), n, n};
  float top = full.shift;
  u64 total = 0;
  if (!r.plain) {
    u64 best = largest(z, s.scan);
    top = ordered(best >> 32);
    result.id = ~(u32)best;
  }
  if (!r.greedy) {
    if (!r.plain) filter(z, r, top, s);
    Weight weight = {top};
    u64 u = (u64)(philox(r.key[0], r.key[1], make_uint4(r.index, 0, 0, 0)).x >> 9) << 41 | 1ull << 40;  // uniform, in 2^-64
    result.id = pick(z, weight, [u](u64 all) { return __umul64hi(all, u); }, s, &total);
  }
  if (result.id >= 0) {
    float id = raw(x, result.id, r, seen, saved, s);
    result.logp = full.logp(id, r.scale);
    result.filtered = r.plain ? result.logp : r.greedy ? 0.f : z.at(result.id) - (top + log((double)total / ONE));
  }
  if (threadIdx.x == 0) out[blockIdx.x] = result;
}
