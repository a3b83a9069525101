// own_runtime.h: modules that have NVIDIA's runtime linked into them: which they are, and what to do about each. No state.
#ifndef VR_STANDINS_COMMON_OWN_RUNTIME_H
#define VR_STANDINS_COMMON_OWN_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

// The call by which such a module is known.
#define VR_OWN_RUNTIME_CALL "cuGetExportTable"

// Is the module a compiler of NVIDIA's, which makes that call and goes on without an answer?
bool vr_own_runtime_needs_no_driver(const char *module);
// What to do: which versions or builds run. One line, without a point at its end.
const char *vr_own_runtime_advice(const char *module);

#endif
