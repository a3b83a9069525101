// on_modules.c: code that comes to the device: nothing is written down but what it takes.
#include "accounts.h"

#define WATCHED(parameters, arguments, ended)                                                                                              \
    struct pl_call call;                                                                                                                   \
    struct pl_measure measure;                                                                                                             \
    if (!pl_begin(slot, &call)) return PL_REAL(slot, parameters, arguments);                                                               \
    pl_measure_begin(&call, &measure);                                                                                                     \
    const int32_t result = PL_REAL(slot, parameters, arguments);                                                                           \
    if (result == PL_SUCCESS)                                                                                                              \
        pl_measure_module(&call, &measure, ended);                                                                                         \
    else                                                                                                                                   \
        pl_measure_drop();                                                                                                                 \
    pl_end(&call);                                                                                                                         \
    return result

int32_t pl_on_module_load(const struct pl_slot *slot, uint64_t *module, const char *file) {
    WATCHED((uint64_t *, const char *), (module, file), false);
}

int32_t pl_on_module_load_data(const struct pl_slot *slot, uint64_t *module, const void *image) {
    WATCHED((uint64_t *, const void *), (module, image), false);
}

int32_t pl_on_module_load_data_ex(const struct pl_slot *slot, uint64_t *module, const void *image, uint32_t count, void *options,
                                  void *values) {
    WATCHED((uint64_t *, const void *, uint32_t, void *, void *), (module, image, count, options, values), false);
}

int32_t pl_on_library_load(const struct pl_slot *slot, uint64_t *library, const void *code, void *jit, void *jit_values, uint32_t jit_count,
                           void *options, void *values, uint32_t count) {
    WATCHED((uint64_t *, const void *, void *, void *, uint32_t, void *, void *, uint32_t),
            (library, code, jit, jit_values, jit_count, options, values, count), false);
}

int32_t pl_on_module_unload(const struct pl_slot *slot, uint64_t module) { WATCHED((uint64_t), (module), true); }
