#include "os/os.h"

// A page in a browser has no children.
void vr_os_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
    (void)before;
    (void)in_parent;
    (void)in_child;
}

// The memory of the page begins at 0 and has no holes.
bool vr_os_is_mapped(uint64_t start, uint64_t end) {
    enum { WASM_PAGE = 64 << 10 };
    return start <= end && end <= (uint64_t)__builtin_wasm_memory_size(0) * WASM_PAGE;
}
