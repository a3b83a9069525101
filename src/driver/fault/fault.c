// fault.c: a driver around another one that fails a chosen call without making it.
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
    enum call call;            // which calls count
    vr_cu_result result;       // what the failed one returns
    atomic_uint_fast64_t left; // calls until then; 0: no fault is set
    atomic_uint_fast64_t failed;
};

// Is this the call to fail? Counts it. Any number of threads: exactly one of them gets true.
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

// clang-format off
#define WITH_SELF(...) (struct vram_driver *self, __VA_ARGS__)
#define WITH_INNER(...) (fault->inner, __VA_ARGS__)
#define X(member, symbol, exported, version, parameters, arguments)              \
    static vr_cu_result call_##member WITH_SELF parameters {                     \
        struct fault_driver *fault = (struct fault_driver *)(void *)self;        \
        if (is_due(fault, CALL_##member)) return fault->result;                  \
        return fault->inner->calls->member WITH_INNER arguments;                 \
    }
#include "driver/calls.def"
#undef X

static const struct vr_driver_calls calls = {
#define X(member, symbol, exported, version, parameters, arguments) call_##member,
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

static void destroy(struct vram_driver *driver) { free(driver); }

enum vram_status vram_driver_fault(struct vram_driver *inner, struct vram_driver **driver) {
    if (inner == NULL || driver == NULL) return VRAM_INVALID_ARGUMENT;
    struct fault_driver *fault = calloc(1, sizeof *fault);
    if (fault == NULL) return VRAM_NO_HOST_MEMORY;
    fault->head = (struct vram_driver){&calls, destroy, fault_kind};
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
    atomic_store_explicit(&fault->left, nth, memory_order_relaxed);
    return VRAM_OK;
}

uint64_t vram_driver_fault_count(const struct vram_driver *driver) {
    if (driver == NULL) return 0;
    const struct fault_driver *fault = fault_of((struct vram_driver *)(uintptr_t)driver);
    return fault == NULL ? 0 : atomic_load_explicit(&fault->failed, memory_order_relaxed);
}
