// runtime.cpp - block scheduler (fibers), memory, streams/events/graphs and diagnostics of the emulator.
// Compiled once for each mode (fast, check) and cached; never instrumented itself.
#include "../include/cuda_runtime.h"
#include "../include/cublas_v2.h"
#include "stitch.h"
#include "fiber.h"
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdarg>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>
#include <fcntl.h>
#include <sched.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

__thread uint3 threadIdx;
__thread uint3 blockIdx;
__thread dim3 blockDim;
__thread dim3 gridDim;

#include "confine.inc"

namespace stitch_emu {
__thread char* t_smem;

#include "report.inc"
#include "memory.inc"
#include "scheduler.inc"
#include "launch.inc"
#include "collectives.inc"
#include "streams.inc"
#include "api.inc"
#include "check.inc"
#include "gemm.inc"
#include "undefined.inc"
#include "runner.inc"
#ifdef STITCH_PTX
#include "cudart_c.inc"
#endif
