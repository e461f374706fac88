// How rows are cut: `count` parts of `size` elements, the last one shorter.
struct Parts {
  int count;
  int64_t size;
};

// Enough parts for BLOCKS blocks in all, none shorter than two steps of its block.
[[maybe_unused]] static Parts parts_of(const Rows& r) {
  const int64_t blocks = (r.rows + ROWS - 1) / ROWS, step = LANES * PACK * 2;
  const int64_t wanted = blocks ? (BLOCKS + blocks - 1) / blocks : 1, most = (r.length + step - 1) / step;
  int64_t count = wanted < most ? wanted : most;
  count = count < 1 ? 1 : count < PARTS ? count : PARTS;
  const int64_t size = ((r.length + count - 1) / count + step - 1) / step * step;
  return {size ? int((r.length + size - 1) / size) : 1, size};
}

// Where `count` states lie in the workspace, which grows by them; null while only sizes are asked for.
template <typename State>
static State* room(void* memory, int64_t& bytes, int64_t count, State*) {
  State* place = memory ? reinterpret_cast<State*>(static_cast<char*>(memory) + bytes) : nullptr;
  bytes += (count * int64_t(sizeof(State)) + 255) / 256 * 256;
  return place;
}
