// calls.c: begins every watched call.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "config.h"
#include "live.h"
#include "session.h"

// A context keeps its device for life, so each thread queries it once for the context it uses.
static atomic_uint_fast64_t generation; // of contexts
static _Thread_local struct {
    const struct pl_driver *driver;
    uint64_t context, generation;
    uint32_t device;
} last __attribute__((tls_model("initial-exec")));

void pl_contexts_changed(void) { atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed); }

PL_SELDOM static bool ask_device(const struct pl_driver *driver, uint64_t context, uint64_t now, uint32_t *device) {
    int32_t found = 0;
    if (driver->ctx_get_device == NULL || driver->ctx_get_device(&found) != PL_SUCCESS || found < 0 || found >= PL_DEVICES) return false;
    last.driver = driver;
    last.context = context;
    last.generation = now;
    *device = last.device = (uint32_t)found;
    return true;
}

PL_INLINE bool device_of_current(const struct pl_driver *driver, uint64_t context, uint32_t *device) {
    const uint64_t now = atomic_load_explicit(&generation, memory_order_relaxed);
    if (context == 0 || last.driver != driver || last.context != context || last.generation != now)
        return ask_device(driver, context, now, device);
    *device = last.device;
    return true;
}

PL_INLINE bool open_call(const struct pl_slot *slot, struct pl_call *call) {
    if (pl_depth > 0 || !pl_config()->watches) return false;
    // Member by member, to skip what pl_charge() sets.
    call->slot = slot;
    call->caller = pl_caller;
    call->context = call->stream = call->pool = 0;
    call->has_device = call->refused = false;
    call->device = 0;
    call->saved_errno = errno;
    pl_depth++;
    // System calls within the call would be cancellation points while a lock is held.
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call->cancel_state);
    pl_process_setup();
    return true;
}

PL_INLINE void find_context(struct pl_call *call) {
    const struct pl_driver *driver = call->slot->driver;
    if (driver->ctx_get_current == NULL || driver->ctx_get_current(&call->context) != PL_SUCCESS) call->context = 0;
    call->has_device = device_of_current(driver, call->context, &call->device);
}

bool pl_begin(const struct pl_slot *slot, struct pl_call *call) {
    if (!open_call(slot, call)) return false;
    find_context(call);
    call->serial = pl_births();
    return true;
}

bool pl_begin_free(const struct pl_slot *slot, struct pl_call *call) {
    if (!open_call(slot, call)) return false;
    if (pl_config()->caches) find_context(call);
    call->serial = pl_births();
    return true;
}
