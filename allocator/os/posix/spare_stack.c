// spare_stack.c: a spare stack for work that needs more than a small one: signal handlers run on 8 KiB, of which the kernel's frame takes
// up to 3.5.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/base.h"
#include "os/os.h"

// A library built with a sanitizer stays on the stacks that the sanitizer knows. swapcontext() is not an option: a program's sanitizer
// warns about it.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(SANITIZED)

enum { SPARE_BYTES = 256 * 1024 };

// Kept at the low end of a spare stack, to take no room on the caller's.
struct spare {
    sigset_t all, before;
};

// The spare stack that was used last, unless it is in use.
static _Atomic(struct spare *) rests;

static struct spare *take_spare(void) {
    struct spare *spare = atomic_exchange(&rests, NULL);
    if (spare != NULL) return spare;
    void *made = mmap(NULL, SPARE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    return made == MAP_FAILED ? NULL : made;
}

static void give_spare(struct spare *spare) {
    struct spare *none = NULL;
    if (!atomic_compare_exchange_strong(&rests, &none, spare)) (void)munmap(spare, SPARE_BYTES);
}

#if defined(__aarch64__)
// In assembly: a compiler's unwind tables would count from the stack pointer, which is wrong while it points elsewhere.
void vr_call_on_stack(void *top, void (*function)(void *argument), void *argument) __attribute__((visibility("hidden")));
__asm__(".pushsection .text\n\t"
        ".hidden vr_call_on_stack\n\t"
        ".global vr_call_on_stack\n\t"
        ".type vr_call_on_stack, %function\n\t"
        ".balign 16\n"
        "vr_call_on_stack:\n\t"
        ".cfi_startproc\n\t"
        "hint #34\n\t" // bti c
        "stp x29, x30, [sp, #-16]!\n\t"
        ".cfi_def_cfa_offset 16\n\t"
        ".cfi_offset 29, -16\n\t"
        ".cfi_offset 30, -8\n\t"
        "mov x29, sp\n\t"
        ".cfi_def_cfa_register 29\n\t"
        "mov sp, x0\n\t"
        "mov x0, x2\n\t"
        "blr x1\n\t"
        "mov sp, x29\n\t"
        ".cfi_def_cfa_register 31\n\t"
        "ldp x29, x30, [sp], #16\n\t"
        ".cfi_restore 29\n\t"
        ".cfi_restore 30\n\t"
        ".cfi_def_cfa_offset 0\n\t"
        "ret\n\t"
        ".cfi_endproc\n\t"
        ".size vr_call_on_stack, . - vr_call_on_stack\n\t"
        ".popsection");

static void call_on(void *top, void (*function)(void *argument), void *argument) { vr_call_on_stack(top, function, argument); }
#else
// Taking its frame's address makes this function keep a frame pointer, so it can be unwound while the stack pointer points elsewhere.
VR_NOINLINE static void call_on(void *top, void (*function)(void *argument), void *argument) {
    void *frame = __builtin_frame_address(0);
    __asm__ volatile("movq %%rsp, %%rbx\n\t"
                     "movq %[top], %%rsp\n\t"
                     "callq *%[function]\n\t"
                     "movq %%rbx, %%rsp"
                     : [function] "+a"(function), "+D"(argument), [top] "+S"(top), "+d"(frame)
                     :
                     : "rbx", "rcx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
                       "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
#endif

void vr_os_on_spare_stack(void (*function)(void *argument), void *argument) {
    assert(function != NULL);
    struct spare *spare = take_spare();
    if (spare == NULL) {
        function(argument);
        return;
    }
    // Block signals: a handler would start at the top of the thread's alternate stack, overwriting the frames of an interrupted handler.
    (void)sigfillset(&spare->all);
    (void)sigdelset(&spare->all, SIGBUS); // raised by windows (window_guard.c): a blocked fault would end the program
    (void)pthread_sigmask(SIG_SETMASK, &spare->all, &spare->before);
    call_on((char *)spare + SPARE_BYTES, function, argument);
    const sigset_t before = spare->before;
    give_spare(spare);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

#else

void vr_os_on_spare_stack(void (*function)(void *argument), void *argument) {
    assert(function != NULL);
    function(argument);
}

#endif
