// doors.c: one door per function of a driver. A door is an exported symbol, or one of a few trampolines returned instead of pointers. Each
// trampoline stands for one pointer of a driver, so that an old and a new binary interface, a per-thread variant, or a second copy of
// libcuda each reach their own target.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "notices.h"
#include "preload.h"
#include "real.h"

// Different pointers for one name: the exported symbol, the result of cuGetProcAddress() (which may differ), and the same in other
// namespaces. TRAMPOLINES(X) has one row per slot.
#define SLOTS             6
#define TRAMPOLINES(X, n) X(0, n) X(1, n) X(2, n) X(3, n) X(4, n) X(5, n)

// clang-format off
enum row {
#define X(handler, symbol, exported, version, per_thread, parameters, arguments) ROW_##exported,
#include "doors.def"
#undef X
    ROWS
};

static struct pl_slot slots[ROWS][SLOTS];
static _Atomic(const struct pl_slot *) global_slots[ROWS]; // of the exported symbols

static const struct pl_slot *find_global_slot(enum row row);
static inline const struct pl_slot *global_slot(enum row row) {
    const struct pl_slot *slot = atomic_load_explicit(&global_slots[row], memory_order_acquire);
    return __builtin_expect(slot != NULL, 1) ? slot : find_global_slot(row);
}

// Notes the program's own call, at which the recorded stack begins.
#define ENTERED_FROM(address, frame)                                                   \
    if (pl_depth == 0) pl_caller = (struct pl_caller){address, frame}
#define WITH_SLOT(...) slot, __VA_ARGS__
#define X(handler, symbol, exported, version, per_thread, parameters, arguments)       \
    int32_t exported parameters {                                                      \
        const struct pl_slot *slot = global_slot(ROW_##exported);                      \
        if (slot == NULL) return PL_NOT_INITIALIZED;                                   \
        ENTERED_FROM(__builtin_return_address(0), __builtin_frame_address(0));          \
        return pl_on_##handler(WITH_SLOT arguments);                                   \
    }
#include "doors.def"
#undef X

#define TRAMPOLINE(number, exported) exported##_##number
#define X_BODY(number, handler, exported, parameters, arguments)                       \
    static int32_t exported##_##number parameters {                                    \
        const struct pl_slot *slot = &slots[ROW_##exported][number];                   \
        ENTERED_FROM(__builtin_return_address(0), __builtin_frame_address(0));          \
        return pl_on_##handler(WITH_SLOT arguments);                                   \
    }
#define X(handler, symbol, exported, version, per_thread, parameters, arguments)       \
    X_BODY(0, handler, exported, parameters, arguments)                                \
    X_BODY(1, handler, exported, parameters, arguments)                                \
    X_BODY(2, handler, exported, parameters, arguments)                                \
    X_BODY(3, handler, exported, parameters, arguments)                                \
    X_BODY(4, handler, exported, parameters, arguments)                                \
    X_BODY(5, handler, exported, parameters, arguments)
#include "doors.def"
#undef X

static const struct {
    const char *symbol, *exported;
    int version;
    bool per_thread;
    pl_function *own;
    pl_function *trampolines[SLOTS];
} rows[ROWS] = {
#define NAME_OF(number, exported) (pl_function *)exported##_##number,
#define X(handler, symbol, exported, version, per_thread, parameters, arguments) \
    [ROW_##exported] = {#symbol, #exported, version, per_thread, (pl_function *)exported, {TRAMPOLINES(NAME_OF, exported)}},
#include "doors.def"
#undef X
};
// clang-format on

static enum row row_of(const char *exported) {
    if (exported[0] != 'c' || exported[1] != 'u') return ROWS;
    for (enum row row = 0; row < ROWS; row++)
        if (strcmp(rows[row].exported, exported) == 0) return row;
    return ROWS;
}

bool pl_is_door(const char *exported) { return row_of(exported) != ROWS; }

const char *pl_interface(const char *symbol, int version, uint64_t flags) {
    const bool wants_per_thread = (flags & 2) != 0; // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
    const char *best = NULL;
    int best_version = -1;
    bool best_per_thread = false;
    for (enum row row = 0; row < ROWS; row++) {
        if (strcmp(rows[row].symbol, symbol) != 0 || rows[row].version > version) continue;
        if (rows[row].per_thread && !wants_per_thread) continue;
        const bool better = rows[row].per_thread != best_per_thread ? rows[row].per_thread : rows[row].version > best_version;
        if (!better) continue;
        best = rows[row].exported;
        best_version = rows[row].version;
        best_per_thread = rows[row].per_thread;
    }
    return best;
}

static bool is_ours(enum row row, pl_function *entry) {
    if (entry == rows[row].own) return true;
    for (size_t i = 0; i < SLOTS; i++)
        if (entry == rows[row].trampolines[i]) return true;
    return false;
}

// Returns whether the library that contained the function has been unloaded.
static bool is_stale(pl_function *real) {
    void *address;
    memcpy(&address, &real, sizeof address);
    Dl_info info;
    return dladdr(address, &info) == 0;
}

// Puts `real` into the first slot that is empty or that contains `real` or `outdated`. Returns the slot; SLOTS if there is none.
static size_t take_slot(enum row row, pl_function *real, const struct pl_driver *driver, pl_function *outdated) {
    pl_doors_lock();
    size_t at = 0;
    while (at < SLOTS && slots[row][at].real != NULL && slots[row][at].real != real && slots[row][at].real != outdated) at++;
    if (at < SLOTS) slots[row][at] = (struct pl_slot){real, driver, rows[row].per_thread};
    pl_doors_unlock();
    return at;
}

static pl_function *function_in(enum row row, size_t at) {
    pl_doors_lock();
    pl_function *real = slots[row][at].real;
    pl_doors_unlock();
    return real;
}

// Queries the loader without our lock, as pl_driver_of() explains.
static size_t slot_for(enum row row, pl_function *real) {
    pl_depth++;
    const struct pl_driver *driver = pl_driver_of(real);
    size_t at = take_slot(row, real, driver, NULL);
    for (size_t i = 0; at == SLOTS && i < SLOTS; i++) {
        pl_function *other = function_in(row, i);
        if (is_stale(other)) at = take_slot(row, real, driver, other);
    }
    pl_depth--;
    if (at == SLOTS) pl_missed("too many copies of libcuda; not recorded:", rows[row].exported);
    return at;
}

pl_function *pl_wrap(const char *exported, pl_function *real) {
    const enum row row = row_of(exported);
    if (row == ROWS || real == NULL || is_ours(row, real)) return real;
    const size_t at = slot_for(row, real);
    return at == SLOTS ? real : rows[row].trampolines[at];
}

// The exported symbols represent the copy that the program would be linked with.
static const struct pl_slot *find_global_slot(enum row row) {
    pl_function *real = pl_next(rows[row].exported);
    if (real == NULL || is_ours(row, real)) return NULL;
    const size_t at = slot_for(row, real);
    if (at == SLOTS) return NULL;
    const struct pl_slot *slot = &slots[row][at];
    atomic_store_explicit(&global_slots[row], slot, memory_order_release);
    return slot;
}
