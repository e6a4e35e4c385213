// What all kernels share. No header of NVIDIA's is included: bfloat16 is a 16-bit struct, and instructions that have no
// builtin are inline assembly. One unit: compiled by NVRTC to PTX for compute_80 (scripts/ptx.sh).
#pragma once
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;

#define KERNEL extern "C" __global__ void
#define INF __int_as_float(0x7f800000)

struct __align__(2) bf16 { unsigned short bits; };

// View is driver.Matrix: element (r, c) of a row-major matrix of type 0 (float32) or 1 (bfloat16) is at r*stride + c.
struct View {
  void* p;
  int stride, type;
};

__device__ __forceinline__ float widen(bf16 v) { return __uint_as_float((u32)v.bits << 16); }
__device__ __forceinline__ bf16 narrow(float f) {  // to nearest even
  bf16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(f));
  return r;
}

__device__ __forceinline__ u32 narrow2(float low, float high) {  // both, low in the lower half
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

__device__ __forceinline__ float load(View v, i64 r, int c) {
  i64 i = r * v.stride + c;
  return v.type ? widen(((const bf16*)v.p)[i]) : ((const float*)v.p)[i];
}
__device__ __forceinline__ void store(View v, i64 r, int c, float x) {
  i64 i = r * v.stride + c;
  if (v.type) ((bf16*)v.p)[i] = narrow(x);
  else ((float*)v.p)[i] = x;
}

// Sums and maxima over a warp: every lane gets the result, always in the same order.
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}

// The same over a block of whole warps, at most 32; room is 32 floats of shared memory that nothing else uses.
__device__ __forceinline__ float block_sum(float v, float* room) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  v = warp_sum(v);
  __syncthreads();
  if (lane == 0) room[warp] = v;
  __syncthreads();
  return warp_sum(lane < warps ? room[lane] : 0.f);
}
__device__ __forceinline__ float block_max(float v, float* room) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  v = warp_max(v);
  __syncthreads();
  if (lane == 0) room[warp] = v;
  __syncthreads();
  return warp_max(lane < warps ? room[lane] : -INF);
}
