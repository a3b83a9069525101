// imports.h: an allocator's list of memory imported from other processes.
#ifndef VR_CORE_SHARE_IMPORTS_H
#define VR_CORE_SHARE_IMPORTS_H

#include "os/os.h"

// `mutex` is held during driver calls, so that two imports of the same memory share one entry. Otherwise it is a leaf lock.
struct vr_imports {
    struct vr_mutex mutex;
    struct vr_import_entry **items; // unordered; defined in share_import.c
    size_t count;
    size_t items_capacity;
};

#endif
