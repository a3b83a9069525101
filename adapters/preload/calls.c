// calls.c: the beginning of every watched call.
#include <errno.h>
#include <pthread.h>

#include "config.h"
#include "live.h"
#include "session.h"

bool pl_begin(const struct pl_slot *slot, struct pl_call *call) {
    if (pl_depth > 0 || (!pl_config()->records && pl_config()->limit_bytes == 0 && !pl_config()->caches)) return false;
    *call = (struct pl_call){.slot = slot, .caller = pl_caller, .saved_errno = errno};
    pl_depth++;
    // What is asked of the system on the way would be places where a thread is cancelled, under a lock.
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call->cancel_state);
    pl_process_setup();
    const struct pl_driver *driver = slot->driver;
    int32_t device = 0;
    if (driver->ctx_get_device != NULL && driver->ctx_get_device(&device) == PL_SUCCESS && device >= 0 && device < PL_DEVICES) {
        call->has_device = true;
        call->device = (uint32_t)device;
    }
    if (driver->ctx_get_current != NULL && driver->ctx_get_current(&call->context) != PL_SUCCESS) call->context = 0;
    call->serial = pl_births();
    return true;
}
