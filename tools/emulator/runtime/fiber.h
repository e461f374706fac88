// fiber.h - a minimal symmetric context switch.  x86-64 and aarch64 assembly; ucontext elsewhere.
#pragma once
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>

namespace stitch_emu {
struct Context {
  void* sp = nullptr;
  char* stack = nullptr;
  size_t size = 0;
  void* fake = nullptr;
};

#if defined(__x86_64__)
extern "C" void stitch_switch(void** save_sp, void* load_sp);
asm(R"(
.text
.globl stitch_switch
.type stitch_switch,@function
stitch_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
.size stitch_switch,.-stitch_switch
)");
inline void context_init(Context& c, void (*entry)()) {
  auto** sp = reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(c.stack + c.size) & ~uintptr_t(15)) - 8);
  *sp = nullptr;  // fake return address of `entry`: on entry rsp % 16 == 8, as the ABI wants
  *--sp = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; i++) *--sp = nullptr;
  c.sp = sp;
}
#elif defined(__aarch64__)
extern "C" void stitch_switch(void** save_sp, void* load_sp);
asm(R"(
.text
.globl stitch_switch
stitch_switch:
  sub sp, sp, #176
  stp x19, x20, [sp, #0]; stp x21, x22, [sp, #16]; stp x23, x24, [sp, #32]; stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]; stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]; stp d10, d11, [sp, #112]; stp d12, d13, [sp, #128]; stp d14, d15, [sp, #144]
  mov x9, sp; str x9, [x0]; mov sp, x1
  ldp x19, x20, [sp, #0]; ldp x21, x22, [sp, #16]; ldp x23, x24, [sp, #32]; ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]; ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]; ldp d10, d11, [sp, #112]; ldp d12, d13, [sp, #128]; ldp d14, d15, [sp, #144]
  add sp, sp, #176
  ret
)");
inline void context_init(Context& c, void (*entry)()) {
  auto** sp =
      reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(c.stack + c.size) & ~uintptr_t(15)) - 176);
  for (int i = 0; i < 22; i++) sp[i] = nullptr;
  sp[11] = reinterpret_cast<void*>(entry);  // x30
  c.sp = sp;
}
#else
#error "add a ucontext fallback for this architecture"
#endif

inline void context_switch(Context& from, Context& to) { stitch_switch(&from.sp, to.sp); }
}  // namespace stitch_emu
