// Dimension 1 of the result is dimensions 1 and 2 of the space: GROUPS groups, and channels inside one.
[[maybe_unused]] static void widen_groups(Space& s, const stitch_tensor& t) {
  for (int d = RANK - 1, j = t.ndim - 1; d >= 0 && j >= 0; --d, --j) {
    if (d == 2) --d;
    const int64_t extent = d == 1 ? t.shape[j] / GROUPS : t.shape[j];
    int64_t& here = s.extent[d == 1 ? 2 : d];
    if (d == 1 && t.shape[j] != 1) s.extent[1] = GROUPS;
    if (here == 1 && t.shape[j] != 1) here = extent;
  }
}

// Strides of an operand that broadcasts from the right, with dimension 1 cut in two.
[[maybe_unused]] static bool place_groups(Space& s, int operand, const stitch_tensor& t) {
  int j = t.ndim - 1;
  for (int d = RANK - 1; d >= 0; --d) {
    s.stride[operand][d] = 0;
    if (d == 2) {
      --d;
      s.stride[operand][1] = 0;
      if (j >= 0 && t.shape[j] != 1) {
        if (t.shape[j] != GROUPS * s.extent[2]) return false;
        s.stride[operand][2] = t.strides[j];
        s.stride[operand][1] = t.strides[j] * s.extent[2];
      }
    } else if (j >= 0 && t.shape[j] != 1) {
      if (t.shape[j] != s.extent[d]) return false;
      s.stride[operand][d] = t.strides[j];
    }
    --j;
  }
  return j < 0;
}

[[maybe_unused]] static bool place_group_channels(Space& s, int operand, const stitch_tensor& t) {
  for (int d = 0; d < RANK; ++d) s.stride[operand][d] = 0;
  s.stride[operand][1] = t.strides[0] * s.extent[2];
  s.stride[operand][2] = t.strides[0];
  return t.shape[0] == GROUPS * s.extent[2];
}
