// One product of `batches` matrices; space holds the batch, row and column dimensions of the result.
struct Problem {
  int64_t m, n, k;       // result rows and columns, and the length of the sums
  int64_t a_k, b_k;      // strides along the sum
  int64_t tiles_m, tiles_n, tiles;
  int batch_dims, row_dims;
};

// The tile's place: GROUP rows of tiles at a time, so that neighbouring blocks share operands in L2.
struct Tile {
  int64_t batch, m, n;
};
__device__ __forceinline__ Tile tile_at(const Problem& p, int64_t index) {
  const int64_t of_batch = p.tiles_m * p.tiles_n;
  const int64_t inside = index % of_batch, group = inside / (GROUP * p.tiles_n);
  const int64_t left = p.tiles_m - group * GROUP, height = left < GROUP ? left : GROUP;
  const int64_t within = inside - group * GROUP * p.tiles_n;
  return {index / of_batch, (group * GROUP + within % height) * BLOCK_M, within / height * BLOCK_N};
}

// Threads are 16 x 16; each computes THREAD_M x THREAD_N results, in runs of up to four neighbours.
constexpr int THREADS = 256;
constexpr int THREAD_M = BLOCK_M / 16, THREAD_N = BLOCK_N / 16;
constexpr int A_ITEMS = BLOCK_M * BLOCK_K / THREADS, B_ITEMS = BLOCK_N * BLOCK_K / THREADS;
constexpr int PAD = 4;  // keeps 16-byte alignment and spreads columns over the banks

template <int PER_THREAD>
__device__ __forceinline__ int place_of(int thread, int i) {
  constexpr int RUN = PER_THREAD < 4 ? PER_THREAD : 4;
  return i / RUN * (16 * RUN) + thread * RUN + i % RUN;
}

// This thread's share of one row of a tile, from shared memory.
template <int PER_THREAD>
__device__ __forceinline__ void read_run(float (&to)[PER_THREAD], const float* row, int thread) {
  if constexpr (PER_THREAD % 4 == 0) {
#pragma unroll
    for (int i = 0; i < PER_THREAD; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(row + place_of<PER_THREAD>(thread, i));
      to[i] = four.x, to[i + 1] = four.y, to[i + 2] = four.z, to[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < PER_THREAD; ++i) to[i] = row[place_of<PER_THREAD>(thread, i)];
  }
}

// Element `item` of a tile that is `size` wide along m or n: neighbouring threads take neighbouring
// addresses, whichever of the two directions is contiguous.
struct Spot {
  int k, x;
};
__device__ __forceinline__ Spot spot(int item, int size, bool along_k) {
  return along_k ? Spot{item % BLOCK_K, item / BLOCK_K} : Spot{item / size, item % size};
}
