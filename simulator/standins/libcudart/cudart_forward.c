// Calls that are handed on to the driver as they are: cudart_forward.def.
#include <stdatomic.h>

#include "runtime.h"

// clang-format off
#define HANDED_ON(prepare, parameters, symbol, version, arguments, answer)                  \
    {                                                                                       \
        static void *_Atomic slot;                                                          \
        int(*const call) parameters = (int(*) parameters)rt_forward(&slot, #symbol, version); \
        prepare                                                                             \
        RT_CALL(answer(((void)driver, call arguments)));                                    \
    }
#define PLAIN(error)  (error)
#define ON_OWN_STREAM if (stream == 0) stream = RT_PER_THREAD;
#define OF_KERNEL                                                                           \
    uint64_t kernel = 0;                                                                    \
    const int unknown = rt_kernel(function, &kernel);                                       \
    if (unknown != RT_SUCCESS) return rt_end(unknown);                                      \
    function = (const void *)(uintptr_t)kernel;

#define F(name, symbol, version, parameters, arguments) \
    int name parameters HANDED_ON(, parameters, symbol, version, arguments, PLAIN)
#define S(name, symbol, version, parameters, arguments)                                     \
    int name parameters HANDED_ON(, parameters, symbol, version, arguments, PLAIN)          \
    int RT_TWIN(name, _ptsz) parameters HANDED_ON(ON_OWN_STREAM, parameters, symbol, version, arguments, PLAIN)
#define K(name, symbol, version, parameters, arguments) \
    int name parameters HANDED_ON(OF_KERNEL, parameters, symbol, version, arguments, rt_kernel_error)
#include "cudart_forward.def"
// clang-format on
