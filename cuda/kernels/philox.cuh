// Philox4x32-10, internal/device/philox.go on the device.
#pragma once
#include "rt.cuh"

// philox is the four words of a counter.
__device__ __forceinline__ uint4 philox(u32 k0, u32 k1, uint4 c) {
#pragma unroll
  for (int i = 0; i < 10; i++) {
    u32 h0 = __umulhi(0xD2511F53u, c.x), l0 = 0xD2511F53u * c.x;
    u32 h1 = __umulhi(0xCD9E8D57u, c.z), l1 = 0xCD9E8D57u * c.z;
    c = make_uint4(h1 ^ c.y ^ k0, l1, h0 ^ c.w ^ k1, l0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// uniform maps a word to (0,1): both steps are exact.
__device__ __forceinline__ float uniform(u32 w) { return ((float)(w >> 9) + 0.5f) * (1.f / (1 << 23)); }
