// Instructions of PTX that the kernels write as inline assembly, by their names; operands in the order of the assembly's.
#pragma once
#include "emu.h"

inline size_t __cvta_generic_to_shared(const void* p) { return (size_t)p; }

namespace emu {
inline void cvt_rn_bf16_f32(unsigned short& r, float f) { r = narrow_bits(f); }
inline void cvt_rn_bf16x2_f32(unsigned& r, float high, float low) { r = narrow_bits(low) | (unsigned)narrow_bits(high) << 16; }
inline void ex2_approx_ftz_f32(float& r, float x) { r = exp2f(x); }
inline void lg2_approx_ftz_f32(float& r, float x) { r = log2f(x); }

// An address of shared memory is one of the processor's, which has 32 bits there.
inline char* shared_at(unsigned p) { return (char*)(size_t)p; }
inline void ld_shared_v4_f32(float& x, float& y, float& z, float& w, unsigned p) {
  float v[4];
  memcpy(v, shared_at(p), sizeof v);
  x = v[0], y = v[1], z = v[2], w = v[3];
}
inline void cp_async_cg_shared_global(unsigned to, const void* from, int n) {
  memset(shared_at(to), 0, 16);
  if (n) memcpy(shared_at(to), from, n);
}
inline void cp_async_commit_group() {}
inline void cp_async_wait_group() {}

// Four 8x8 matrices of 16 bits, of which lane 8i+j has the address of row j of the i-th. A lane gets two neighbours of a row of
// each, or, turned, of a column.
inline void load_matrices(unsigned* r[4], unsigned p, bool turned) {
  const uint64_t* row = exchange(~0u, p);
  unsigned lane = thread->lane, a = lane / 4, b = lane % 4 * 2;
  for (unsigned i = 0; i < 4; i++) {
    unsigned short low, high;
    auto at = [&](unsigned r, unsigned c) { return shared_at((unsigned)row[i * 8 + r]) + 2 * c; };
    memcpy(&low, turned ? at(b, a) : at(a, b), 2);
    memcpy(&high, turned ? at(b + 1, a) : at(a, b + 1), 2);
    *r[i] = low | (unsigned)high << 16;
  }
}
inline void ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3, unsigned p) {
  unsigned* r[] = {&r0, &r1, &r2, &r3};
  load_matrices(r, p, false);
}
inline void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned& r0, unsigned& r1, unsigned& r2, unsigned& r3, unsigned p) {
  unsigned* r[] = {&r0, &r1, &r2, &r3};
  load_matrices(r, p, true);
}

// c += a·b for a [16,16], b [16,8] of bfloat16 and c of float32. Lane 4g+t has of a the rows g and g+8 and the columns 2t, 2t+1 and
// 2t+8, 2t+9; of b the same as rows, of column g; of c the rows g and g+8 and the columns 2t and 2t+1.
inline void mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(float& c0, float& c1, float& c2, float& c3, unsigned a0, unsigned a1,
                                                                unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  uint64_t a01[32], a23[32], b01[32];
  memcpy(a01, exchange(~0u, a0 | (uint64_t)a1 << 32), sizeof a01);
  memcpy(a23, exchange(~0u, a2 | (uint64_t)a3 << 32), sizeof a23);
  memcpy(b01, exchange(~0u, b0 | (uint64_t)b1 << 32), sizeof b01);
  auto part = [](uint64_t two, int word, int half) { return __uint_as_float((unsigned)(two >> (32 * word + 16 * half)) << 16); };
  unsigned g = thread->lane / 4, t = thread->lane % 4;
  float* c[] = {&c0, &c1, &c2, &c3};
  for (int i = 0; i < 4; i++) {
    unsigned down = i / 2, column = 2 * t + i % 2;  // row g + 8*down
    float sum = 0;
    for (int k = 0; k < 16; k++) {
      unsigned from = k % 8 / 2;
      sum += part(k < 8 ? a01[4 * g + from] : a23[4 * g + from], down, k % 2) * part(b01[4 * column + from], k / 8, k % 2);
    }
    *c[i] += sum;
  }
}
}  // namespace emu
