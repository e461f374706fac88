// ptx_rt_matrix.h - ldmatrix, mma and wmma over whole warps.  Part of ptx_rt.h.
#pragma once
// ldmatrix: lanes 8i..8i+7 give the row addresses of 8x8 matrix i; lane l receives elements (l/4, 2*(l%4)+{0,1})
inline void ldmatrix__(const char* row, int n, bool tr, uint32_t* v, const char* file, int line) {
  const char* rows[32];
  gather_(&row, rows, sizeof row, {file, line});
  unsigned l = stitch_emu::lane_id();
  for (int i = 0; i < n; i++) {
    uint16_t h[2];
    for (int e = 0; e < 2; e++) {
      unsigned r = l / 4, c = l % 4 * 2 + e;
      const char* p = tr ? rows[8 * i + c] + 2 * r : rows[8 * i + r] + 2 * c;
#ifdef STITCH_EMU_CHECK
      ptx_access(p, 2, 0, 0, file, line);
#endif
      std::memcpy(&h[e], p, 2);
    }
    v[i] = h[0] | (uint32_t)h[1] << 16;
  }
}
#define ldmatrix_(p, n, t, v, l) ldmatrix__(p, n, t, v, FILE_, l)
// mma.m16n8k16 / k8 fragments, as in the PTX ISA: g = lane/4, t = lane%4
template <class H, int K>
inline void mma_f32(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t* d,
                    stitch_emu::Site s) {
  constexpr int NA = K / 4, NB = K / 8;
  uint32_t A[32][NA], B[32][NB];
  gather_(a, A, sizeof A[0], s);
  gather_(b, B, sizeof B[0], s);
  unsigned l = stitch_emu::lane_id(), g = l / 4, t = l % 4;
  auto hv = [](uint32_t x, int i) {
    H h;
    uint16_t u = (uint16_t)(x >> (16 * i));
    std::memcpy(&h, &u, 2);
    return (float)h;
  };
  for (int i = 0; i < 4; i++) {
    unsigned r = g + (i / 2) * 8, cc = t * 2 + i % 2;
    float acc;
    std::memcpy(&acc, &c[i], 4);
    for (int k = 0; k < K; k++) {
      unsigned ar = (r >= 8) + 2 * (k / 8), al = (r % 8) * 4 + (k % 8) / 2, br = k / 8,
               bl = cc * 4 + (k % 8) / 2;
      acc += hv(A[al][ar], k % 2) * hv(B[bl][br], k % 2);
    }
    std::memcpy(&d[i], &acc, 4);
  }
}
#define mma_m16n8k16_f32_f16_f16_f32(a, b, c, d, l) mma_f32<half_t, 16>(a, b, c, d, {FILE_, l})
#define mma_m16n8k8_f32_f16_f16_f32(a, b, c, d, l) mma_f32<half_t, 8>(a, b, c, d, {FILE_, l})
#define mma_m16n8k16_f32_bf16_bf16_f32(a, b, c, d, l) mma_f32<bf16_t, 16>(a, b, c, d, {FILE_, l})
// wmma: fragments are opaque in CUDA, so any consistent layout will do: element e of lane l is (e*32+l) in row-major order.
struct WmmaShape {
  int m, n, k;
};
inline WmmaShape wmma_shape(const char* s) {
  WmmaShape w;
  if (sscanf(s, "m%dn%dk%d", &w.m, &w.n, &w.k) != 3) std::abort();
  return w;
}
inline float wmma_num(const char* ty, const uint32_t* v, int e) {
  if (ty[0] == 't' || !strcmp(ty, "f32")) {
    float f;
    std::memcpy(&f, &v[e], 4);
    return f;
  }
  uint16_t h = (uint16_t)(v[e / 2] >> (16 * (e % 2)));
  return ty[0] == 'b' ? stitch_emu::b2f(h) : stitch_emu::h2f(h);
}
inline void wmma_load_(char which, bool col, const char* p, uint32_t ld, const char* sh, const char* ty,
                       int n, uint32_t* v, const char* file, int line) {
  WmmaShape w = wmma_shape(sh);
  int R = which == 'b' ? w.k : w.m, C = which == 'a' ? w.k : w.n,
      sz = ty[0] == 't' || !strcmp(ty, "f32") ? 4 : 2;
  unsigned l = stitch_emu::lane_id();
  for (int i = 0; i < n; i++) v[i] = 0;
  for (int e = 0; e < R * C / 32; e++) {
    int i = e * 32 + (int)l, r = i / C, c = i % C;
    const char* q = p + (size_t)(col ? c * ld + r : r * ld + c) * sz;
#ifdef STITCH_EMU_CHECK
    ptx_access(q, sz, 0, 0, file, line);
#endif
    if (sz == 4)
      std::memcpy(&v[e], q, 4);
    else {
      uint16_t h;
      std::memcpy(&h, q, 2);
      v[e / 2] |= (uint32_t)h << (16 * (e % 2));
    }
  }
  __syncwarp(0xffffffffu, file, line);
}
inline void wmma_store_(bool col, char* p, uint32_t ld, const char* sh, const char* ty, int n,
                        const uint32_t* v, const char* file, int line) {
  WmmaShape w = wmma_shape(sh);
  int sz = !strcmp(ty, "f32") ? 4 : 2;
  unsigned l = stitch_emu::lane_id();
  for (int e = 0; e < w.m * w.n / 32; e++) {
    int i = e * 32 + (int)l, r = i / w.n, c = i % w.n;
    char* q = p + (size_t)(col ? c * ld + r : r * ld + c) * sz;
#ifdef STITCH_EMU_CHECK
    ptx_access(q, sz, 1, 0, file, line);
#endif
    if (sz == 4)
      std::memcpy(q, &v[e], 4);
    else {
      uint16_t h = (uint16_t)(v[e / 2] >> (16 * (e % 2)));
      std::memcpy(q, &h, 2);
    }
  }
  __syncwarp(0xffffffffu, file, line);
}
// ty: for f16 "f16.f32"-like pairs (d, c); for others (d, a, b, c)
inline void wmma_mma_(const char* sh, const char* ty, const uint32_t* a, int na, const uint32_t* b, int nb,
                      const uint32_t* c, uint32_t* d, int nd, stitch_emu::Site s) {
  WmmaShape w = wmma_shape(sh);
  const char *at = strstr(ty, "bf16")   ? "bf16"
                   : strstr(ty, "tf32") ? "tf32"
                                        : "f16",
             *ct = !strncmp(ty, "f16", 3) ? "f16" : "f32";
  uint32_t A[32 * 8], B[32 * 8];
  gather_(a, A, 4 * na, s);
  gather_(b, B, 4 * nb, s);
  float fa[16 * 32], fb[16 * 32];
  int l = (int)stitch_emu::lane_id();
  for (int i = 0; i < w.m * w.k; i++) fa[i] = wmma_num(at, A + i % 32 * na, i / 32);
  for (int i = 0; i < w.k * w.n; i++) fb[i] = wmma_num(at, B + i % 32 * nb, i / 32);
  for (int i = 0; i < nd; i++) d[i] = 0;
  for (int e = 0; e < w.m * w.n / 32; e++) {
    int i = e * 32 + l, r = i / w.n, cc = i % w.n;
    float x = wmma_num(ct, c, e);
    for (int k = 0; k < w.k; k++) x += fa[r * w.k + k] * fb[k * w.n + cc];
    if (ct[1] == '3')
      std::memcpy(&d[e], &x, 4);
    else
      d[e / 2] |= (uint32_t)stitch_emu::f2h(x) << (16 * (e % 2));
  }
}
#define wmma_load(w, col, p, ld, sh, ty, n, v, l) wmma_load_(w, col, p, ld, sh, ty, n, v, FILE_, l)
#define wmma_store(col, p, ld, sh, ty, n, v, l) wmma_store_(col, p, ld, sh, ty, n, v, FILE_, l)
#define wmma_mma(sh, ty, a, na, b, nb, c, nc, d, nd, l) wmma_mma_(sh, ty, a, na, b, nb, c, d, nd, {FILE_, l})
