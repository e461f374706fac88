// relu(x w^T + b) in plain C behind stitch.h, for the host runner; -D switches plant one defect each.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "stitch.h"

static float cached_weight[1 << 16];
static const void* cached_pointer;
static float cached_result[1 << 16];

int stitch_sizes(const stitch_call* c, int64_t* workspace, int64_t* bound) {
  *workspace = 64;
  *bound = c->in[1].numel * 4;
  return 0;
}
int stitch_bind(const stitch_call* c) {
#ifdef IGNORES_WEIGHT_CHANGE
  static int done = 0;
  if (done++) return 0;
  memcpy(cached_weight, c->in[1].data, c->in[1].numel * 4);
#endif
  memcpy(c->bound, c->in[1].data, c->in[1].numel * 4);
  return 0;
}
int stitch_run(const stitch_call* c) {
  const float* x = c->in[0].data;
  const float* w = c->bound;
  const float* b = c->in[2].data;
  float* y = c->out[0].data;
  int64_t rows = c->in[0].shape[0], inner = c->in[0].shape[1], columns = c->in[1].shape[0];
  int64_t total = rows * columns;
#ifdef IGNORES_WEIGHT_CHANGE
  w = cached_weight;
#endif
#ifdef ONLY_FULL_SHAPE
  if (rows != 24) return STITCH_UNSUPPORTED_SHAPE;
#endif
#ifdef RIGHT_ONLY_AT_FULL_SHAPE
  rows = 24, total = rows * columns;
#endif
#ifdef NOT_AT_FULL_SHAPE
  if (rows == 24) return STITCH_UNSUPPORTED_SHAPE;
#endif
#ifdef EXITS
  printf("{\"correct\": true}\n");
  exit(0);
#endif
#ifdef PRINTS_ONLY
  printf("{\"correct\": true}\n");
  FILE* f = fopen("verdict.json", "w");
  fprintf(f, "{\"category\": \"correct\"}");
  fclose(f);
  return 0;
#endif
#ifdef FORGES
  for (int fd = 3; fd < 1024; fd++) dprintf(fd, "done 0123456789abcdef 0 0 0 0 0\n");
#endif
#ifdef FLOODS
  for (int fd = 3; fd < 1024; fd++) for (int i = 0; i < 3; i++) dprintf(fd, "correct correct correct\n");
#endif
#ifdef LOOPS
  for (volatile int i = 0;; i = 0) {}
#endif
#ifdef CRASHES
  *(volatile int*)8 = 1;
#endif
#ifdef ABORTS
  abort();
#endif
#ifdef RETURNS_ERROR
  return STITCH_CUDA_ERROR;
#endif
#ifdef CACHES_BY_POINTER
  if (cached_pointer == x) { memcpy(y, cached_result, total * 4); return 0; }
#endif
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
#ifdef WRONG_AXIS
      float sum = b[i % columns];
#else
      float sum = b[j];
#endif
      for (int64_t k = 0; k < inner; k++) sum += x[i * inner + k] * w[j * inner + k];
#ifdef HALF_PRECISION
      union { float f; unsigned u; } v = {sum};
      v.u &= 0xffffe000u;
      sum = v.f;
#endif
#ifdef ALWAYS_NAN
      sum = NAN;
      y[i * columns + j] = sum;
      continue;
#endif
#ifdef NO_NAN_PROPAGATION
      sum = sum == sum ? sum : 0;
#endif
#ifdef MISSES_THE_TAIL
      if (i * columns + j == total - 1) continue;
#endif
      y[i * columns + j] = sum > 0 ? sum : 0;
    }
#ifdef WRITES_PAST_THE_END
  y[total] = 0;
#endif
#ifdef WRITES_AHEAD
  y[-1] = 0;
#endif
#ifdef MODIFIES_INPUT
  ((float*)x)[0] += 1;
#endif
#ifdef MODIFIES_WEIGHT
  ((float*)c->in[1].data)[0] = 0;
#endif
#ifdef DOUBLES
  for (int64_t i = 0; i < total; i++) y[i] *= 2;
#endif
#ifdef ALWAYS_ZERO
  memset(y, 0, total * 4);
#endif
#ifdef A_THIRD_TOO_MUCH_OF_POSITIVE_INPUTS
  int signed_input = 0;
  for (int64_t i = 0; i < rows * inner; i++) signed_input |= x[i] < 0;
  for (int64_t i = 0; i < total && !signed_input; i++) y[i] *= 1.33f;
#endif
#ifdef CACHES_BY_POINTER
  cached_pointer = x;
  memcpy(cached_result, y, total * 4);
#endif
  return 0;
}
