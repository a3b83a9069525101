// own_runtime.h: modules that are linked with NVIDIA's own runtime: detection, and advice for each. Stateless.
#ifndef VR_STANDINS_COMMON_OWN_RUNTIME_H
#define VR_STANDINS_COMMON_OWN_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

// The call that identifies such a module.
#define VR_OWN_RUNTIME_CALL "cuGetExportTable"

// Returns whether the module is one of NVIDIA's compilers, which make that call but continue without an answer.
bool vr_own_runtime_needs_no_driver(const char *module);
// Returns advice: which versions or builds work. One line without a final period.
const char *vr_own_runtime_advice(const char *module);

#endif
