// proc_address.c: cuGetProcAddress. A name has one row per binary interface; the newest that is not newer than the version asked for wins,
// of those that this driver's version has. Twins (_ptsz, _ptds) are for who asks for the per-thread default stream.
#include "libcuda.h"
#include "names.h"

enum { FLAG_PER_THREAD = 2, FLAGS_KNOWN = 3 };
enum { STATUS_FOUND, STATUS_NO_SYMBOL, STATUS_NO_VERSION };

static bool is_twin(const struct vr_libcuda_name *name) {
    const size_t length = strlen(name->exported);
    return length > 5 && (strcmp(name->exported + length - 5, "_ptsz") == 0 || strcmp(name->exported + length - 5, "_ptds") == 0);
}

// The first row of the name, or the number of rows.
static size_t first_row(const char *symbol) {
    size_t low = 0, high = vr_libcuda_name_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(vr_libcuda_names[middle].base, symbol) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The best row, or NULL. *known: this driver knows the name, in whatever version.
static const struct vr_libcuda_name *find_name(const char *symbol, int version, bool per_thread, bool *known) {
    const struct vr_libcuda_name *best = NULL;
    const int newest = vr_libcuda_version();
    for (size_t i = first_row(symbol); i < vr_libcuda_name_count && strcmp(vr_libcuda_names[i].base, symbol) == 0; i++) {
        const struct vr_libcuda_name *row = &vr_libcuda_names[i];
        if (is_twin(row) != per_thread || row->first > newest) continue;
        *known = true;
        if (row->first <= version && (best == NULL || row->first > best->first)) best = row;
    }
    return best;
}

static const struct vr_libcuda_name *find_with_flags(const char *symbol, int version, uint64_t flags, int *status) {
    bool known = false;
    const struct vr_libcuda_name *row = (flags & FLAG_PER_THREAD) != 0 ? find_name(symbol, version, true, &known) : NULL;
    if (row == NULL) row = find_name(symbol, version, false, &known);
    *status = row != NULL ? STATUS_FOUND : known ? STATUS_NO_VERSION : STATUS_NO_SYMBOL;
    return row;
}

// CUDA's documents: what is not found is success with a null pointer and the reason in *status.
vr_cu_result cuGetProcAddress_v2(const char *symbol, void **result, int version, uint64_t flags, int *status) {
    if (symbol == NULL || result == NULL || (flags & ~(uint64_t)FLAGS_KNOWN) != 0) return VR_CU_INVALID_VALUE;
    int found;
    const struct vr_libcuda_name *row = find_with_flags(symbol, version, flags, &found);
    *result = NULL;
    if (row != NULL) memcpy(result, &row->entry, sizeof *result);
    if (status != NULL) *status = found;
    return VR_CU_SUCCESS;
}

// Before CUDA 12 the reason was the result.
vr_cu_result cuGetProcAddress(const char *symbol, void **result, int version, uint64_t flags) {
    const vr_cu_result asked = cuGetProcAddress_v2(symbol, result, version, flags, NULL);
    return asked == VR_CU_SUCCESS && *result == NULL ? VR_CU_NOT_FOUND : asked;
}
