// accounts.h: the part of a device's memory that no allocation of the program explains: contexts, modules, other processes.
//
// The cost of a context or module is the decrease of the device's free memory during the call that makes it. It counts only if no other
// measured call of this process was running and no allocation was made meanwhile; other processes are assumed not to allocate or free in
// that moment. Free memory cannot be queried before there is a context, so the first context of a device is not measured, only the memory
// in use right after it. With lazy loading, code reaches the device after its module is loaded; that part is not counted as the module's.
#ifndef PL_ACCOUNTS_H
#define PL_ACCOUNTS_H

#include "preload.h"
#include "vram/accounts.h"
#include "vram/oom.h"

// The measurement of a call that makes or ends a context or module.
struct pl_measure {
    bool known;          // free_bytes is the driver's answer
    uint32_t device;     // the device of free_bytes
    uint64_t free_bytes; // before the call
    uint64_t births;
    uint64_t number; // of this measurement
};

// Call before the driver's function.
void pl_measure_begin(const struct pl_call *call, struct pl_measure *measure);
// Call after the driver made this context of the device. The context need not be current.
void pl_measure_context(const struct pl_call *call, const struct pl_measure *measure, uint64_t context, uint32_t device);
// Call after something was loaded or, if `ended`, unloaded in the current context.
void pl_measure_module(const struct pl_call *call, const struct pl_measure *measure, bool ended);
// Call after the driver's function failed.
void pl_measure_drop(void);
// The whole body of a measured door: calls the driver and, on success, evaluates `made`, an expression over `call` and `measure`.
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
// Removes a destroyed context and its modules.
void pl_accounts_context_gone(uint64_t context);

// Returns what is known about the device now. Queries NVML at most every 200 ms, without holding a lock of ours. Returns NULL while another
// thread has the answer. The caller owns it until pl_accounts_give().
struct vram_accounts *pl_accounts_take(const struct pl_driver *driver, uint32_t device);
void pl_accounts_give(void);
// Call in the child of a fork.
void pl_accounts_forget(void);

#endif
