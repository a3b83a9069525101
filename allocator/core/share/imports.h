// imports.h: the memory of other processes that an allocator has.
#ifndef VR_CORE_SHARE_IMPORTS_H
#define VR_CORE_SHARE_IMPORTS_H

#include "os/os.h"

// Leaf lock, but for driver calls: two imports of the same memory must become one.
struct vr_imports {
    struct vr_mutex mutex;
    struct vr_import_entry **items; // in no order; share_import.c
    size_t count;
    size_t items_capacity;
};

#endif
