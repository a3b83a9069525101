// cuda.c: NVIDIA's driver. libcuda is loaded at run time, so that the library can be built, and its tools run, without it.
#include "driver/driver.h"
#include "os/os.h"

#define FIRST_OPTIONAL_VERSION 10000 // later functions may be missing from a driver; a call then returns NOT_SUPPORTED

// On a 64-bit system the table's uint64_t handles, addresses and sizes equal the driver's pointers and size_t. cuCtxSynchronize takes no
// argument; 64-bit calling conventions ignore the one that its row passes.
struct entry_points {
// clang-format off
#define X(member, symbol, exported, version, parameters, arguments) vr_cu_result (*member) parameters;
#include "driver/calls.def"
#undef X
    // clang-format on
};

struct cuda_driver {
    struct vram_driver head;
    struct entry_points real;
};

// clang-format off
#define WITH_SELF(...) (struct vram_driver *self, __VA_ARGS__)
#define X(member, symbol, exported, version, parameters, arguments)                      \
    static vr_cu_result call_cuda_##member WITH_SELF parameters {                             \
        const struct entry_points *real = &((struct cuda_driver *)(void *)self)->real;   \
        return real->member == NULL ? VR_CU_NOT_SUPPORTED : real->member arguments;      \
    }
#include "driver/calls.def"
#undef X

static const struct vr_driver_calls calls = {
#define X(member, symbol, exported, version, parameters, arguments) call_cuda_##member,
#include "driver/calls.def"
#undef X
};

static const struct {
    const char *symbol, *exported;
    int version;
    size_t offset; // in struct entry_points
} rows[] = {
#define X(member, symbol, exported, version, parameters, arguments) {#symbol, #exported, version, offsetof(struct entry_points, member)},
#include "driver/calls.def"
#undef X
};
// clang-format on

typedef vr_cu_result proc_address_v1(const char *symbol, void **function, int version, uint64_t flags);
typedef vr_cu_result proc_address_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);

// Resolves a driver's functions: by version if possible, else by the exported name.
struct resolver {
    void *library;
    proc_address_v1 *v1;
    proc_address_v2 *v2;
};

// Stores a data pointer as a function pointer; ISO C has no cast for it.
static void store_function(void *to, void *function) { memcpy(to, &function, sizeof function); }

static struct resolver resolver_of(void *library) {
    struct resolver resolver = {.library = library};
    store_function(&resolver.v2, vr_os_dlsym(library, "cuGetProcAddress_v2"));
    store_function(&resolver.v1, vr_os_dlsym(library, "cuGetProcAddress"));
    return resolver;
}

static void *resolve_call(const struct resolver *resolver, size_t row) {
    void *function = NULL;
    vr_cu_result result = VR_CU_NOT_FOUND;
    if (resolver->v2 != NULL)
        result = resolver->v2(rows[row].symbol, &function, rows[row].version, 0, NULL);
    else if (resolver->v1 != NULL)
        result = resolver->v1(rows[row].symbol, &function, rows[row].version, 0);
    return result == VR_CU_SUCCESS && function != NULL ? function : vr_os_dlsym(resolver->library, rows[row].exported);
}

static enum vram_status load_cuda(void *library, struct cuda_driver *driver, struct vram_error *error) {
    vr_cu_result (*init)(unsigned flags);
    store_function(&init, vr_os_dlsym(library, "cuInit"));
    if (init == NULL) return vr_fail(error, VRAM_NO_DRIVER, VRAM_NO_OFFSET, "the CUDA driver library lacks cuInit");
    vr_cu_result result = init(0);
    if (result != VR_CU_SUCCESS) {
        vr_fail(error, VRAM_DRIVER, VRAM_NO_OFFSET, "cuInit: %s", vr_cu_result_name(result));
        if (error != NULL) error->driver_result = result;
        return VRAM_DRIVER;
    }
    struct resolver resolver = resolver_of(library);
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        void *function = resolve_call(&resolver, i);
        if (function == NULL && rows[i].version < FIRST_OPTIONAL_VERSION)
            return vr_fail(error, VRAM_NO_DRIVER, VRAM_NO_OFFSET, "the CUDA driver lacks %s", rows[i].symbol);
        store_function((char *)&driver->real + rows[i].offset, function);
    }
    return VRAM_OK;
}

static void destroy_cuda_driver(struct vram_driver *driver) { free(driver); }

enum vram_status vram_driver_cuda(struct vram_driver **driver, struct vram_error *error) {
    if (driver == NULL) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the pointer for the driver is NULL");
    if (sizeof(void *) != sizeof(uint64_t)) return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "CUDA requires a 64-bit system");
    const char *path = vr_os_getenv("VRAM_LIBCUDA"), *reason = "";
    void *library = vr_os_dlopen(path != NULL && path[0] != '\0' ? path : "libcuda.so.1", &reason);
    if (library == NULL) return vr_fail(error, VRAM_NO_DRIVER, VRAM_NO_OFFSET, "no CUDA driver found: %s", reason);
    struct cuda_driver *made = calloc(1, sizeof *made);
    enum vram_status status =
        made == NULL ? vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory") : load_cuda(library, made, error);
    if (status != VRAM_OK) {
        free(made);
        vr_os_dlclose(library);
        return status;
    }
    // The library stays loaded: after cuInit the driver has threads of its own.
    made->head = (struct vram_driver){.calls = &calls, .destroy = destroy_cuda_driver, .kind = "cuda"};
    *driver = &made->head;
    return VRAM_OK;
}
