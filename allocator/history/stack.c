// Captures stacks, names the frames of a table, and writes stacks into a log.

#include <stdio.h>

#include "history/stack_modules.h"
#include "history/stack_python.h"
#include "history/stack_table.h"
#include "history/stack_walk.h"
#include "history/symbols.h"
#include "vram/log.h"
#include "vram/stack.h"

// --- names ---------------------------------------------------------------------------------------------------------------------

// A frame of machine code without names so far.
struct pending {
    uint32_t module; // row; UINT32_MAX: no module
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

// Names the frames of one module. A frame that its symbols do not cover gets only the module's path.
static enum vram_status name_module(struct vram_stacks *stacks, const struct pending *pending, size_t count) {
    const struct vr_code_module none = {.path = "", .build_id = ""};
    struct vr_code_module module = none;
    if (pending->module != UINT32_MAX) {
        vr_modules_lock();
        module = *vr_modules_row_locked(pending->module); // its strings are permanent
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

// Handles the frames without names: names Python frames at once, collects machine code in `pending`.
static enum vram_status gather_frames(struct vram_stacks *stacks, size_t frames, struct pending *pending, size_t *count) {
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

// Names every unnamed frame. A file's tables are read once for all of its frames.
static enum vram_status name_all_locked(struct vram_stacks *stacks) {
    const size_t frames = (size_t)atomic_load_explicit(&stacks->frame_count, memory_order_relaxed);
    if (stacks->names == NULL) VR_TRY(vr_names_create(&stacks->names));
    struct pending *pending = malloc((frames + 1) * sizeof pending[0]);
    if (pending == NULL) return VRAM_NO_HOST_MEMORY;
    size_t count, end;
    enum vram_status status = gather_frames(stacks, frames, pending, &count);
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
    if (!named) (void)name_all_locked(stacks); // frames that stay unnamed add none below
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

// --- writing into a log --------------------------------------------------------------------------------------------------------

// Forgets the ids of the previous log, which mean nothing in another.
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
        const char *path = module->path, *build_id = module->build_id; // permanent
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
    if (row == UINT32_MAX) { // code generated at run time
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

// Runs once per stack, on the spare stack because it is deep.
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

// Capturing a stack.

// The capture so far: the words and their hash.
struct taking {
    uint64_t *words;
    size_t count;
    size_t limit;
    uint64_t hash;
};

VR_INLINE void put(struct taking *taking, uint64_t word) {
    taking->words[taking->count++] = word;
    taking->hash = vr_stack_hash(taking->hash, word);
}

VR_INLINE void put_group(struct taking *taking, struct vr_python_walk *python) {
    const size_t before = taking->count;
    taking->count += vr_python_group(python, taking->words + before, taking->limit - before);
    for (size_t i = before; i < taking->count; i++) taking->hash = vr_stack_hash(taking->hash, taking->words[i]);
}

// Captures Python frames only; `skip` applies to machine code alone.
static void take_python(struct taking *taking) {
    struct vr_python_walk python;
    if (!vr_python_begin(&python)) return;
    while (python.frame != 0 && taking->count < taking->limit) put_group(taking, &python);
}

// Captures machine code, and before each frame of the interpreter's loop the Python frames that it runs.
VR_INLINE void take_code(struct taking *taking, struct vr_walk *walk, struct vr_python_walk *python, uint32_t skip) {
    uint64_t anchor = python->frame == 0 ? 0 : vr_python_anchor(python);
    bool more = true;
    while (python->frame == 0 && skip != 0 && more) { // the common case, without Python
        uint64_t word, end;
        more = vr_walk_next(walk, &word, &end);
        skip--;
    }
    if (python->frame == 0 && more) {
        taking->count = vr_walk_run(walk, taking->words, taking->limit, &taking->hash);
        return;
    }
    while (more && taking->count < taking->limit) {
        const uint64_t pc = walk->pc;
        uint64_t word, end;
        more = vr_walk_next(walk, &word, &end);
        while (python->frame != 0 && (anchor != 0 ? anchor < end : vr_python_is_loop(python, pc))) {
            put_group(taking, python);
            if (taking->count == taking->limit) return;
            if (anchor == 0) break;
            anchor = vr_python_anchor(python);
            if (anchor == 0) break;
        }
        if (skip != 0) {
            skip--;
        } else {
            put(taking, word);
        }
    }
    // Append the Python frames for which no frame of the loop was found.
    while (python->frame != 0 && taking->count < taking->limit) put_group(taking, python);
}

// The start of a walk. On x86-64 it is the caller: a function's frame pointer points to the saved one of the caller, the return address is
// above it, and the caller's frame above that. On aarch64 the compiler may put this pair anywhere in the function's frame, and only the
// function's rule knows where that ends. So the walk begins in one of our functions and skips the frames up to the one that contains
// `frame`.
struct caller {
    uint64_t pc;
    uint64_t sp;
    uint64_t bp;
    uint64_t frame; // 0: the walk starts at the caller
};

// A request for a stack: its table, its kind, its start, and the Python that runs on it (frame 0: none).
struct stack_request {
    struct vram_stacks *stacks;
    enum vram_stack_kind kind;
    struct vr_python_walk python;
    struct vr_memo_key key; // start of the walk
};

VR_INLINE bool walk_once(struct taking *taking, struct vr_walk *walk, const struct stack_request *request) {
    struct vr_python_walk python = request->python;
    if (request->key.frame != 0 && !vr_walk_leave(walk, request->key.frame)) return false;
    take_code(taking, walk, &python, (uint32_t)request->key.skip);
    return true;
}

// Returns whether frames were cut that the table would have kept.
VR_INLINE bool is_cut(const struct taking *taking, const struct vram_stacks *stacks) {
    return taking->count == taking->limit && taking->limit < stacks->max_frames;
}

VR_INLINE uint32_t intern(const struct taking *taking, struct vram_stacks *stacks) {
    return taking->count == 0 || is_cut(taking, stacks) ? 0 : vr_stacks_intern(stacks, taking->words, taking->count, taking->hash);
}

// memo: receives the words that the first attempt reads; NULL: no notes.
static uint32_t walk_code(struct taking *taking, struct stack_request *request, struct vr_memo *memo) {
    struct vr_walk walk = {.unsure = false};
    for (int attempt = 0; attempt < 3; attempt++) {
        taking->count = 0;
        taking->hash = request->stacks->secret;
        if (!vr_walk_begin(&walk, request->key.pc, request->key.sp, request->key.bp)) break;
        if (attempt == 0)
            walk.memo = memo;
        else if (memo != NULL)
            vr_memo_spoil(memo);
        request->key.epoch = walk.epoch;
        if (!walk_once(taking, &walk, request)) break;
        if (!walk.unsure || !vr_walk_outdated(&walk)) break;
    }
    const uint32_t id = intern(taking, request->stacks);
    if (memo != NULL) vr_memo_keep(memo, &request->key, id, walk.unsure);
    return id;
}

// Captures with room for `room` frames. *cut: there are more.
VR_INLINE uint32_t take(struct stack_request *request, uint64_t *words, size_t room, bool *cut) {
    struct vram_stacks *stacks = request->stacks;
    struct taking taking = {.words = words, .limit = stacks->max_frames < room ? stacks->max_frames : room, .hash = stacks->secret};
    uint32_t id;
    if (request->kind == VRAM_STACK_PYTHON) {
        take_python(&taking);
        id = intern(&taking, stacks);
    } else {
        // Python frames are not on the machine stack, so walks with them cannot be remembered.
        struct vr_memo *memo = request->python.frame == 0 && (request->key.sp & 7) == 0 ? vr_memo_of(&request->key) : NULL;
        id = walk_code(&taking, request, memo != NULL && vr_memo_begin(memo) ? memo : NULL);
    }
    *cut = is_cut(&taking, stacks);
    return id;
}

// Returns the result of an earlier walk with this start, if its words are unchanged; 0: unknown.
VR_NOINLINE static uint32_t recall(struct stack_request *request) {
    struct vr_walk walk;
    bool unsure = false;
    if (!vr_walk_begin(&walk, request->key.pc, request->key.sp, request->key.bp)) return 0;
    request->key.high = walk.high;
    request->key.epoch = walk.epoch;
    const uint32_t id = vr_memo_recall(vr_memo_of(&request->key), &request->key, &unsure);
    return id != 0 && unsure && vr_walk_outdated(&walk) ? 0 : id;
}

// Three sizes, so that the common case takes little of the caller's stack: a signal handler may have 8 KiB in all.
enum { SMALL = 96, MEDIUM = 128 };

VR_NOINLINE static uint32_t take_small(struct stack_request *request, bool *cut) {
    uint64_t words[SMALL];
    return take(request, words, SMALL, cut);
}

VR_NOINLINE static uint32_t take_medium(struct stack_request *request, bool *cut) {
    uint64_t words[MEDIUM];
    return take(request, words, MEDIUM, cut);
}

VR_NOINLINE static uint32_t take_large(struct stack_request *request, bool *cut) {
    uint64_t words[VR_STACK_MAX_FRAMES];
    return take(request, words, VR_STACK_MAX_FRAMES, cut);
}

// Stacks that were cut before are likely to be cut again.
static uint32_t take_sized(struct stack_request *request) {
    struct vram_stacks *stacks = request->stacks;
    const bool deep = atomic_load_explicit(&stacks->deep, memory_order_relaxed);
    bool cut = deep;
    const uint32_t id = deep ? 0 : take_small(request, &cut);
    if (!cut) return id;
    if (!deep) atomic_store_explicit(&stacks->deep, true, memory_order_relaxed);
    return stacks->max_frames <= MEDIUM ? take_medium(request, &cut) : take_large(request, &cut);
}

void vram_stack_spare(void (*function)(void *argument), void *argument) {
    if (function != NULL) vr_os_on_spare_stack(function, argument);
}

// `own` is the frame address of the function into which this is inlined.
VR_UNSANITIZED VR_INLINE struct caller find_caller(const void *frame_address, const void *own) {
    const volatile uint64_t *frame = frame_address;
#if defined(__aarch64__)
    struct caller caller = {.bp = (uint64_t)(uintptr_t)own, .frame = (uint64_t)(uintptr_t)frame};
    __asm__ volatile("adr %0, . + 4\n\tmov %1, sp" : "=r"(caller.pc), "=r"(caller.sp));
    return caller;
#else
    (void)own;
    return (struct caller){.pc = frame[1], .sp = (uint64_t)(uintptr_t)frame + 16, .bp = frame[0]};
#endif
}

// Takes `caller` by value: a sanitizer knows nothing about the frames of the functions below.
VR_NOINLINE static uint32_t take_from(struct vram_stacks *stacks, enum vram_stack_kind kind, uint32_t skip, const struct caller caller) {
    struct stack_request request = {
        .stacks = stacks,
        .kind = kind,
        .python.frame = 0,
        .key = {.pc = caller.pc, .sp = caller.sp, .bp = caller.bp, .frame = caller.frame, .table = stacks->serial, .skip = skip}};
    if (kind == VRAM_STACK_ALL) (void)vr_python_begin(&request.python);
    if (kind != VRAM_STACK_PYTHON && request.python.frame == 0) {
        const uint32_t known = recall(&request);
        if (VR_LIKELY(known != 0)) return known;
    }
    return take_sized(&request);
}

// Taking their own frame's address makes these functions keep a frame pointer.
VR_UNSANITIZED VR_NOINLINE uint32_t vram_stack_take(struct vram_stacks *stacks, enum vram_stack_kind kind, uint32_t skip) {
    if (stacks == NULL || kind == VRAM_STACK_NONE) return 0;
    const struct caller caller = find_caller(__builtin_frame_address(0), __builtin_frame_address(0));
    const uint32_t id = take_from(stacks, kind, skip, caller);
    VR_NO_TAIL_CALL();
    return id;
}

VR_UNSANITIZED VR_NOINLINE uint32_t vram_stack_take_at(struct vram_stacks *stacks, enum vram_stack_kind kind, const void *frame_address) {
    if (stacks == NULL || kind == VRAM_STACK_NONE) return 0;
    const void *own = __builtin_frame_address(0);
    const struct caller caller = find_caller(frame_address == NULL ? own : frame_address, own);
    const uint32_t id = take_from(stacks, kind, 0, caller);
    VR_NO_TAIL_CALL();
    return id;
}
