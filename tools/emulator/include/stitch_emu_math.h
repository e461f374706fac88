// stitch_emu_math.h - device maths and integer intrinsics, at full precision.
#pragma once
#include "stitch_emu_core.h"
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __powf(float a, float b) { return std::pow(a, b); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline void __sincosf(float x, float* s, float* c) {
  *s = std::sin(x);
  *c = std::cos(x);
}
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return 1.0f / std::sqrt(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __saturatef(float x) { return x < 0 ? 0.f : x > 1 ? 1.f : x == x ? x : 0.f; }
inline float normcdff(float x) { return 0.5f * std::erfc(-x * 0.70710678f); }
inline void sincospif(float x, float* s, float* c) {
  *s = std::sin(x * 3.14159265358979323846);
  *c = std::cos(x * 3.14159265358979323846);
}
inline float __int_as_float(int i) {
  float f;
  std::memcpy(&f, &i, 4);
  return f;
}
inline int __float_as_int(float f) {
  int i;
  std::memcpy(&i, &f, 4);
  return i;
}
inline float __uint_as_float(unsigned i) {
  float f;
  std::memcpy(&f, &i, 4);
  return f;
}
inline unsigned __float_as_uint(float f) {
  unsigned i;
  std::memcpy(&i, &f, 4);
  return i;
}
inline long long __double_as_longlong(double f) {
  long long i;
  std::memcpy(&i, &f, 8);
  return i;
}
inline double __longlong_as_double(long long i) {
  double f;
  std::memcpy(&f, &i, 8);
  return f;
}
inline int __float2int_rn(float x) { return (int)std::nearbyint(x); }
inline int __float2int_rz(float x) { return (int)x; }
inline int __float2int_rd(float x) { return (int)std::floor(x); }
inline int __float2int_ru(float x) { return (int)std::ceil(x); }
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }
inline float __double2float_rn(double x) { return (float)x; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= ((x >> i) & 1u) << (31 - i);
  return r;
}
inline int __mul24(int a, int b) { return a * b; }
inline unsigned __umul24(unsigned a, unsigned b) { return a * b; }
inline int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((((unsigned long long)hi) << 32 | lo) << (s & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)((((unsigned long long)hi) << 32 | lo) >> (s & 31));
}
inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((((unsigned long long)hi) << 32 | lo) << (s < 32 ? s : 32)) >> 32);
}
inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)((((unsigned long long)hi) << 32 | lo) >> (s < 32 ? s : 32));
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; i++) c += (int)(int8_t)(a >> (8 * i)) * (int)(int8_t)(b >> (8 * i));
  return c;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  unsigned long long v = (unsigned long long)y << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) r |= (unsigned)((v >> (8 * ((s >> (4 * i)) & 7))) & 255u) << (8 * i);
  return r;
}
template <class T>
inline __attribute__((always_inline)) T __ldg(const T* p) {
  return *p;
}
template <class T>
inline __attribute__((always_inline)) T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline __attribute__((always_inline)) T __ldca(const T* p) {
  return *p;
}
template <class T>
inline __attribute__((always_inline)) T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline __attribute__((always_inline)) void __stcs(T* p, T v) {
  *p = v;
}
template <class T>
inline __attribute__((always_inline)) void __stcg(T* p, T v) {
  *p = v;
}
template <class T>
inline __attribute__((always_inline)) void __stwt(T* p, T v) {
  *p = v;
}
inline long long clock64() { return (long long)stitch_emu::clock_now(); }
inline void __nanosleep(unsigned) { stitch_emu::yield_now(); }
inline void __trap() { stitch_emu::trap({__FILE__, __LINE__}, "__trap()"); }
inline size_t __cvta_generic_to_shared(const void* p) {
  return (size_t)((const char*)p - stitch_emu::t_smem);
}
inline bool __isShared(const void* p) { return (size_t)((const char*)p - stitch_emu::t_smem) < (1u << 20); }
#define STITCH_MINMAX(T)                           \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
STITCH_MINMAX(int)
STITCH_MINMAX(unsigned) STITCH_MINMAX(long) STITCH_MINMAX(unsigned long) STITCH_MINMAX(long long)
    STITCH_MINMAX(unsigned long long) inline unsigned min(unsigned a, int b) {
  return min(a, (unsigned)b);
}
inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
inline long min(long a, int b) { return min(a, (long)b); }
inline long min(int a, long b) { return min((long)a, b); }
inline long max(long a, int b) { return max(a, (long)b); }
inline long max(int a, long b) { return max((long)a, b); }
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
#undef STITCH_MINMAX
