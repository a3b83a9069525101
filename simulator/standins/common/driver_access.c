// Access to the driver: loading it once, making a context current, and work and fills on streams.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common.h"

static struct standin_driver loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards initialization
static atomic_bool is_ready;                              // cuInit() has succeeded
static int (*resolver)(const char *symbol, void **function, int version, uint64_t flags, int *status);

enum { NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, NOT_SUPPORTED = 801 };

static int driver_absent(void) { return NOT_SUPPORTED; }

static void resolve_driver_function(const char *symbol, int version, void *member) {
    void *function = NULL;
    if (resolver(symbol, &function, version, 0, NULL) != 0 || function == NULL) function = (void *)(uintptr_t)driver_absent;
    memcpy(member, &function, sizeof function);
}

static void load_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = library == NULL ? NULL : dlsym(library, "cuGetProcAddress_v2");
    if (found == NULL) return;
    memcpy(&resolver, &found, sizeof resolver);
#define X(member, symbol, version, parameters) resolve_driver_function(symbol, version, &loaded.member);
#include "common_driver.def"
#undef X
}

// Loads and initializes the driver. If cuInit() fails, the next call tries again.
const struct standin_driver *standin_driver(void) {
    if (atomic_load_explicit(&is_ready, memory_order_acquire)) return &loaded;
    (void)pthread_once(&once, load_driver);
    (void)pthread_mutex_lock(&mutex);
    if (!atomic_load(&is_ready) && loaded.init != NULL && loaded.init(0) == 0) atomic_store(&is_ready, true);
    (void)pthread_mutex_unlock(&mutex);
    return atomic_load(&is_ready) ? &loaded : NULL;
}

const struct standin_driver *standin_begin(void) {
    const struct standin_driver *driver = standin_driver();
    uint64_t context = 0;
    if (driver == NULL) return NULL;
    if (driver->ctx_get_current(&context) == 0 && context != 0) return driver;
    if (driver->primary_ctx_retain(&context, 0) != 0 || driver->ctx_set_current(context) != 0) return NULL;
    return driver;
}

// --- work ------------------------------------------------------------------------------------------------------------------------------
// One kernel, loaded once. A library's kernel belongs to no context, so it works on every device and survives a reset. Its argument is a
// struct vr_sim_library_call (simulator/sim/modules/sim_operands.h).
struct work_call {
    char name[40]; // "": unknown
    uint64_t count;
    struct standin_operand operands[STANDIN_OPERANDS];
};
_Static_assert(sizeof(struct work_call) == 432, "the kernel's code has the size");
static const char code[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                           ".visible .entry standin_work(.param .align 8 .b8 call[432])\n{\nret;\n}\n";
static _Atomic uint64_t kernel; // 0: not loaded

static int load_kernel(void) {
    uint64_t library = 0, found = 0;
    (void)pthread_mutex_lock(&mutex);
    int error = 0;
    if (atomic_load(&kernel) == 0) error = loaded.library_load_data(&library, code, NULL, NULL, 0, NULL, NULL, 0);
    if (error == 0 && library != 0) error = loaded.library_get_kernel(&found, library, "standin_work");
    if (error == 0 && found != 0) atomic_store(&kernel, found);
    (void)pthread_mutex_unlock(&mutex);
    return error;
}

static void do_nothing(void *unused) { (void)unused; }

static int launch_call(const struct standin_driver *driver, uint64_t stream, struct work_call *call) {
    void *parameters[] = {call};
    const int error = atomic_load_explicit(&kernel, memory_order_acquire) == 0 ? load_kernel() : 0;
    // If the driver has no libraries of kernels, a host function keeps the order and makes a node.
    if (error == NOT_SUPPORTED) return driver->launch_host_func(stream, do_nothing, NULL);
    return error != 0 ? error : driver->launch_kernel(atomic_load(&kernel), 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

// Makes the primary context current only if the launch fails because there is no current context.
int standin_work_on(uint64_t stream, const char *name, const struct standin_operand *operands, size_t count) {
    const struct standin_driver *driver = standin_driver();
    struct work_call call = {.count = count > STANDIN_OPERANDS ? STANDIN_OPERANDS : count};
    if (driver == NULL) return NOT_INITIALIZED;
    for (size_t i = 0; i < sizeof call.name - 1 && name[i] != '\0'; i++) call.name[i] = name[i];
    if (call.count > 0) memcpy(call.operands, operands, call.count * sizeof *operands);
    const int error = launch_call(driver, stream, &call);
    if (error != INVALID_CONTEXT) return error;
    return standin_begin() == NULL ? NOT_INITIALIZED : launch_call(driver, stream, &call);
}

int standin_work(uint64_t stream) { return standin_work_on(stream, "", NULL, 0); }

// ---- What only the simulated driver has: parts of `vram check`, and stacks.

static pthread_once_t once_simulated = PTHREAD_ONCE_INIT;
static void (*hide_calls)(int hidden); // NULL: another driver
static void (*note_disagreement)(const char *mine, const char *theirs);
static uint32_t (*take_stack)(void);
static void (*write_stack)(uint32_t stack, char *text, size_t capacity);

static void find_simulated(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *const found[] = {library == NULL ? NULL : dlsym(library, "vram_sim_check_hide"),
                           library == NULL ? NULL : dlsym(library, "vram_sim_check_disagreement"),
                           library == NULL ? NULL : dlsym(library, "vram_sim_stack_take"),
                           library == NULL ? NULL : dlsym(library, "vram_sim_stack_text")};
    memcpy(&hide_calls, &found[0], sizeof hide_calls);
    memcpy(&note_disagreement, &found[1], sizeof note_disagreement);
    memcpy(&take_stack, &found[2], sizeof take_stack);
    memcpy(&write_stack, &found[3], sizeof write_stack);
}

void standin_hide(bool hidden) {
    (void)pthread_once(&once_simulated, find_simulated);
    if (hide_calls != NULL) hide_calls(hidden);
}

void standin_disagreement(const char *mine, const char *theirs) {
    (void)pthread_once(&once_simulated, find_simulated);
    if (note_disagreement != NULL) note_disagreement(mine, theirs);
}

uint32_t standin_stack(void) {
    (void)pthread_once(&once_simulated, find_simulated);
    return take_stack == NULL || write_stack == NULL ? 0 : take_stack();
}

void standin_stack_text(uint32_t stack, char *text, size_t capacity) { write_stack(stack, text, capacity); }

int standin_zero(const void *address, size_t bytes, uint64_t stream) {
    const struct standin_driver *driver = standin_begin();
    if (driver == NULL) return NOT_INITIALIZED;
    return address == NULL || bytes == 0 ? 0 : driver->memset_d8_async((uint64_t)(uintptr_t)address, 0, bytes, stream);
}

int standin_result(void *result, size_t bytes, bool on_device, uint64_t stream) {
    const int error = standin_work(stream);
    if (error != 0 || result == NULL) return error;
    if (on_device) return standin_zero(result, bytes, stream);
    const int waited = standin_driver()->stream_synchronize(stream);
    if (waited == 0) memset(result, 0, bytes);
    return waited;
}

// --- memory and devices ----------------------------------------------------------------------------------------------------------------
bool standin_is_device(const void *address) {
    enum { MEMORY_TYPE = 2, IS_MANAGED = 8, DEVICE = 2 };
    const struct standin_driver *driver = standin_begin();
    unsigned type = 0, managed = 0;
    if (driver == NULL || driver->pointer_get_attribute(&type, MEMORY_TYPE, (uint64_t)(uintptr_t)address) != 0) return false;
    (void)driver->pointer_get_attribute(&managed, IS_MANAGED, (uint64_t)(uintptr_t)address);
    return type == DEVICE && managed == 0;
}

void *standin_take(size_t bytes) {
    const struct standin_driver *driver = bytes == 0 ? NULL : standin_begin();
    uint64_t address = 0;
    return driver != NULL && driver->mem_alloc(&address, bytes) == 0 ? (void *)(uintptr_t)address : NULL;
}

void standin_give(void *address) {
    const struct standin_driver *driver = address == NULL ? NULL : standin_begin();
    if (driver != NULL) (void)driver->mem_free((uint64_t)(uintptr_t)address);
}

int standin_capability(void) {
    enum { MAJOR = 75, MINOR = 76 };
    const struct standin_driver *driver = standin_begin();
    int device = 0, major = 0, minor = 0;
    if (driver == NULL || driver->ctx_get_device(&device) != 0 || driver->device_get_attribute(&major, MAJOR, device) != 0 ||
        driver->device_get_attribute(&minor, MINOR, device) != 0)
        return 0;
    return 10 * major + minor;
}
