// What NVIDIA's compiler knows by itself, for g++: a block runs on one thread of the system, a CUDA thread is a fiber, and whoever
// waits for others lets them run.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct Index3 { unsigned x, y, z; };

namespace emu {
// Warp is what the lanes of a warp exchange. Exchanges use its two halves in turn, so that one barrier is enough for each.
struct Warp {
  unsigned alive, arrived;
  uint64_t slot[2][32];
};
struct Thread {
  Index3 index;
  unsigned lane, turn;
  Warp* warp;
  int state;
  void* context;
};
struct Block {
  Index3 index, size, grid;
  char* shared;  // dynamic, at an address below 4 GiB
};
extern thread_local Thread* thread;
extern thread_local Block block;
void block_barrier();
void warp_barrier(unsigned mask);

// exchange gives every lane of mask the values of all.
template <class T> inline const uint64_t* exchange(unsigned mask, T v) {
  static_assert(sizeof(T) <= 8, "at most 8 bytes a lane");
  Warp* w = thread->warp;
  uint64_t* slot = w->slot[thread->turn ^= 1];
  slot[thread->lane] = 0;
  memcpy(&slot[thread->lane], &v, sizeof v);
  warp_barrier(mask);
  return slot;
}
template <class T> inline T take(const uint64_t* slot, unsigned lane) {
  T v;
  memcpy(&v, &slot[lane], sizeof v);
  return v;
}

// A kernel is called with pointers to its arguments, as the driver gets them.
typedef void (*Call)(void** args);
void add(const char* file, const char* name, Call call, const unsigned* sizes, int count);
template <auto F> struct Kernel;
template <class... A, void (*F)(A...)> struct Kernel<F> {
  template <int... I> struct List {};
  template <int N, int... I> struct Count : Count<N - 1, N - 1, I...> {};
  template <int... I> struct Count<0, I...> { typedef List<I...> type; };
  template <int... I> static void go(void** p, List<I...>) { F(*(A*)p[I]...); }
  static void call(void** p) { go(p, typename Count<sizeof...(A)>::type()); }
  Kernel(const char* file, const char* name) {
    static const unsigned sizes[] = {sizeof(A)..., 0};
    add(file, name, call, sizes, sizeof...(A));
  }
};
}  // namespace emu

#define threadIdx (emu::thread->index)
#define blockIdx (emu::block.index)
#define blockDim (emu::block.size)
#define gridDim (emu::block.grid)

inline void __syncthreads() { emu::block_barrier(); }
inline void __syncwarp(unsigned mask = ~0u) { emu::warp_barrier(mask); }
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int o) {
  unsigned lane = emu::thread->lane ^ o;
  return emu::take<T>(emu::exchange(mask, v), lane & 31);
}
template <class T> inline T __shfl_sync(unsigned mask, T v, int lane) { return emu::take<T>(emu::exchange(mask, v), lane & 31); }
template <class T> inline T __shfl_down_sync(unsigned mask, T v, unsigned o) {
  unsigned lane = emu::thread->lane + o;
  const uint64_t* all = emu::exchange(mask, v);
  return lane < 32 ? emu::take<T>(all, lane) : v;
}
template <class T> inline T __shfl_up_sync(unsigned mask, T v, unsigned o) {
  unsigned lane = emu::thread->lane;
  const uint64_t* all = emu::exchange(mask, v);
  return lane >= o ? emu::take<T>(all, lane - o) : v;
}
inline unsigned __ballot_sync(unsigned mask, int p) {
  const uint64_t* all = emu::exchange(mask, (int)!!p);
  unsigned set = 0;
  for (int i = 0; i < 32; i++)
    if (mask >> i & 1) set |= (unsigned)all[i] << i;
  return set;
}
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, p) == mask; }

inline float __uint_as_float(unsigned u) { float f; memcpy(&f, &u, 4); return f; }
inline float __int_as_float(int u) { float f; memcpy(&f, &u, 4); return f; }
inline unsigned __float_as_uint(float f) { unsigned u; memcpy(&u, &f, 4); return u; }
inline int __float_as_int(float f) { int u; memcpy(&u, &f, 4); return u; }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)((unsigned __int128)a * b >> 64); }
inline unsigned long long __float2ull_rn(float x) { return (unsigned long long)nearbyintf(x); }
inline float __double2float_ru(double x) {
  float f = (float)x;
  return f < x ? nextafterf(f, INFINITY) : f;
}
inline unsigned atomicAdd(unsigned* p, unsigned v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
inline int atomicAdd(int* p, int v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long v) { return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
template <class T> inline T __ldg(const T* p) { return *p; }
template <class T> inline T min(T a, T b) { return b < a ? b : a; }
template <class T> inline T max(T a, T b) { return a < b ? b : a; }

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(8) ushort4 { unsigned short x, y, z, w; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) int4 { int x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// narrow_bits rounds to the nearest bfloat16, ties to even, as cvt.rn.bf16.f32 does.
inline unsigned short narrow_bits(float f) {
  unsigned u = __float_as_uint(f);
  if ((u & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
