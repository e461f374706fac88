"""The product of two tiles in shared memory, the next two in flight: what tiled kernels have in common."""

_PIPELINE = """\
    float sum[THREAD_M][THREAD_N] = {};
    fetch(0);
    keep(0);
    __syncthreads();
    int buffer = 0;
    for (int64_t k0 = 0; k0 < p.k; k0 += BLOCK_K) {
      const bool more = k0 + BLOCK_K < p.k;
      if (more) fetch(@K0@ + BLOCK_K);  // in flight while this tile is multiplied
#pragma unroll
      for (int k = 0; k < BLOCK_K; ++k) {
        float @ROWS@_part[THREAD_M], @COLUMNS@_part[THREAD_N];
        read_run(@ROWS@_part, @ROWS@_tile[buffer][k], ty);
        read_run(@COLUMNS@_part, @COLUMNS@_tile[buffer][k], tx);
#pragma unroll
        for (int i = 0; i < THREAD_M; ++i) {
#pragma unroll
          for (int j = 0; j < THREAD_N; ++j) sum[i][j] += @ROWS@_part[i] * @COLUMNS@_part[j];
        }
      }
      if (more) {
        keep(buffer ^ 1);
        __syncthreads();
      }
      buffer ^= 1;
    }
"""


def pipeline(rows: str, columns: str, k0: str = "k0") -> str:
    """C++ that leaves in ``sum`` what a thread computes of a tile.

    It calls ``fetch``, which reads the tiles of a depth into registers, and ``keep``, which writes them into
    one of two buffers.

    Args:
        rows: prefix of the operand's names that gives the result its rows: ``a`` of ``a_tile``.
        columns: that of the other one.
        k0: the depth as `fetch` takes it.
    """
    return _PIPELINE.replace("@K0@", k0).replace("@ROWS@", rows).replace("@COLUMNS@", columns)
