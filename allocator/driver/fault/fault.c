// fault.c: wraps a driver and makes a chosen call fail without reaching it.
#include "driver/fault/fault.h"

#include <stdatomic.h>

#include "driver/driver.h"

enum call {
#define X(member, symbol, exported, version, parameters, arguments) CALL_##member,
#include "driver/calls.def"
#undef X
    CALL_COUNT,
    CALL_ANY = CALL_COUNT
};

struct fault_driver {
    struct vram_driver head;
    struct vram_driver *inner; // borrowed
    enum call call;            // the calls that count
    vr_cu_result result;       // result of the failed call
    atomic_uint_fast64_t left; // calls until the fault; 0: no fault set
    atomic_uint_fast64_t failed;
    uint64_t then; // calls, of any function, from the first fault to the second; 0: no second fault
    vr_cu_result then_result;
    uint32_t percent; // share of all calls that fail at random
    uint64_t random;
};

static vr_cu_result draw_result(struct fault_driver *fault) {
    static const vr_cu_result results[] = {VR_CU_OUT_OF_MEMORY, VR_CU_UNKNOWN, VR_CU_INVALID_VALUE, VR_CU_ILLEGAL_ADDRESS};
    const uint64_t drawn = vr_mix64(fault->random += 0x9e3779b97f4a7c15u);
    if (drawn % 100 >= fault->percent) return VR_CU_SUCCESS;
    atomic_fetch_add_explicit(&fault->failed, 1, memory_order_relaxed);
    return results[(drawn >> 32) % VR_COUNT_OF(results)];
}

// Counts the call and returns whether it must fail. Of any number of threads, exactly one gets true.
static bool is_due(struct fault_driver *fault, enum call call) {
    if (fault->call != CALL_ANY && fault->call != call) return false;
    uint_fast64_t left = atomic_load_explicit(&fault->left, memory_order_relaxed);
    do {
        if (left == 0) return false;
    } while (!atomic_compare_exchange_weak_explicit(&fault->left, &left, left - 1, memory_order_relaxed, memory_order_relaxed));
    if (left != 1) return false;
    atomic_fetch_add_explicit(&fault->failed, 1, memory_order_relaxed);
    return true;
}

// Returns the result with which the call must fail without being made; SUCCESS: it is made.
static vr_cu_result refusal_of(struct fault_driver *fault, enum call call) {
    if (!is_due(fault, call)) return fault->percent == 0 ? VR_CU_SUCCESS : draw_result(fault);
    const vr_cu_result result = fault->result;
    if (fault->then != 0) {
        fault->call = CALL_ANY;
        fault->result = fault->then_result;
        atomic_store_explicit(&fault->left, fault->then, memory_order_relaxed);
        fault->then = 0;
    }
    return result;
}

// clang-format off
#define WITH_SELF(...) (struct vram_driver *self, __VA_ARGS__)
#define WITH_INNER(...) (fault->inner, __VA_ARGS__)
#define X(member, symbol, exported, version, parameters, arguments)              \
    static vr_cu_result call_fault_##member WITH_SELF parameters {                     \
        struct fault_driver *fault = (struct fault_driver *)(void *)self;        \
        const vr_cu_result refused = refusal_of(fault, CALL_##member);              \
        if (refused != VR_CU_SUCCESS) return refused;                            \
        return fault->inner->calls->member WITH_INNER arguments;                 \
    }
#include "driver/calls.def"
#undef X

static const struct vr_driver_calls calls = {
#define X(member, symbol, exported, version, parameters, arguments) call_fault_##member,
#include "driver/calls.def"
#undef X
};

static const char *const names[CALL_COUNT] = {
#define X(member, symbol, exported, version, parameters, arguments) #symbol,
#include "driver/calls.def"
#undef X
};
// clang-format on

static const char fault_kind[] = "fault";

static struct fault_driver *fault_of(struct vram_driver *driver) {
    return driver != NULL && strcmp(driver->kind, fault_kind) == 0 ? (struct fault_driver *)(void *)driver : NULL;
}

static void destroy_fault_driver(struct vram_driver *driver) { free(driver); }

enum vram_status vram_driver_fault(struct vram_driver *inner, struct vram_driver **driver) {
    if (inner == NULL || driver == NULL) return VRAM_INVALID_ARGUMENT;
    struct fault_driver *fault = calloc(1, sizeof *fault);
    if (fault == NULL) return VRAM_NO_HOST_MEMORY;
    fault->head = (struct vram_driver){.calls = &calls, .destroy = destroy_fault_driver, .kind = fault_kind};
    fault->inner = inner;
    fault->call = CALL_ANY;
    atomic_init(&fault->left, 0);
    atomic_init(&fault->failed, 0);
    *driver = &fault->head;
    return VRAM_OK;
}

enum vram_status vram_driver_fault_set(struct vram_driver *driver, const char *call, uint64_t nth, int32_t result) {
    VR_REQUIRE(driver);
    struct fault_driver *fault = fault_of(driver);
    if (fault == NULL || (nth != 0 && result == VR_CU_SUCCESS)) return VRAM_INVALID_ARGUMENT;
    enum call selection = CALL_ANY;
    if (call != NULL) {
        selection = 0;
        while (selection < CALL_COUNT && strcmp(names[selection], call) != 0) selection++;
        if (selection == CALL_COUNT) return VRAM_INVALID_ARGUMENT;
    }
    fault->call = selection;
    fault->result = result;
    fault->then = 0;
    atomic_store_explicit(&fault->left, nth, memory_order_relaxed);
    return VRAM_OK;
}

void vr_fault_then(struct vram_driver *driver, uint64_t nth, int32_t result) {
    struct fault_driver *fault = fault_of(driver);
    assert(fault != NULL && result != VR_CU_SUCCESS);
    fault->then = nth;
    fault->then_result = result;
}

void vr_fault_random(struct vram_driver *driver, uint32_t percent, uint64_t seed) {
    struct fault_driver *fault = fault_of(driver);
    assert(fault != NULL && percent <= 100);
    fault->percent = percent;
    fault->random = seed;
}

uint64_t vram_driver_fault_count(const struct vram_driver *driver) {
    if (driver == NULL) return 0;
    const struct fault_driver *fault = fault_of((struct vram_driver *)(uintptr_t)driver);
    return fault == NULL ? 0 : atomic_load_explicit(&fault->failed, memory_order_relaxed);
}
