// proc_address.c: cuGetProcAddress. A name has one row per binary interface; the newest that is not newer than the version asked for wins.
#include "libcuda.h"

enum { FLAG_PER_THREAD = 2, FLAGS_KNOWN = 3 };
enum { STATUS_FOUND, STATUS_NO_SYMBOL, STATUS_NO_VERSION };

typedef void function(void);

static const struct {
    const char *symbol;
    function *entry;
    int version;
    bool per_thread;
} rows[] = {
// clang-format off
#define X(member, symbol, exported, version, parameters, arguments) {#symbol, (function *)exported, version, false},
#include "driver/calls.def"
#include "driver/sim/program_calls.def"
#undef X
#define X(symbol, exported, version, parameters) {#symbol, (function *)exported, version, false},
#include "companions.def"
#undef X
#define X(symbol, exported, version, parameters, target, arguments) {#symbol, (function *)exported, version, true},
#include "per_thread.def"
#undef X
    // clang-format on
};

// The best row's index, or SIZE_MAX. *known: the name is known, whatever the version.
static size_t find(const char *symbol, int version, bool per_thread, bool *known) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        if (rows[i].per_thread != per_thread || strcmp(rows[i].symbol, symbol) != 0) continue;
        *known = true;
        if (rows[i].version <= version && (best == SIZE_MAX || rows[i].version > rows[best].version)) best = i;
    }
    return best;
}

vr_cu_result cuGetProcAddress_v2(const char *symbol, void **result, int version, uint64_t flags, int *status) {
    if (symbol == NULL || result == NULL || (flags & ~(uint64_t)FLAGS_KNOWN) != 0) return VR_CU_INVALID_VALUE;
    bool known = false;
    size_t row = (flags & FLAG_PER_THREAD) != 0 ? find(symbol, version, true, &known) : SIZE_MAX;
    if (row == SIZE_MAX) row = find(symbol, version, false, &known);
    *result = NULL;
    if (row != SIZE_MAX) memcpy(result, &rows[row].entry, sizeof *result);
    if (status != NULL) *status = row != SIZE_MAX ? STATUS_FOUND : known ? STATUS_NO_VERSION : STATUS_NO_SYMBOL;
    return row != SIZE_MAX ? VR_CU_SUCCESS : VR_CU_NOT_FOUND;
}

vr_cu_result cuGetProcAddress(const char *symbol, void **result, int version, uint64_t flags) {
    return cuGetProcAddress_v2(symbol, result, version, flags, NULL);
}
