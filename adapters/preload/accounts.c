#define _POSIX_C_SOURCE 200809L
#include "accounts.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "live.h"
#include "vram/accounts.h"

#define CONTEXTS             64
#define FRESH_NS             200000000
#define UUID_SIZE            16
#define CAPTURE_MODE_RELAXED 2 // CU_STREAM_CAPTURE_MODE_RELAXED

// The cost of a context.
struct cost {
    uint64_t context; // 0: a free entry
    uint32_t device;
    uint64_t context_bytes; // or VRAM_NOT_KNOWN
    uint64_t module_bytes;  // VRAM_NOT_KNOWN until one module is measured
};

static struct {
    struct cost contexts[CONTEXTS];
    uint64_t at_start[PL_DEVICES]; // bytes in use plus one; 0: unknown
    uint64_t begun;                // measurements started
    unsigned under_way;
} costs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards the costs; no lock and no driver call below it

// The answer being handed out, with its device and time.
static struct {
    atomic_flag taken;
    struct vram_accounts accounts;
    struct vram_processes processes;
    struct vram_error error;
    bool asked, found;
    uint32_t device;
    int64_t asked_ns;
} answer = {.taken = ATOMIC_FLAG_INIT};

// --- measuring --------------------------------------------------------------------------------------------------------------

// Queries in relaxed mode, so that the query cannot invalidate a capture of the program.
static bool free_now(const struct pl_driver *driver, uint64_t *free_bytes, uint64_t *total_bytes) {
    int32_t mode = CAPTURE_MODE_RELAXED;
    if (driver->mem_get_info == NULL) return false;
    const bool exchanged = driver->exchange_capture_mode != NULL && driver->exchange_capture_mode(&mode) == PL_SUCCESS;
    const bool known = driver->mem_get_info(free_bytes, total_bytes) == PL_SUCCESS;
    if (exchanged) (void)driver->exchange_capture_mode(&mode);
    return known;
}

void pl_measure_begin(const struct pl_call *call, struct pl_measure *measure) {
    *measure = (struct pl_measure){.device = call->device, .births = pl_births()};
    uint64_t total_bytes;
    measure->known = call->has_device && free_now(call->slot->driver, &measure->free_bytes, &total_bytes);
    (void)pthread_mutex_lock(&lock);
    measure->known = measure->known && costs.under_way == 0;
    measure->number = ++costs.begun;
    costs.under_way++;
    (void)pthread_mutex_unlock(&lock);
}

// Returns whether nothing else in this process can have changed the free memory.
static bool was_alone_locked(const struct pl_measure *measure, uint64_t births) {
    costs.under_way--;
    return measure->known && costs.begun == measure->number && births == measure->births;
}

void pl_measure_drop(void) {
    (void)pthread_mutex_lock(&lock);
    costs.under_way--;
    (void)pthread_mutex_unlock(&lock);
}

static struct cost *cost_locked(uint64_t context) {
    for (size_t i = 0; i < CONTEXTS; i++)
        if (costs.contexts[i].context == context) return &costs.contexts[i];
    return NULL;
}

static bool is_first_locked(uint32_t device) {
    for (size_t i = 0; i < CONTEXTS; i++)
        if (costs.contexts[i].context != 0 && costs.contexts[i].device == device) return false;
    return costs.at_start[device] == 0;
}

// Queries in the context, and makes it current for that if necessary.
static bool free_in(const struct pl_driver *driver, uint64_t context, uint64_t *free_bytes, uint64_t *total_bytes) {
    uint64_t current = 0;
    if (driver->ctx_get_current != NULL && driver->ctx_get_current(&current) == PL_SUCCESS && current == context)
        return free_now(driver, free_bytes, total_bytes);
    if (driver->ctx_push_current == NULL || driver->ctx_pop_current == NULL || driver->ctx_push_current(context) != PL_SUCCESS)
        return false;
    const bool known = free_now(driver, free_bytes, total_bytes);
    (void)driver->ctx_pop_current(&current);
    return known;
}

void pl_measure_context(const struct pl_call *call, const struct pl_measure *measure, uint64_t context, uint32_t device) {
    uint64_t free_bytes = 0, total_bytes = 0;
    const bool known = context != 0 && free_in(call->slot->driver, context, &free_bytes, &total_bytes);
    const uint64_t births = pl_births();
    (void)pthread_mutex_lock(&lock);
    const bool alone = was_alone_locked(measure, births) && measure->device == device;
    struct cost *cost = context == 0 || device >= PL_DEVICES || cost_locked(context) != NULL ? NULL : cost_locked(0);
    if (cost != NULL) {
        if (known && is_first_locked(device) && free_bytes <= total_bytes) costs.at_start[device] = total_bytes - free_bytes + 1;
        *cost = (struct cost){context, device, VRAM_NOT_KNOWN, VRAM_NOT_KNOWN};
        if (known && alone && free_bytes <= measure->free_bytes) cost->context_bytes = measure->free_bytes - free_bytes;
    }
    (void)pthread_mutex_unlock(&lock);
}

void pl_measure_module(const struct pl_call *call, const struct pl_measure *measure, bool ended) {
    uint64_t free_bytes = 0, total_bytes = 0;
    const bool known = free_now(call->slot->driver, &free_bytes, &total_bytes);
    const uint64_t births = pl_births();
    (void)pthread_mutex_lock(&lock);
    const bool alone = was_alone_locked(measure, births);
    struct cost *cost = known && alone && call->context != 0 ? cost_locked(call->context) : NULL;
    if (cost == NULL && known && alone && call->context != 0) { // the context's creation was not seen
        cost = cost_locked(0);
        if (cost != NULL) *cost = (struct cost){call->context, call->device, VRAM_NOT_KNOWN, VRAM_NOT_KNOWN};
    }
    if (cost != NULL) {
        if (cost->module_bytes == VRAM_NOT_KNOWN) cost->module_bytes = 0;
        if (!ended && free_bytes < measure->free_bytes) cost->module_bytes += measure->free_bytes - free_bytes;
        const uint64_t back = ended && free_bytes > measure->free_bytes ? free_bytes - measure->free_bytes : 0;
        cost->module_bytes -= back < cost->module_bytes ? back : cost->module_bytes;
    }
    (void)pthread_mutex_unlock(&lock);
}

void pl_accounts_context_gone(uint64_t context) {
    (void)pthread_mutex_lock(&lock);
    struct cost *cost = context == 0 ? NULL : cost_locked(context);
    if (cost != NULL) *cost = (struct cost){0};
    (void)pthread_mutex_unlock(&lock);
}

// --- querying -----------------------------------------------------------------------------------------------------------------

// Adds the contexts' bytes only if each context was measured; of modules, adds the measured ones.
static void add_costs(uint32_t device, struct vram_accounts *accounts) {
    bool all = true;
    size_t count = 0;
    uint64_t context_bytes = 0;
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < CONTEXTS; i++) {
        const struct cost *cost = &costs.contexts[i];
        if (cost->context == 0 || cost->device != device) continue;
        count++;
        all = all && cost->context_bytes != VRAM_NOT_KNOWN;
        if (all) context_bytes += cost->context_bytes;
        if (cost->module_bytes == VRAM_NOT_KNOWN) continue;
        accounts->module_bytes = (accounts->module_bytes == VRAM_NOT_KNOWN ? 0 : accounts->module_bytes) + cost->module_bytes;
    }
    if (device < PL_DEVICES && costs.at_start[device] != 0) accounts->at_start_bytes = costs.at_start[device] - 1;
    (void)pthread_mutex_unlock(&lock);
    if (count != 0 && all) accounts->context_bytes = context_bytes;
}

static int64_t monotonic_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void ask_driver(const struct pl_driver *driver, uint32_t device) {
    unsigned char uuid[UUID_SIZE];
    char bus_id[32] = "";
    const int32_t ordinal = (int32_t)device;
    const bool has_uuid = (driver->device_get_uuid_v2 != NULL && driver->device_get_uuid_v2(uuid, ordinal) == PL_SUCCESS) ||
                          (driver->device_get_uuid != NULL && driver->device_get_uuid(uuid, ordinal) == PL_SUCCESS);
    const bool has_bus_id =
        driver->device_get_bus_id != NULL && driver->device_get_bus_id(bus_id, (int32_t)sizeof bus_id, ordinal) == PL_SUCCESS;
    answer.error = (struct vram_error){.message = "the driver does not report the device's identity"};
    answer.found = (has_uuid || has_bus_id) &&
                   vram_processes_find(has_uuid ? uuid : NULL, has_bus_id ? bus_id : NULL, &answer.processes, &answer.error) == VRAM_OK;
    answer.asked = true;
    answer.device = device;
    answer.asked_ns = monotonic_ns();
}

struct vram_accounts *pl_accounts_take(const struct pl_driver *driver, uint32_t device) {
    if (atomic_flag_test_and_set(&answer.taken)) return NULL;
    if (!answer.asked || answer.device != device || monotonic_ns() - answer.asked_ns > FRESH_NS) ask_driver(driver, device);
    answer.accounts = (struct vram_accounts){.device = device,
                                             .context_bytes = VRAM_NOT_KNOWN,
                                             .module_bytes = VRAM_NOT_KNOWN,
                                             .at_start_bytes = VRAM_NOT_KNOWN,
                                             .processes = answer.found ? &answer.processes : NULL,
                                             .why = answer.error.message};
    add_costs(device, &answer.accounts);
    return &answer.accounts;
}

void pl_accounts_give(void) { atomic_flag_clear(&answer.taken); }

void pl_accounts_forget(void) {
    const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER; // its owner is not in this process
    memcpy(&lock, &fresh, sizeof lock);
    memset(&costs, 0, sizeof costs);
    answer.asked = false;
    atomic_flag_clear(&answer.taken);
}
