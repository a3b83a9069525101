// accounts.h: what of a device's memory no allocation of the program explains: contexts, modules, other processes.
//
// What a context or a module takes is the fall of the device's free memory over the call that makes it. The fall counts only where no other
// measured call of this process was under way and no allocation of it was born meanwhile; that no other process took or gave memory in that
// moment is assumed. Nobody can be asked for free memory before there is a context: the first one of a device is not measured, only what
// is in use right after it. With lazy loading, code comes to the device later than its module: that part is not the module's here.
#ifndef PL_ACCOUNTS_H
#define PL_ACCOUNTS_H

#include "preload.h"
#include "vram/accounts.h"
#include "vram/oom.h"

// A call that makes or ends a context or module, being measured.
struct pl_measure {
    bool known;          // free_bytes is what the driver says
    uint32_t device;     // of free_bytes
    uint64_t free_bytes; // before the call
    uint64_t births;
    uint64_t number; // of this measure
};

// Before the call.
void pl_measure_begin(const struct pl_call *call, struct pl_measure *measure);
// After it: it made this context of the device, which need not be current.
void pl_measure_context(const struct pl_call *call, const struct pl_measure *measure, uint64_t context, uint32_t device);
// After it: it loaded or (ended) unloaded something in the current context.
void pl_measure_module(const struct pl_call *call, const struct pl_measure *measure, bool ended);
// After it: nothing came of it.
void pl_measure_drop(void);
// The whole of a door that is measured: the real call, and `made`, an expression over `call` and `measure`, where it went well.
#define PL_MEASURED(parameters, arguments, made)                                                                                           \
    struct pl_call call;                                                                                                                   \
    struct pl_measure measure;                                                                                                             \
    if (!pl_begin(slot, &call)) return PL_REAL(slot, parameters, arguments);                                                               \
    pl_measure_begin(&call, &measure);                                                                                                     \
    const int32_t result = PL_REAL(slot, parameters, arguments);                                                                           \
    if (result == PL_SUCCESS)                                                                                                              \
        (made);                                                                                                                            \
    else                                                                                                                                   \
        pl_measure_drop();                                                                                                                 \
    pl_end(&call);                                                                                                                         \
    return result
// The context is gone, with its modules.
void pl_accounts_context_gone(uint64_t context);

// What is known of the device now; asks NVML, at most every 200 ms, without any lock of ours. NULL while another thread is at it. Until
// pl_accounts_give() it is the caller's.
struct vram_accounts *pl_accounts_take(const struct pl_driver *driver, uint32_t device);
void pl_accounts_give(void);
// In the child of a fork.
void pl_accounts_forget(void);

#endif
