// clock.c: the time, and counters that are cheaper to read.
#define _GNU_SOURCE
#include <time.h>

#include "base/base.h"
#include "os/os.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdatomic.h>
#endif

uint64_t vr_os_monotonic_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t vr_os_epoch_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)
enum { NOT_ASKED, STEADY, NOT_STEADY };

// Returns whether the time stamp counter runs at one rate in every state of the processor: CPUID 8000_0007h, EDX bit 8.
static int ask_counter(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d >> 8 & 1) != 0 ? STEADY : NOT_STEADY;
}

static _Atomic int counter; // concurrent queries get the same answer

// A separate function, so that the common path needs no stack frame.
VR_NOINLINE static uint64_t ticks_otherwise(void) {
    int known = atomic_load_explicit(&counter, memory_order_relaxed);
    if (known == NOT_ASKED) {
        known = ask_counter();
        atomic_store_explicit(&counter, known, memory_order_relaxed);
    }
    return known == STEADY ? __builtin_ia32_rdtsc() : vr_os_monotonic_ns();
}

uint64_t vr_os_ticks(void) {
    if (VR_LIKELY(atomic_load_explicit(&counter, memory_order_relaxed) == STEADY)) return __builtin_ia32_rdtsc();
    return ticks_otherwise();
}
#elif defined(__aarch64__)
uint64_t vr_os_ticks(void) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#else
uint64_t vr_os_ticks(void) { return vr_os_monotonic_ns(); }
#endif

void vr_os_utc_text(char text[17]) {
    assert(text != NULL);
    const time_t now = time(NULL);
    struct tm parts = {0};
    (void)gmtime_r(&now, &parts);
    if (strftime(text, 17, "%Y%m%dT%H%M%SZ", &parts) == 0) text[0] = '\0';
}
