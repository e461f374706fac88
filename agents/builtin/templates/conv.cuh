// A convolution as one matrix product for each group: m are its result channels, n the result's positions
// in all images, k its input channels times the taps of the kernel.  The columns are never stored.
struct Conv : Problem {
  int64_t x_image, x_channel, x_step[SPATIAL], x_extent[SPATIAL];  // strides and extents of the input
  int64_t w_out, w_in, w_step[SPATIAL];                            // strides of the weights
  int64_t extent[SPATIAL];                                         // positions of the result
  int64_t channels;                                                // result channels of all groups
  int64_t inside;                                                  // positions of one image
  int dims;                                                        // of the space, without the channels
};

// A tap: an input channel of the group, and where in the kernel.
struct Tap {
  int channel, at[SPATIAL];
};
__device__ __forceinline__ Tap tap_at(int k) {
  Tap tap;
#pragma unroll
  for (int d = SPATIAL - 1; d >= 0; --d) {
    tap.at[d] = k % kernel_of(d);
    k /= kernel_of(d);
  }
  tap.channel = k;
  return tap;
}

// A position of the result: the image's place in the input, and coordinates.
struct Position {
  int64_t image, at[SPATIAL];
};
__device__ __forceinline__ Position position_at(const Conv& p, int64_t index) {
  Position position;
#pragma unroll
  for (int d = SPATIAL - 1; d >= 0; --d) {
    position.at[d] = index % p.extent[d];
    index /= p.extent[d];
  }
  position.image = index * p.x_image;
  return position;
}

// Where along dimension d the tap `k` meets the input for the result's coordinate `o`; -1: nowhere.
__device__ __forceinline__ int64_t meets(const Conv& p, int d, int64_t o, int k) {
  int64_t at;
  if (TRANSPOSED) {
    const int64_t spread = o + padding_of(d) - k * dilation_of(d);
    if (spread < 0 || spread % stride_of(d) != 0) return -1;
    at = spread / stride_of(d);
  } else {
    at = o * stride_of(d) - padding_of(d) + k * dilation_of(d);
  }
  return at >= 0 && at < p.x_extent[d] ? at : -1;
}

// Offset of an input element inside its group, or -1 in the padding.
__device__ __forceinline__ int64_t input_at(const Conv& p, const Position& position, const Tap& tap) {
  int64_t offset = position.image + tap.channel * p.x_channel;
#pragma unroll
  for (int d = 0; d < SPATIAL; ++d) {
    const int64_t at = meets(p, d, position.at[d], tap.at[d]);
    if (at < 0) return -1;
    offset += at * p.x_step[d];
  }
  return offset;
}

__device__ __forceinline__ int64_t weight_at(const Conv& p, int64_t channel, const Tap& tap) {
  int64_t offset = channel * p.w_out + tap.channel * p.w_in;
#pragma unroll
  for (int d = 0; d < SPATIAL; ++d) offset += tap.at[d] * p.w_step[d];
  return offset;
}

// A group's place in input and weights: input channels of a group, and what one group's weights span.
struct Group {
  int64_t x, w;
};
__device__ __forceinline__ Group group_at(const Conv& p, int64_t group) {
  const int64_t inputs = p.k / TAPS;
  return {group * inputs * p.x_channel, group * (TRANSPOSED ? inputs * p.w_in : p.m * p.w_out)};
}

// Extents of the result along the dimensions that the kernel slides along; false: nothing is left.
static bool slide(Space& s, const stitch_tensor& x) {
  for (int d = 0; d < SPATIAL; ++d) {
    const int64_t extent = x.shape[x.ndim - SPATIAL + d];
    const int64_t reach = dilation_of(d) * (kernel_of(d) - 1) + 1, padding = padding_of(d) + padding_behind(d);
    const int64_t result = TRANSPOSED ? (extent - 1) * stride_of(d) - padding + reach + output_padding_of(d)
                                      : (extent + padding - reach) / stride_of(d) + 1;
    if (result < 0 || (!TRANSPOSED && extent + padding < reach)) return false;
    s.extent[RANK - SPATIAL + d] = result;
  }
  return true;
}

// Sizes of the convolution; false: input, weights and constants do not fit each other.
static bool shape_conv(Conv& p, Space& s, const stitch_tensor& x, const stitch_tensor& w) {
  const int outer = TRANSPOSED ? 1 : 0;  // the weights' dimension of result channels
  for (int d = 0; d < SPATIAL; ++d) {
    if (w.shape[2 + d] != kernel_of(d)) return false;
    p.w_step[d] = w.strides[2 + d];
    p.x_step[d] = x.strides[x.ndim - SPATIAL + d];
    p.x_extent[d] = x.shape[x.ndim - SPATIAL + d];
  }
  const int64_t inputs = w.shape[1 - outer] / (TRANSPOSED ? GROUPS : 1);
  if (!slide(s, x) || x.shape[CHANNEL] != inputs * GROUPS || inputs * TAPS > 2147483647) return false;
  p.channels = w.shape[outer] * (TRANSPOSED ? GROUPS : 1);
  p.m = p.channels / GROUPS;
  p.k = inputs * TAPS;
  p.w_out = w.strides[outer], p.w_in = w.strides[1 - outer];
  p.x_channel = x.strides[CHANNEL], p.x_image = CHANNEL > 0 ? x.strides[0] : 0;
  s.extent[CHANNEL] = p.channels;
  if (CHANNEL > 0) s.extent[0] = x.shape[0];
  for (int d = 0; d < SPATIAL; ++d) p.extent[d] = s.extent[RANK - SPATIAL + d];
  p.n = 1;
  for (int d = 0; d < RANK; ++d) p.n *= d == CHANNEL ? 1 : s.extent[d];
  return p.channels % GROUPS == 0;
}
