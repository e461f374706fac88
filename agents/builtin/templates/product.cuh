// The product of `batches` matrices, as libraries are asked for it: row-major here, so transposed for them.
struct Product {
  int64_t extent[RANK], step[RANK];  // of the result, contiguous
  int64_t count, m, n, k, batches;
  int64_t a_ld, b_ld, a_batch, b_batch;
  const void *a, *b;
  cublasOperation_t a_op, b_op;
  cudaDataType type;
  int64_t size;  // bytes of an element
};

// Leading dimension and direction of a matrix with `rows` x `columns`; false: neither is contiguous.
static bool direction(int64_t row_step, int64_t column_step, int64_t rows, int64_t columns, int64_t& ld,
                      cublasOperation_t& op) {
  const bool by_row = column_step == 1 || columns <= 1, by_column = row_step == 1 || rows <= 1;
  if (by_row && (rows <= 1 || row_step >= columns)) {
    ld = rows <= 1 ? columns : row_step, op = CUBLAS_OP_N;
  } else if (by_column && (columns <= 1 || column_step >= rows)) {
    ld = columns <= 1 ? rows : column_step, op = CUBLAS_OP_T;
  } else {
    return false;
  }
  if (ld < 1) ld = 1;
  return true;
}

// The one stride of the dimensions first .. first + count - 1, or false.
static bool one_step(const stitch_tensor& t, int first, int count, int64_t& step) {
  step = 0;
  int64_t next = -1;
  for (int d = first + count - 1; d >= first; --d) {
    if (t.shape[d] == 1) continue;
    if (next < 0) step = t.strides[d];
    if (next >= 0 && t.strides[d] != next) return false;
    next = t.strides[d] * t.shape[d];
  }
  return true;
}

static bool shape_product(Product& p, const View& a, const View& rows, const View& b, const View& columns,
                          int batch_dims) {
  Space s = empty_space();
  widen(s, rows);
  widen(s, columns);
  for (int d = 0; d < RANK; ++d) p.extent[d] = s.extent[d];
  p.count = 1;
  for (int d = RANK - 1; d >= 0; --d) p.step[d] = p.count, p.count *= p.extent[d];
  p.m = points(s, batch_dims, RANK - 1 - batch_dims);
  p.n = s.extent[RANK - 1];
  p.k = a.shape[a.ndim - 1];
  p.batches = points(s, 0, batch_dims);
  p.a = a.data, p.b = b.data;
  for (int d = 0; d < batch_dims; ++d) {
    if (a.shape[d] != p.extent[d] || b.shape[d] != p.extent[d]) return false;  // a broadcast batch
  }
  const int64_t most = 2147483647;
  if (p.m > most || p.n > most || p.k > most || p.batches > most) return false;
  int64_t row_step;
  if (!one_step(a, batch_dims, a.ndim - 1 - batch_dims, row_step)) return false;
  if (!one_step(a, 0, batch_dims, p.a_batch) || !one_step(b, 0, batch_dims, p.b_batch)) return false;
  return direction(row_step, a.strides[a.ndim - 1], p.m, p.k, p.a_ld, p.a_op) &&
         direction(b.strides[b.ndim - 2], b.strides[b.ndim - 1], p.k, p.n, p.b_ld, p.b_op);
}

[[maybe_unused]] static stitch_tensor tensor_of(const Product& p, void* data) {
  stitch_tensor t = {};
  t.data = data, t.shape = p.extent, t.strides = p.step, t.ndim = RANK, t.numel = p.count;
  return t;
}

[[maybe_unused]] static bool is_contiguous(const stitch_tensor& t) {
  int64_t step = 1;
  for (int d = t.ndim - 1; d >= 0; --d) {
    if (t.shape[d] != 1 && t.strides[d] != step) return false;
    step *= t.shape[d];
  }
  return true;
}
