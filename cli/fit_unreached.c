#include "fit_unreached.h"

#include <stdio.h>
#include <string.h>

#include "../simulator/standins/common/own_runtime.h"
#include "fit_failure.h"

const char *fit_unreached_module(const struct fit_run *run) {
    for (size_t i = 0; i < run->missing_count; i++) {
        const struct sim_wanted *row = &run->missing[i];
        if (strcmp(row->function, VR_OWN_RUNTIME_CALL) == 0 && !vr_own_runtime_needs_no_driver(row->module)) return row->module;
    }
    return NULL;
}

bool fit_unreached_text(const struct fit_run *run, bool whole, char *text, size_t capacity) {
    const char *module = fit_unreached_module(run);
    if (module == NULL) return false;
    const char *slash = strrchr(module, '/');
    const bool went_on = whole && run->exit_code == 0 && run->signal == 0;
    (void)snprintf(text, capacity, "%s has NVIDIA's runtime linked into it, which takes no driver but NVIDIA's and found no device: %s. %s",
                   slash == NULL ? module : slash + 1,
                   went_on ? "the program went on without one, on the CPU" : "what it does on a GPU is not in the answer",
                   vr_own_runtime_advice(module));
    return true;
}
