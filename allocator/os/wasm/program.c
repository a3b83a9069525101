// program.c: the program's environment without an operating system: no variables, no libraries, no other process.

#include "base/base.h"
#include "os/os.h"

const char *vr_os_getenv(const char *name) {
    (void)name;
    return NULL;
}

// Libraries cannot be loaded.

void *vr_os_dlopen(const char *name, const char **reason) {
    (void)name;
    if (reason != NULL) *reason = "WebAssembly cannot load libraries";
    return NULL;
}

void *vr_os_dlsym(void *library, const char *symbol) {
    (void)library, (void)symbol;
    return NULL;
}

void vr_os_dlclose(void *library) { (void)library; }

// There is a single process, without descriptors.

uint64_t vr_os_process_id(void) { return 1; }
void vr_os_print_error(const char *text) { (void)text; }
void vr_os_abort(void) { __builtin_trap(); }
void vr_os_close_descriptor(int descriptor) { (void)descriptor; }

// A page has one stack and no signals, so the function runs on the caller's stack.

void vr_os_on_spare_stack(void (*function)(void *argument), void *argument) {
    assert(function != NULL);
    function(argument);
}

// A page in a browser cannot fork.
void vr_os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
    (void)before;
    (void)in_parent;
    (void)in_child;
}

// The page's memory begins at 0 and has no holes.
bool vr_os_is_mapped(uint64_t start, uint64_t end) {
    enum { WASM_PAGE = 64 << 10 };
    return start <= end && end <= (uint64_t)__builtin_wasm_memory_size(0) * WASM_PAGE;
}
