// missing.c: counts calls, as described in missing.h.
#define _GNU_SOURCE
#include "missing.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "shared_file.h"

static struct vr_missing_file *file; // NULL: not counting
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_counts_file(void) { file = vr_shared_file("VRAM_SIM_MISSING", sizeof *file, VR_MISSING_MAGIC); }

const char *vr_missing_module(const void *caller) {
    Dl_info facts;
    return dladdr(caller, &facts) != 0 && facts.dli_fname != NULL ? facts.dli_fname : "(unknown)";
}

// Copies the text, or only its end if it is too long.
static void put_end(char *into, size_t capacity, const char *text) {
    const size_t length = strlen(text);
    (void)snprintf(into, capacity, "%s", length < capacity ? text : text + length - (capacity - 1));
}

static bool is_row(const struct vr_missing_row *row, const char *library, const char *function, const char *module) {
    const size_t length = strlen(module);
    if (length >= sizeof row->module) module += length - (sizeof row->module - 1);
    return strcmp(row->function, function) == 0 && strcmp(row->library, library) == 0 && strcmp(row->module, module) == 0;
}

static struct vr_missing_row *find_missing_row(const char *library, const char *function, const char *module) {
    uint64_t used = atomic_load_explicit(&file->used, memory_order_acquire);
    for (uint64_t i = 0; i < used && i < VR_MISSING_ROWS; i++) {
        struct vr_missing_row *row = &file->rows[i];
        if (atomic_load_explicit(&row->state, memory_order_acquire) == VR_MISSING_READY && is_row(row, library, function, module))
            return row;
    }
    used = atomic_fetch_add(&file->used, 1);
    if (used >= VR_MISSING_ROWS) return NULL;
    struct vr_missing_row *row = &file->rows[used];
    (void)snprintf(row->function, sizeof row->function, "%s", function);
    (void)snprintf(row->library, sizeof row->library, "%s", library);
    put_end(row->module, sizeof row->module, module);
    atomic_store_explicit(&row->state, VR_MISSING_READY, memory_order_release);
    return row;
}

void vr_missing_stake(const char *function, uint64_t bytes) {
    (void)pthread_once(&once, open_counts_file);
    struct vr_missing_row *row = file == NULL ? NULL : find_missing_row(VR_MISSING_SIZE, function, vr_missing_module(NULL));
    uint64_t before = row == NULL ? bytes : atomic_load_explicit(&row->bytes, memory_order_relaxed);
    while (before < bytes &&
           !atomic_compare_exchange_weak_explicit(&row->bytes, &before, bytes, memory_order_relaxed, memory_order_relaxed)) {
    }
}

void vr_missing_count(const char *library, const char *function, const void *caller) {
    // Repeated calls from the same place skip the search for the row.
    static _Thread_local struct {
        const void *caller;
        const char *function;
        struct vr_missing_row *row;
    } last;
    (void)pthread_once(&once, open_counts_file);
    if (file == NULL) return;
    if (last.row == NULL || last.caller != caller || last.function != function) {
        last.row = find_missing_row(library, function, vr_missing_module(caller));
        last.caller = caller;
        last.function = function;
    }
    if (last.row != NULL) (void)atomic_fetch_add_explicit(&last.row->count, 1, memory_order_relaxed);
}
