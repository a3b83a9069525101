// on_modules.c: code loaded onto the device. Only its size is recorded.
#include "accounts.h"

int32_t pl_on_module_load(const struct pl_slot *slot, uint64_t *module, const char *file) {
    PL_MEASURED((uint64_t *, const char *), (module, file), pl_measure_module(&call, &measure, false));
}

int32_t pl_on_module_load_data(const struct pl_slot *slot, uint64_t *module, const void *image) {
    PL_MEASURED((uint64_t *, const void *), (module, image), pl_measure_module(&call, &measure, false));
}

int32_t pl_on_module_load_data_ex(const struct pl_slot *slot, uint64_t *module, const void *image, uint32_t count, void *options,
                                  void *values) {
    PL_MEASURED((uint64_t *, const void *, uint32_t, void *, void *), (module, image, count, options, values),
                pl_measure_module(&call, &measure, false));
}

int32_t pl_on_library_load(const struct pl_slot *slot, uint64_t *library, const void *code, void *jit, void *jit_values, uint32_t jit_count,
                           void *options, void *values, uint32_t count) {
    PL_MEASURED((uint64_t *, const void *, void *, void *, uint32_t, void *, void *, uint32_t),
                (library, code, jit, jit_values, jit_count, options, values, count), pl_measure_module(&call, &measure, false));
}

int32_t pl_on_module_unload(const struct pl_slot *slot, uint64_t module) {
    PL_MEASURED((uint64_t), (module), pl_measure_module(&call, &measure, true));
}
