// stack_frames.c: names of a table's frames, and stacks on their way into a log.
#include <stdio.h>

#include "history/stack_modules.h"
#include "history/stack_python.h"
#include "history/stack_table.h"
#include "history/symbols.h"
#include "vram/log.h"

// --- names ---------------------------------------------------------------------------------------------------------------------

// A frame of machine code that has no names yet.
struct pending {
    uint32_t module; // row; UINT32_MAX: in none
    uint32_t row;    // of the frame
    uint64_t offset; // of the return address in the module
};

static int by_module(const void *left, const void *right) {
    const struct pending *a = left, *b = right;
    if (a->module != b->module) return VR_ORDER(a->module, b->module);
    if (a->offset != b->offset) return VR_ORDER(a->offset, b->offset);
    return VR_ORDER(a->row, b->row);
}

static enum vram_status add_name(struct vram_stacks *stacks, struct vr_frame_row *row, const char *name, const char *filename,
                                 int64_t line) {
    const struct vram_frame frame = {
        .name = vr_names_string(stacks->names, name), .filename = vr_names_string(stacks->names, filename), .line = line};
    uint32_t index;
    if (frame.name == NULL || frame.filename == NULL) return VRAM_NO_HOST_MEMORY;
    VR_TRY(vr_names_add(stacks->names, frame, &index));
    if (row->count == 0) row->first = index;
    row->count++;
    return VRAM_OK;
}

struct sink {
    struct vram_stacks *stacks;
    const struct pending *pending;
    const char *path;
};

static enum vram_status keep_frame(void *context, size_t index, const char *name, const char *filename, int64_t line) {
    const struct sink *sink = context;
    struct vr_frame_row *row = &sink->stacks->frames[sink->pending[index].row];
    return add_name(sink->stacks, row, name, filename == NULL ? sink->path : filename, line);
}

// Names for the frames of one module; what is in none of its tables gets the module's path alone.
static enum vram_status name_module(struct vram_stacks *stacks, const struct pending *pending, size_t count) {
    const struct vr_code_module none = {.path = "", .build_id = ""};
    struct vr_code_module module = none;
    if (pending->module != UINT32_MAX) {
        vr_modules_lock();
        module = *vr_modules_row_locked(pending->module); // its strings stay
        vr_modules_unlock();
    }
    uint64_t *offsets = malloc(count * sizeof offsets[0]);
    if (offsets == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) offsets[i] = pending[i].offset;
    const struct vr_symbol_places places = {.no_lines = false};
    struct sink sink = {.stacks = stacks, .pending = pending, .path = module.path};
    const struct vr_symbol_sink keeper = {.frame = keep_frame, .context = &sink};
    enum vram_status status =
        pending->module == UINT32_MAX ? VRAM_OK : vr_symbols_find(&places, module.path, module.build_id, offsets, count, &keeper, NULL);
    for (size_t i = 0; status == VRAM_OK && i < count; i++) {
        struct vr_frame_row *row = &stacks->frames[pending[i].row];
        if (row->count == 0) status = add_name(stacks, row, "", module.path, 0);
    }
    free(offsets);
    return status;
}

static enum vram_status name_python(struct vram_stacks *stacks, struct vr_frame_row *row) {
    const char *name = "", *filename = "";
    int64_t line = 0;
    (void)vr_python_resolve(row->word, &name, &filename, &line);
    return add_name(stacks, row, name, filename, line);
}

// Splits the frames without names: Python at once, machine code into `pending`.
static enum vram_status gather(struct vram_stacks *stacks, size_t frames, struct pending *pending, size_t *count) {
    *count = 0;
    for (size_t i = 0; i < frames; i++) {
        struct vr_frame_row *row = &stacks->frames[i];
        if (row->count != 0) continue;
        if ((row->word & VR_PYTHON_WORD) != 0) {
            VR_TRY(name_python(stacks, row));
            continue;
        }
        vr_modules_lock();
        const uint32_t module = vr_modules_of_word_locked(row->word);
        const uint64_t bias = module == UINT32_MAX ? 0 : vr_modules_row_locked(module)->bias;
        vr_modules_unlock();
        pending[(*count)++] = (struct pending){.module = module, .row = (uint32_t)i, .offset = vr_code_address(row->word) - bias};
    }
    return VRAM_OK;
}

// Names for every frame that has none yet: a file's tables are read once for all of its frames.
static enum vram_status name_all_locked(struct vram_stacks *stacks) {
    const size_t frames = (size_t)atomic_load_explicit(&stacks->frame_count, memory_order_relaxed);
    if (stacks->names == NULL) VR_TRY(vr_names_create(&stacks->names));
    struct pending *pending = malloc((frames + 1) * sizeof pending[0]);
    if (pending == NULL) return VRAM_NO_HOST_MEMORY;
    size_t count, end;
    enum vram_status status = gather(stacks, frames, pending, &count);
    if (status == VRAM_OK) qsort(pending, count, sizeof pending[0], by_module);
    for (size_t begin = 0; status == VRAM_OK && begin < count; begin = end) {
        for (end = begin + 1; end < count && pending[end].module == pending[begin].module;) end++;
        status = name_module(stacks, pending + begin, end - begin);
    }
    free(pending);
    return status;
}

size_t vram_stack_frames(struct vram_stacks *stacks, uint32_t stack, struct vram_frame *frames, size_t capacity) {
    const struct vr_stack *row = stacks == NULL ? NULL : vr_stacks_get(stacks, stack);
    size_t count = 0;
    if (row == NULL) return 0;
    vr_mutex_lock(&stacks->mutex);
    bool named = true;
    for (uint32_t i = 0; named && i < row->count; i++) named = vr_stacks_frame_locked(stacks, row->words[i])->count != 0;
    if (!named) (void)name_all_locked(stacks); // what could not be named has no frames below
    for (uint32_t i = 0; i < row->count; i++) {
        const struct vr_frame_row *frame = vr_stacks_frame_locked(stacks, row->words[i]);
        for (uint32_t k = 0; k < frame->count; k++, count++) {
            if (count < capacity) frames[count] = *vr_names_frame(stacks->names, frame->first + k);
        }
    }
    vr_mutex_unlock(&stacks->mutex);
    return count;
}

const char *vram_stack_module(struct vram_stacks *stacks, uint32_t stack, const char *const *skip, size_t skip_count) {
    const struct vr_stack *row = stacks == NULL ? NULL : vr_stacks_get(stacks, stack);
    for (uint32_t i = 0; row != NULL && i < row->count; i++) {
        if ((row->words[i] & VR_PYTHON_WORD) != 0) continue;
        vr_modules_lock();
        const uint32_t module = vr_modules_of_word_locked(row->words[i]);
        const char *path = module == UINT32_MAX ? NULL : vr_modules_row_locked(module)->path;
        vr_modules_unlock();
        if (path == NULL) continue;
        const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
        size_t k = 0;
        while (k < skip_count && strncmp(name, skip[k], strlen(skip[k])) != 0) k++;
        if (k == skip_count) return name;
    }
    return "";
}

// --- into a log ----------------------------------------------------------------------------------------------------------------

// Another log knows nothing of what the last one was told.
static void forget_log_locked(struct vram_stacks *stacks) {
    const size_t frames = (size_t)atomic_load_explicit(&stacks->frame_count, memory_order_relaxed);
    for (size_t i = 0; i < frames; i++) stacks->frames[i].log_id = 0;
    for (uint32_t id = 1; id < atomic_load_explicit(&stacks->count, memory_order_relaxed); id++) vr_stacks_get(stacks, id)->log_id = 0;
    free(stacks->log_modules);
    stacks->log_modules = NULL;
    stacks->log_module_count = 0;
}

static enum vram_status log_module_locked(struct vram_stacks *stacks, uint32_t row, uint32_t *id) {
    if (row >= stacks->log_module_count) {
        const size_t count = stacks->log_module_count, more = (size_t)row + 64;
        uint32_t *modules = realloc(stacks->log_modules, more * sizeof modules[0]);
        if (modules == NULL) return VRAM_NO_HOST_MEMORY;
        memset(modules + count, 0, (more - count) * sizeof modules[0]);
        stacks->log_modules = modules;
        stacks->log_module_count = more;
    }
    if (stacks->log_modules[row] == 0) {
        vr_modules_lock();
        const struct vr_code_module *module = vr_modules_row_locked(row);
        const char *path = module->path, *build_id = module->build_id; // they stay
        vr_modules_unlock();
        VR_TRY(vram_log_module(stacks->log, path, build_id, id));
        stacks->log_modules[row] = *id + 1;
    }
    *id = stacks->log_modules[row] - 1;
    return VRAM_OK;
}

static enum vram_status log_named(struct vram_log *log, const char *name, const char *filename, int64_t line, uint32_t *id) {
    uint32_t name_id, filename_id;
    VR_TRY(vram_log_string(log, name, strlen(name), &name_id));
    VR_TRY(vram_log_string(log, filename, strlen(filename), &filename_id));
    return vram_log_frame(log, name_id, filename_id, line, id);
}

static enum vram_status log_new_frame_locked(struct vram_stacks *stacks, uint64_t word, uint32_t *id) {
    if ((word & VR_PYTHON_WORD) != 0) {
        const char *name = "", *filename = "";
        int64_t line = 0;
        (void)vr_python_resolve(word, &name, &filename, &line);
        return log_named(stacks->log, name, filename, line, id);
    }
    vr_modules_lock();
    const uint32_t row = vr_modules_of_word_locked(word);
    const uint64_t bias = row == UINT32_MAX ? 0 : vr_modules_row_locked(row)->bias;
    vr_modules_unlock();
    if (row == UINT32_MAX) { // code that somebody made at run time
        char name[32];
        (void)snprintf(name, sizeof name, "0x%llx", (unsigned long long)vr_code_address(word));
        return log_named(stacks->log, name, "", 0, id);
    }
    uint32_t module;
    VR_TRY(log_module_locked(stacks, row, &module));
    return vram_log_code(stacks->log, module, vr_code_address(word) - bias, id);
}

static enum vram_status log_stack_locked(struct vram_stacks *stacks, struct vr_stack *row, uint32_t *id) {
    uint32_t frames[VR_STACK_MAX_FRAMES];
    for (uint32_t i = 0; i < row->count; i++) {
        struct vr_frame_row *frame = vr_stacks_frame_locked(stacks, row->words[i]);
        if (frame->log_id == 0) {
            VR_TRY(log_new_frame_locked(stacks, row->words[i], &frames[i]));
            frame->log_id = frames[i] + 1;
        }
        frames[i] = frame->log_id - 1;
    }
    return vram_log_stack(stacks->log, frames, row->count, id);
}

struct logging {
    struct vram_stacks *stacks;
    struct vr_stack *row;
    uint32_t id;
    enum vram_status status;
};

static void log_elsewhere(void *argument) {
    struct logging *logging = argument;
    logging->status = log_stack_locked(logging->stacks, logging->row, &logging->id);
}

// Once per stack, and deep.
static enum vram_status log_new_stack_locked(struct vram_stacks *stacks, struct vr_stack *row, uint32_t *id) {
    struct logging logging = {.stacks = stacks, .row = row};
    vr_os_on_spare_stack(log_elsewhere, &logging);
    if (logging.status == VRAM_OK) *id = row->log_id = logging.id;
    return logging.status;
}

enum vram_status vram_stack_log(struct vram_stacks *stacks, uint32_t stack, struct vram_log *log, uint32_t *id) {
    if (stacks == NULL || log == NULL || id == NULL) return VRAM_INVALID_ARGUMENT;
    struct vr_stack *row = vr_stacks_get(stacks, stack);
    if (row == NULL && stack != 0) return VRAM_INVALID_ARGUMENT;
    if (row == NULL) {
        *id = 0;
        return VRAM_OK;
    }
    vr_mutex_lock(&stacks->mutex);
    if (stacks->log != log) {
        forget_log_locked(stacks);
        stacks->log = log;
    }
    enum vram_status status = VRAM_OK;
    uint32_t known = row->log_id;
    if (known == 0) status = log_new_stack_locked(stacks, row, &known);
    vr_mutex_unlock(&stacks->mutex);
    if (status == VRAM_OK) *id = known;
    return status;
}
