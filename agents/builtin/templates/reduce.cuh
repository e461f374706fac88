// Reductions: a state, how an element joins it, how two states merge, and what comes out.
template <typename T>
struct Limits {
  __device__ static T lowest() { return -INFINITY; }
  __device__ static T highest() { return INFINITY; }
};
template <>
struct Limits<long long> {
  __device__ static long long lowest() { return -9223372036854775807ll - 1; }
  __device__ static long long highest() { return 9223372036854775807ll; }
};

// Signed overflow is undefined in C++ and wraps in PyTorch.
__device__ __forceinline__ float plus(float a, float b) { return a + b; }
__device__ __forceinline__ float times(float a, float b) { return a * b; }
__device__ __forceinline__ long long plus(long long a, long long b) {
  return (long long)((unsigned long long)a + (unsigned long long)b);
}
__device__ __forceinline__ long long times(long long a, long long b) {
  return (long long)((unsigned long long)a * (unsigned long long)b);
}

template <typename T>
struct Sum {
  using State = T;
  __device__ static T start() { return T(0); }
  __device__ static T merge(T a, T b) { return plus(a, b); }
};
template <typename T>
struct Product {
  using State = T;
  __device__ static T start() { return T(1); }
  __device__ static T merge(T a, T b) { return times(a, b); }
};
template <typename T>
struct Highest {
  using State = T;
  __device__ static T start() { return Limits<T>::lowest(); }
  __device__ static T merge(T a, T b) { return pick_max(a, b); }
};
template <typename T>
struct Lowest {
  using State = T;
  __device__ static T start() { return Limits<T>::highest(); }
  __device__ static T merge(T a, T b) { return pick_min(a, b); }
};
template <typename T>
struct Any {
  using State = int;
  __device__ static int start() { return 0; }
  __device__ static int merge(int a, int b) { return a | b; }
};
template <typename T>
struct All {
  using State = int;
  __device__ static int start() { return 1; }
  __device__ static int merge(int a, int b) { return a & b; }
};

// A value and its place in the row; twice the value, so that no byte of the state is undefined.
template <typename T>
struct Placed {
  long long place;
  T value, again;
};

// NaN wins over numbers; of equals, the first in the row wins.
template <typename T, bool HIGHEST>
struct Extreme {
  using State = Placed<T>;
  __device__ static State start() {
    const T worst = HIGHEST ? Limits<T>::lowest() : Limits<T>::highest();
    return {Limits<long long>::highest(), worst, worst};
  }
  __device__ static State merge(State a, State b) {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan ? a : b;
    if (a_nan || a.value == b.value) return a.place < b.place ? a : b;
    return (a.value > b.value) == HIGHEST ? a : b;
  }
};
template <typename T>
using HighestPlace = Extreme<T, true>;
template <typename T>
using LowestPlace = Extreme<T, false>;

// Mean and squares about it of `count` values, by Chan, Golub and LeVeque: as stable as two passes.
template <typename T>
struct Moments {
  struct State {
    T mean, squares, count;
  };
  __device__ static State start() { return {T(0), T(0), T(0)}; }
  __device__ static State merge(State a, State b) {
    const T count = a.count + b.count, apart = b.mean - a.mean;
    const T weight = b.count == T(0) ? T(0) : __fdividef(b.count, count);
    return {a.mean + apart * weight, a.squares + b.squares + apart * apart * weight * a.count, count};
  }
};

// The maximum, and the sum of exponentials of values less the maximum: those so far shrink as it grows.
template <typename T>
struct Exponentials {
  struct State {
    T top, total;
  };
  __device__ static State start() { return {Limits<T>::lowest(), T(0)}; }
  __device__ static State merge(State a, State b) {
    const T top = pick_max(a.top, b.top);
    return {top, shrunk(a, top) + shrunk(b, top)};
  }
  __device__ static T shrunk(State s, T top) { return s.top == top ? s.total : s.total * expf(s.top - top); }
};

template <typename T>
__device__ __forceinline__ void element(T& state, T value, long long) {
  state = value;
}
template <typename T>
__device__ __forceinline__ void element(Placed<T>& state, T value, long long place) {
  state = {place, value, value};
}
__device__ __forceinline__ void element(int& state, bool value, long long) { state = value; }
__device__ __forceinline__ void element(Moments<float>::State& state, float value, long long) {
  state = {value, 0.0f, 1.0f};
}
__device__ __forceinline__ void element(Exponentials<float>::State& state, float value, long long) {
  state = {value, value == -INFINITY ? 0.0f : value - value + 1.0f};  // 1, or NaN where PyTorch has NaN
}
template <typename T>
__device__ __forceinline__ T result(T state) {
  return state;
}
template <typename T>
__device__ __forceinline__ long long result(Placed<T> state) {
  return state.place;
}

// `value`, at `place` in the row, joins the state of a reduction.
template <typename Op, typename T>
__device__ __forceinline__ void take(typename Op::State& state, T value, long long place) {
  typename Op::State one;
  element(one, value, place);
  state = Op::merge(state, one);
}
