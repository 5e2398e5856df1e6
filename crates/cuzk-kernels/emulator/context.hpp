// Stacks that take turns on one OS thread.
//
// What a call may change is saved by the compiler around it, so a switch saves the other registers and changes the stack
// pointer. `swapcontext` does that too, with two system calls for the signal mask each time, which is most of the time of
// small launches; it serves where there is no switch of our own.
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__))
#define CUZK_OWN_SWITCH 1
#else
#include <ucontext.h>
#endif

namespace cuzk_emulator {

// A stack that does not run: where to go on.
struct Context {
#ifdef CUZK_OWN_SWITCH
    void* stack_pointer = nullptr;
#else
    ucontext_t context{};
#endif
};

#ifdef CUZK_OWN_SWITCH

// Leaves the running stack in *from and goes on with `to`.
extern "C" void cuzk_emulator_switch(void** from, void* to);

#if defined(__x86_64__)
asm(R"(
    .text
    .balign 16
    .globl cuzk_emulator_switch
    .hidden cuzk_emulator_switch
    .type cuzk_emulator_switch, @function
cuzk_emulator_switch:
    endbr64
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size cuzk_emulator_switch, . - cuzk_emulator_switch
)");

// Six registers, where to return to, and the return address of a function that never returns.
inline void* first_frame(char* top, void (*entry)()) {
    uint64_t* frame = reinterpret_cast<uint64_t*>(top - 64);
    for (int i = 0; i < 8; ++i) {
        frame[i] = 0;
    }
    frame[6] = reinterpret_cast<uint64_t>(entry);
    return frame;
}
#else
asm(R"(
    .text
    .balign 16
    .globl cuzk_emulator_switch
    .hidden cuzk_emulator_switch
    .type cuzk_emulator_switch, %function
cuzk_emulator_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size cuzk_emulator_switch, . - cuzk_emulator_switch
)");

// Twenty registers, the link register with the entry among them.
inline void* first_frame(char* top, void (*entry)()) {
    uint64_t* frame = reinterpret_cast<uint64_t*>(top - 160);
    for (int i = 0; i < 20; ++i) {
        frame[i] = 0;
    }
    frame[11] = reinterpret_cast<uint64_t>(entry);
    return frame;
}
#endif

// `entry` begins on the stack at the first switch; it never returns. The stack's end is a multiple of 16.
inline void prepare(Context& context, void* stack, size_t bytes, void (*entry)()) {
    context.stack_pointer = first_frame(static_cast<char*>(stack) + bytes, entry);
}

inline void change(Context& from, Context& to) { cuzk_emulator_switch(&from.stack_pointer, to.stack_pointer); }

#else

inline void prepare(Context& context, void* stack, size_t bytes, void (*entry)()) {
    getcontext(&context.context);
    context.context.uc_stack.ss_sp = stack;
    context.context.uc_stack.ss_size = bytes;
    context.context.uc_link = nullptr;
    makecontext(&context.context, entry, 0);
}

inline void change(Context& from, Context& to) { swapcontext(&from.context, &to.context); }

#endif

}  // namespace cuzk_emulator
