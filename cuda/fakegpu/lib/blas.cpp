// cuBLAS: products in the order of a plain loop, in float32.
#include <cstdio>
#include <vector>

#include "fake.h"

using namespace fake;

#define ENTER                                  \
  if (int code = failing(__func__)) return code

enum { not_initialized = 1, bad_value = 7, execution_failed = 13, not_supported = 15 };

struct Handle {
  Stream* s = stream(nullptr);
  bool workspace = false;
};

API int cublasCreate_v2(Handle** h) {
  ENTER;
  if (current() < 0) return not_initialized;
  *h = new Handle;
  return 0;
}
API int cublasDestroy_v2(Handle* h) { ENTER; delete h; return 0; }
API int cublasGetProperty(int what, int* v) {
  ENTER;
  if (what < 0 || what > 2) return bad_value;
  static const int version[3] = {12, 4, 5};
  *v = version[what];
  return 0;
}
API int cublasSetStream_v2(Handle* h, void* s) {  // which takes the workspace away
  ENTER;
  h->s = stream(s);
  h->workspace = false;
  return 0;
}
API int cublasSetWorkspace_v2(Handle* h, void* p, size_t n) {
  ENTER;
  if (!inside((uint64_t)p, n) || (uint64_t)p % 256) return bad_value;
  h->workspace = true;
  return 0;
}
API int cublasSetMathMode(Handle*, int mode) { ENTER; return mode == 16 ? 0 : bad_value; }

// Operand is a column-major matrix [rows, cols] as it lies in memory.
struct Operand {
  const void* p;
  int type, ld, rows, cols;
  bool there() const {
    return !rows || !cols || inside((uint64_t)p, ((size_t)(cols - 1) * ld + rows) * (type == 14 ? 2 : 4));
  }
  float at(bool turned, int r, int c) const { return turned ? get(p, (size_t)r * ld + c, type) : get(p, (size_t)c * ld + r, type); }
};

static void multiply(bool ta, bool tb, int m, int n, int k, float alpha, Operand a, Operand b, float beta, Operand c) {
  std::vector<float> column(k), rows((size_t)m * k);
  for (int i = 0; i < m; i++)
    for (int l = 0; l < k; l++) rows[(size_t)i * k + l] = a.at(ta, i, l);
  for (int j = 0; j < n; j++) {
    for (int l = 0; l < k; l++) column[l] = b.at(tb, l, j);
    for (int i = 0; i < m; i++) {
      const float* row = &rows[(size_t)i * k];
      float sum = 0;
      for (int l = 0; l < k; l++) sum += row[l] * column[l];
      size_t at = (size_t)j * c.ld + i;
      sum *= alpha;
      if (beta != 0) sum += beta * get(c.p, at, c.type);
      set((void*)c.p, at, c.type, sum);
    }
  }
}

API int cublasGemmEx(Handle* h, int ta, int tb, int m, int n, int k, const float* alpha, const void* a, int a_type, int lda, const void* b,
                     int b_type, int ldb, const float* beta, void* c, int c_type, int ldc, int compute, int algorithm) {
  ENTER;
  Operand x = {a, a_type, lda, ta ? k : m, ta ? m : k}, y = {b, b_type, ldb, tb ? n : k, tb ? k : n}, z = {c, c_type, ldc, m, n};
  if ((ta != 0 && ta != 1) || (tb != 0 && tb != 1) || m < 0 || n < 0 || k < 0 || algorithm != -1) return bad_value;
  for (const Operand& o : {x, y, z})
    if (o.ld < o.rows || o.ld < 1) return bad_value;
  bool floats = a_type == 0 && b_type == 0 && c_type == 0 && compute == 69;
  bool halves = a_type == 14 && b_type == 14 && (c_type == 14 || c_type == 0) && compute == 68;
  if (!floats && !halves) return not_supported;
  if (!h->workspace) {
    fprintf(stderr, "fakegpu: a product without a workspace of its own\n");
    return not_supported;
  }
  float f = *alpha, g = *beta;
  h->s->put([=] {
    if (!x.there() || !y.there() || !z.there()) return (int)illegal_address;
    multiply(ta, tb, m, n, k, f, x, y, g, z);
    return (int)ok;
  });
  return 0;
}
