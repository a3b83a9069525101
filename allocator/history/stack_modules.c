#include "history/stack_modules.h"

#include <stdatomic.h>
#include <stdio.h>

#include "os/once.h"

static struct {
    struct vr_mutex mutex;
    struct vr_code_module *rows; // in order of loading
    size_t count;
    size_t rows_capacity;
    uint64_t text_bytes;
    _Atomic uint64_t loads; // the loader's counts at the last update
    _Atomic uint64_t unloads;
    bool failed; // out of memory: the list is incomplete
} modules;

static struct vr_once prepared;

static void prepare_modules(void) {
    vr_mutex_init(&modules.mutex);
    vr_os_at_fork(vr_modules_lock, vr_modules_unlock, vr_modules_unlock);
}

void vr_modules_lock(void) {
    vr_once(&prepared, prepare_modules);
    vr_mutex_lock(&modules.mutex);
}

void vr_modules_unlock(void) { vr_mutex_unlock(&modules.mutex); }

static bool same_build_id(const struct vr_code_module *row, const struct vr_os_module *module) {
    if (strlen(row->build_id) != module->build_id_bytes * 2) return false;
    char pair[3];
    for (size_t i = 0; i < module->build_id_bytes; i++) {
        (void)snprintf(pair, sizeof pair, "%02x", module->build_id[i]);
        if (memcmp(pair, row->build_id + 2 * i, 2) != 0) return false;
    }
    return true;
}

static bool is_same(const struct vr_code_module *row, const struct vr_os_module *module) {
    return row->bias == module->bias && row->start == module->start && row->end == module->end && strcmp(row->path, module->path) == 0 &&
           same_build_id(row, module);
}

// Copies path and build id into one piece of memory, kept forever.
static bool copy_names(struct vr_code_module *row, const struct vr_os_module *module) {
    const size_t path_bytes = strlen(module->path) + 1, id_bytes = module->build_id_bytes * 2 + 1;
    char *text = malloc(path_bytes + id_bytes);
    if (text == NULL) return false;
    memcpy(text, module->path, path_bytes);
    for (size_t i = 0; i < module->build_id_bytes; i++) (void)snprintf(text + path_bytes + 2 * i, 3, "%02x", module->build_id[i]);
    text[path_bytes + id_bytes - 1] = '\0';
    row->path = text;
    row->build_id = text + path_bytes;
    modules.text_bytes += path_bytes + id_bytes;
    return true;
}

// Returns the generation for a module now at [start, end): one more than any earlier module there.
static uint32_t next_generation(uint64_t start, uint64_t end) {
    uint32_t generation = 0;
    for (size_t i = 0; i < modules.count; i++) {
        const struct vr_code_module *row = &modules.rows[i];
        if (row->start < end && start < row->end && row->generation + 1 > generation) generation = row->generation + 1;
    }
    return generation > 0x7fff ? 0x7fff : generation;
}

static bool module_contains(const struct vr_os_module *module, const void *address) {
    const uint64_t value = (uint64_t)(uintptr_t)address;
    return value >= module->start && value < module->end;
}

static bool visit_module(void *context, const struct vr_os_module *module) {
    (void)context;
    for (size_t i = 0; i < modules.count; i++) {
        if (is_same(&modules.rows[i], module)) {
            modules.rows[i].loaded = true;
            return true;
        }
    }
    if (modules.count >= UINT32_MAX - 1 || VR_GROW(&modules, rows, modules.count + 1) != VRAM_OK) {
        modules.failed = true;
        return false;
    }
    struct vr_code_module row = {.bias = module->bias, .start = module->start, .end = module->end, .loaded = true};
    // This library stays loaded while its code runs.
    static const char ours;
    row.lasting = module->lasting || module_contains(module, &ours);
    row.generation = next_generation(module->start, module->end);
    row.tables = (struct vr_cfi_tables){.header = module->unwind, .header_bytes = module->unwind_bytes, .start = row.start, .end = row.end};
    if (!copy_names(&row, module)) {
        modules.failed = true;
        return false;
    }
    modules.rows[modules.count++] = row;
    return true;
}

struct load_counts {
    uint64_t loads;
    uint64_t unloads;
};

static void note_counts(void *context, uint64_t loads, uint64_t unloads) {
    struct load_counts *counts = context;
    counts->loads = loads;
    counts->unloads = unloads;
}

bool vr_modules_current(void) {
    struct load_counts counts;
    vr_os_modules_hold(note_counts, &counts);
    return counts.loads == atomic_load_explicit(&modules.loads, memory_order_acquire) &&
           counts.unloads == atomic_load_explicit(&modules.unloads, memory_order_acquire);
}

void vr_modules_refresh_locked(void (*forget)(void)) {
    struct load_counts before;
    vr_os_modules_hold(note_counts, &before);
    const bool changed = before.unloads != atomic_load_explicit(&modules.unloads, memory_order_relaxed) ||
                         before.loads != atomic_load_explicit(&modules.loads, memory_order_relaxed);
    if (!modules.failed && !changed) return;
    if (changed) forget();
    modules.failed = false;
    for (size_t i = 0; i < modules.count; i++) modules.rows[i].loaded = false;
    vr_os_modules(visit_module, NULL);
    // The counts were read before the list, so a change in between is noticed at the next refresh.
    atomic_store_explicit(&modules.loads, before.loads, memory_order_release);
    atomic_store_explicit(&modules.unloads, before.unloads, memory_order_release);
}

const struct vr_code_module *vr_modules_find_locked(uint64_t address) {
    for (size_t i = 0; i < modules.count; i++) {
        const struct vr_code_module *row = &modules.rows[i];
        if (row->loaded && address >= row->start && address < row->end) return row;
    }
    return NULL;
}

uint32_t vr_modules_of_word_locked(uint64_t word) {
    const uint64_t address = vr_code_address(word) - 1;
    for (size_t i = 0; i < modules.count; i++) {
        const struct vr_code_module *row = &modules.rows[i];
        if (address >= row->start && address < row->end && row->generation == vr_code_generation(word)) return (uint32_t)i;
    }
    return UINT32_MAX;
}

const struct vr_code_module *vr_modules_row_locked(uint32_t row) { return &modules.rows[row]; }

struct hold_counts {
    void (*inside)(void *context);
    void *context;
    bool done;
};

static void hold_counts(void *context, uint64_t loads, uint64_t unloads) {
    struct hold_counts *state = context;
    (void)loads;
    if (unloads != atomic_load_explicit(&modules.unloads, memory_order_relaxed)) return;
    state->done = true;
    state->inside(state->context);
}

bool vr_modules_hold_locked(void (*inside)(void *context), void *context) {
    struct hold_counts state = {.inside = inside, .context = context};
    vr_os_modules_hold(hold_counts, &state);
    return state.done;
}

uint64_t vr_modules_bytes_locked(void) { return modules.rows_capacity * sizeof modules.rows[0] + modules.text_bytes; }
