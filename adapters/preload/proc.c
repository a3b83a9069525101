// proc.c: cuGetProcAddress(), through which the CUDA runtime gets its functions. It takes a base name and a version; doors.def says which
// binary interface that is. The two functions have their own doors, chosen like others.
#include <stdatomic.h>
#include <string.h>

#include "preload.h"
#include "notices.h"

typedef int32_t lookup_v1(const char *symbol, void **function, int version, uint64_t flags);
typedef int32_t lookup_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);

// A driver's two lookup functions. Either may be NULL.
struct lookup {
    _Atomic(pl_function *) real;
};
#define LOOKUPS 6
static struct lookup first_versions[LOOKUPS], second_versions[LOOKUPS];

// A query of one of the driver's own lookup functions.
struct query {
    pl_function *real;
    bool second;
    int *status;
};

static int32_t run(const struct query *query, const char *symbol, void **function, int version, uint64_t flags) {
    pl_depth++;
    const int32_t result = query->second ? ((lookup_v2 *)query->real)(symbol, function, version, flags, query->status)
                                         : ((lookup_v1 *)query->real)(symbol, function, version, flags);
    pl_depth--;
    return result;
}

// Returns whether the function is newer than doors.def: the name's newest known version is a different function. Its door would pass the
// wrong arguments.
static bool is_newer(const struct query *query, const char *symbol, const void *found, int version, uint64_t flags) {
    if (version <= PL_KNOWN_VERSION) return false;
    void *known = NULL;
    int status = 0;
    struct query again = *query;
    again.status = &status;
    return run(&again, symbol, &known, PL_KNOWN_VERSION, flags) != PL_SUCCESS || known != found;
}

static pl_function *stand_in(const struct query *query, const char *symbol, void *found, int version, uint64_t flags) {
    pl_function *entry;
    memcpy(&entry, &found, sizeof entry);
    const bool is_lookup = strcmp(symbol, "cuGetProcAddress") == 0;
    const char *exported =
        is_lookup ? (version >= 12000 ? "cuGetProcAddress_v2" : "cuGetProcAddress") : pl_interface(symbol, version, flags);
    if (exported == NULL) return entry;
    if (is_newer(query, symbol, found, version, flags)) {
        pl_missed("not recorded: a newer interface of", symbol);
        return entry;
    }
    return is_lookup ? pl_wrap_lookup(exported, entry) : pl_wrap(exported, entry);
}

static int32_t look_up(const struct query *query, const char *symbol, void **function, int version, uint64_t flags) {
    if (query->real == NULL) return PL_NOT_INITIALIZED;
    const int32_t result = run(query, symbol, function, version, flags);
    if (pl_depth > 0 || result != PL_SUCCESS || symbol == NULL || function == NULL || *function == NULL) return result;
    pl_function *wrapped = stand_in(query, symbol, *function, version, flags);
    memcpy(function, &wrapped, sizeof wrapped);
    return result;
}

// clang-format off
#define BODIES(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define BODY(n)                                                                                                         \
    static int32_t v1_##n(const char *symbol, void **function, int version, uint64_t flags) {                           \
        const struct query query = {atomic_load(&first_versions[n].real), false, NULL};                           \
        return look_up(&query, symbol, function, version, flags);                                                    \
    }                                                                                                                   \
    static int32_t v2_##n(const char *symbol, void **function, int version, uint64_t flags, int *status) {              \
        const struct query query = {atomic_load(&second_versions[n].real), true, status};                         \
        return look_up(&query, symbol, function, version, flags);                                                    \
    }
BODIES(BODY)
#define V1(n) (pl_function *)v1_##n,
#define V2(n) (pl_function *)v2_##n,
static pl_function *const v1_doors[LOOKUPS] = {BODIES(V1)}, *const v2_doors[LOOKUPS] = {BODIES(V2)};
// clang-format on

static pl_function *wrap_in(struct lookup *lookups, pl_function *const *doors, pl_function *real) {
    if (real == NULL) return real;
    for (size_t i = 0; i < LOOKUPS; i++)
        if (real == doors[i]) return real;
    for (size_t i = 0; i < LOOKUPS; i++) {
        pl_function *known = NULL;
        if (atomic_compare_exchange_strong(&lookups[i].real, &known, real) || known == real) return doors[i];
    }
    pl_missed("too many copies of libcuda; not recorded:", "cuGetProcAddress");
    return real;
}

pl_function *pl_wrap_lookup(const char *exported, pl_function *real) {
    if (strcmp(exported, "cuGetProcAddress") == 0)
        return real == (pl_function *)cuGetProcAddress ? real : wrap_in(first_versions, v1_doors, real);
    if (strcmp(exported, "cuGetProcAddress_v2") == 0)
        return real == (pl_function *)cuGetProcAddress_v2 ? real : wrap_in(second_versions, v2_doors, real);
    return NULL;
}

int32_t cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags) {
    const struct query query = {pl_next("cuGetProcAddress"), false, NULL};
    return look_up(&query, symbol, function, version, flags);
}

int32_t cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
    const struct query query = {pl_next("cuGetProcAddress_v2"), true, status};
    return look_up(&query, symbol, function, version, flags);
}
