#include <stdio.h>

#include "history/symbols.h"
#include "model/builder.h"
#include "model/recording.h"
#include "os/os.h"
#include "vram/recording.h"

// --- files ---------------------------------------------------------------------------------------------------------------------

struct file {
    struct vr_os_view view;
    struct vr_elf elf;
};

// Opens a program file; a `build_id` other than "" must match.
static bool open_file(const char *path, const char *build_id, struct file *file) {
    char found[129];
    if (vr_os_view_open(path, &file->view) != VRAM_OK) return false;
    if (vr_elf_open(&file->elf, file->view.bytes, file->view.size_bytes)) {
        vr_elf_build_id(&file->elf, found);
        if (build_id[0] == '\0' || strcmp(found, build_id) == 0) return true;
    }
    vr_os_view_close(&file->view);
    return false;
}

static bool is_build_id(const char *text) { return strlen(text) >= 4 && strspn(text, "0123456789abcdef") == strlen(text); }

// Opens DIR/.build-id/ab/cdef... with the suffix, in the first folder that has it.
static bool open_by_id(const struct vr_symbol_places *places, const char *build_id, const char *suffix, struct file *file) {
    char path[4096];
    if (!is_build_id(build_id)) return false;
    for (size_t i = 0; i <= places->debug_dir_count; i++) {
        const char *folder = i < places->debug_dir_count ? places->debug_dirs[i] : "/usr/lib/debug";
        const int length = snprintf(path, sizeof path, "%s/.build-id/%.2s/%s%s", folder, build_id, build_id + 2, suffix);
        if (length > 0 && (size_t)length < sizeof path && open_file(path, build_id, file)) return true;
    }
    return false;
}

// --- a file's addresses --------------------------------------------------------------------------------------------------------

// A search for the return addresses of one file, with the results so far.
struct symbol_search {
    const uint64_t *offsets;
    size_t count;
    const struct vr_symbol_sink *sink;
    const char **names;
    uint8_t *ranks;
    bool *found;
};

static enum vram_status find_lines(const struct file *file, const struct symbol_search *search, bool *found) {
    if (!vr_elf_has_debug(&file->elf)) return VRAM_OK;
    const enum vram_status status =
        vr_lines_find(file->view.file, search->offsets, search->count, search->names, search->found, search->sink);
    if (status == VRAM_OK) *found = true;
    return status == VRAM_UNSUPPORTED ? VRAM_OK : status;
}

static enum vram_status search_files(const struct vr_symbol_places *places, const struct file *program, const struct file *debug,
                                     const struct symbol_search *search, enum vr_symbol_source *source) {
    bool lines = false;
    if (program != NULL) vr_elf_names(&program->elf, search->offsets, search->count, search->names, search->ranks);
    if (debug != NULL) vr_elf_names(&debug->elf, search->offsets, search->count, search->names, search->ranks);
    if (!places->no_lines) {
        if (debug != NULL) VR_TRY(find_lines(debug, search, &lines));
        if (program != NULL && !lines) VR_TRY(find_lines(program, search, &lines));
    }
    for (size_t i = 0; i < search->count; i++) {
        if (!search->found[i] && search->names[i] != NULL) VR_TRY(vr_symbol_emit(search->sink, i, search->names[i], NULL, 0));
    }
    *source = lines ? VR_SYMBOLS_LINES : program != NULL || debug != NULL ? VR_SYMBOLS_NAMES : VR_SYMBOLS_NONE;
    return VRAM_OK;
}

enum vram_status vr_symbols_find(const struct vr_symbol_places *places, const char *path, const char *build_id, const uint64_t *offsets,
                                 size_t count, const struct vr_symbol_sink *sink, enum vr_symbol_source *source) {
    for (size_t i = 1; i < count; i++) assert(offsets[i - 1] < offsets[i]);
    struct file program, debug;
    enum vr_symbol_source found = VR_SYMBOLS_NONE;
    const struct symbol_search search = {.offsets = offsets,
                                         .count = count,
                                         .sink = sink,
                                         .names = calloc(count + 1, sizeof search.names[0]),
                                         .ranks = calloc(count + 1, sizeof search.ranks[0]),
                                         .found = calloc(count + 1, sizeof search.found[0])};
    enum vram_status status = VRAM_NO_HOST_MEMORY;
    if (search.names != NULL && search.ranks != NULL && search.found != NULL) {
        const bool has_program = (path[0] != '\0' && open_file(path, build_id, &program)) || open_by_id(places, build_id, "", &program);
        const bool has_debug = open_by_id(places, build_id, ".debug", &debug);
        status = search_files(places, has_program ? &program : NULL, has_debug ? &debug : NULL, &search, &found);
        if (has_program) vr_os_view_close(&program.view);
        if (has_debug) vr_os_view_close(&debug.view);
    }
    free(search.names);
    free(search.ranks);
    free(search.found);
    if (status == VRAM_OK && source != NULL) *source = found;
    return status;
}

// --- the public function -----------------------------------------------------------------------------------------------------

struct asked_symbols {
    vram_symbol_found *found;
    void *user;
    bool ended; // by the program
};

static enum vram_status pass_on(void *context, size_t index, const char *name, const char *filename, int64_t line) {
    struct asked_symbols *asked = context;
    const struct vram_frame frame = {.name = name, .filename = filename == NULL ? "" : filename, .line = line};
    if (!asked->ended) asked->ended = !asked->found(asked->user, index, &frame);
    return VRAM_OK;
}

enum vram_status vram_symbolize(const char *module, const char *build_id, const uint64_t *offsets, size_t count,
                                const struct vram_symbols_options *options, vram_symbol_found *found, void *user) {
    static const struct vram_symbols_options defaults = {.names_only = false};
    if (module == NULL || found == NULL || (offsets == NULL && count != 0)) return VRAM_INVALID_ARGUMENT;
    for (size_t i = 1; i < count; i++)
        if (offsets[i - 1] >= offsets[i]) return VRAM_INVALID_ARGUMENT;
    if (options == NULL) options = &defaults;
    const struct vr_symbol_places places = {
        .debug_dirs = options->debug_dirs, .debug_dir_count = options->debug_dir_count, .no_lines = options->names_only};
    struct asked_symbols asked = {.found = found, .user = user};
    const struct vr_symbol_sink sink = {.frame = pass_on, .context = &asked};
    return vr_symbols_find(&places, module, build_id == NULL ? "" : build_id, offsets, count, &sink, NULL);
}

// Names the unresolved frames of a recording. Replaces its tables of strings, frames and stacks once the new ones are complete; inlined
// functions become frames of their own.

// A frame that is an offset in a module.
struct unresolved {
    uint32_t module; // of the model
    uint32_t frame;
    uint64_t offset;
};

// The new frames of an old frame: `count` frames in `made` from `first` on; 0: unchanged.
struct became {
    uint32_t first;
    uint32_t count;
};

struct symbolizing {
    struct vr_model *model;
    struct vr_builder builder;
    struct unresolved *unresolved;
    size_t count;
    struct became *became; // by old frame
    uint32_t *made;        // frames of the builder
    size_t made_count;
    size_t made_capacity;
    uint32_t *frames; // old frame -> new: the innermost of its new frames
    uint32_t *stacks; // old stack -> new
    const struct unresolved *current;
    uint32_t current_path;
    struct vram_symbols_counts counts;
};

static int by_module(const void *left, const void *right) {
    const struct unresolved *a = left, *b = right;
    if (a->module != b->module) return VR_ORDER(a->module, b->module);
    return VR_ORDER(a->offset, b->offset);
}

// Parses "0x" and a hexadecimal number: the offset of a return address (not 0).
static bool parse_offset(const char *text, uint64_t *offset) {
    static const char digits[] = "0123456789abcdef";
    const size_t length = strlen(text);
    if (length < 3 || length > 18 || text[0] != '0' || text[1] != 'x') return false;
    uint64_t value = 0;
    for (const char *at = text + 2; *at != '\0'; at++) {
        const char *digit = strchr(digits, *at);
        if (digit == NULL) return false;
        value = value << 4 | (uint64_t)(digit - digits);
    }
    *offset = value;
    return value != 0;
}

// Maps each string that is a module's path: modules[string] is the module's index + 1.
static enum vram_status map_modules(const struct vr_model *model, uint32_t **modules) {
    uint32_t *made = calloc(model->strings.count, sizeof made[0]);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = model->module_count; i-- > 0;) made[model->modules[i].path] = (uint32_t)i + 1;
    *modules = made;
    return VRAM_OK;
}

static enum vram_status gather_places(struct symbolizing *work) {
    const struct vr_model *model = work->model;
    uint32_t *modules;
    work->unresolved = malloc(((size_t)model->frames.count + 1) * sizeof work->unresolved[0]);
    if (work->unresolved == NULL) return VRAM_NO_HOST_MEMORY;
    VR_TRY(map_modules(model, &modules));
    for (uint32_t i = 0; i < model->frames.count; i++) {
        struct unresolved row = {.module = modules[model->frames.filename[i]], .frame = i};
        if (row.module == 0 || model->frames.line[i] != 0) continue;
        if (!parse_offset(vr_model_string(model, model->frames.name[i]), &row.offset)) continue;
        row.module--;
        work->unresolved[work->count++] = row;
    }
    free(modules);
    qsort(work->unresolved, work->count, sizeof work->unresolved[0], by_module);
    work->counts.frames = work->count;
    return VRAM_OK;
}

// Copies the old strings, which keep their numbers.
static enum vram_status copy_strings(struct symbolizing *work) {
    const struct vr_model *model = work->model;
    for (uint32_t i = 1; i < model->strings.count; i++) {
        uint32_t id;
        VR_TRY(vr_builder_string(&work->builder, vr_model_string(model, i), vr_model_string_length(model, i), &id));
        if (id != i) return VRAM_BAD_INPUT; // strings of a model are distinct
    }
    return VRAM_OK;
}

static enum vram_status add_text(struct symbolizing *work, const char *text, uint32_t *id) {
    // Names in a program file may be any bytes; a recording is UTF-8 only.
    const size_t length = strlen(text);
    return vr_builder_string(&work->builder, vr_utf8_valid(text, length) ? text : "?", vr_utf8_valid(text, length) ? length : 1, id);
}

static enum vram_status keep_frame(void *context, size_t index, const char *name, const char *filename, int64_t line) {
    struct symbolizing *work = context;
    uint32_t name_id, filename_id = work->current_path, frame;
    VR_TRY(add_text(work, name[0] == '\0' ? "?" : name, &name_id));
    if (filename != NULL) VR_TRY(add_text(work, filename, &filename_id));
    VR_TRY(vr_builder_frame(&work->builder, name_id, filename_id, line, &frame));
    VR_TRY(VR_GROW(work, made, work->made_count + 1));
    struct became *became = &work->became[work->current[index].frame];
    if (became->count == 0) {
        became->first = (uint32_t)work->made_count;
        work->counts.named++;
        if (line > 0) work->counts.lined++;
    }
    became->count++;
    work->made[work->made_count++] = frame;
    return VRAM_OK;
}

static enum vram_status resolve_module(struct symbolizing *work, const struct vr_symbol_places *places, const struct unresolved *rows,
                                       size_t count) {
    const struct vr_module *module = &work->model->modules[rows[0].module];
    const struct vr_symbol_sink sink = {.frame = keep_frame, .context = work};
    enum vr_symbol_source source;
    uint64_t *offsets = malloc(count * sizeof offsets[0]);
    if (offsets == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) offsets[i] = rows[i].offset;
    work->current = rows;
    work->current_path = module->path;
    const enum vram_status status = vr_symbols_find(places, vr_model_string(work->model, module->path),
                                                    vr_model_string(work->model, module->build_id), offsets, count, &sink, &source);
    free(offsets);
    if (status != VRAM_OK) return status;
    work->counts.modules++;
    if (source == VR_SYMBOLS_NONE) work->counts.modules_missing++;
    return VRAM_OK;
}

static enum vram_status resolve_places(struct symbolizing *work, const struct vr_symbol_places *places) {
    for (size_t begin = 0, end; begin < work->count; begin = end) {
        for (end = begin + 1; end < work->count && work->unresolved[end].module == work->unresolved[begin].module;) end++;
        VR_TRY(resolve_module(work, places, work->unresolved + begin, end - begin));
    }
    return VRAM_OK;
}

static enum vram_status map_frames(struct symbolizing *work) {
    const struct vr_frames *frames = &work->model->frames;
    for (uint32_t i = 0; i < frames->count; i++) {
        if (work->became[i].count != 0) {
            work->frames[i] = work->made[work->became[i].first];
        } else {
            VR_TRY(vr_builder_frame(&work->builder, frames->name[i], frames->filename[i], frames->line[i], &work->frames[i]));
        }
    }
    return VRAM_OK;
}

static enum vram_status map_stacks(struct symbolizing *work) {
    const struct vr_stacks *stacks = &work->model->stacks;
    struct {
        uint32_t *frames;
        size_t frames_capacity;
    } row = {NULL, 0};
    enum vram_status status = VRAM_OK;
    for (uint32_t i = 0; status == VRAM_OK && i < stacks->count; i++) {
        size_t count = 0;
        for (uint64_t at = stacks->offset[i]; status == VRAM_OK && at < stacks->offset[i + 1]; at++) {
            const uint32_t frame = stacks->frame[at];
            const struct became became = work->became[frame];
            status = VR_GROW(&row, frames, count + became.count + 1);
            if (status != VRAM_OK) break;
            if (became.count == 0) row.frames[count++] = work->frames[frame];
            for (uint32_t k = 0; k < became.count; k++) row.frames[count++] = work->made[became.first + k];
        }
        if (status == VRAM_OK) status = vr_builder_stack(&work->builder, row.frames, count, &work->stacks[i]);
    }
    free(row.frames);
    return status;
}

static int by_owner(const void *left, const void *right) {
    const struct vr_extra *a = left, *b = right;
    if (a->owner != b->owner) return VR_ORDER(a->owner, b->owner);
    if (a->device != b->device) return VR_ORDER(a->device, b->device);
    if (a->row != b->row) return VR_ORDER(a->row, b->row);
    return VR_ORDER(a->key, b->key);
}

// Moves the extra keys of frames to their new frames; where several frames became one, equal keys are kept once.
static void move_extras(struct symbolizing *work) {
    struct vr_model *model = work->model;
    size_t begin = 0, end, kept;
    while (begin < model->extra_count && model->extras[begin].owner != VR_OWNER_FRAME) begin++;
    for (end = begin; end < model->extra_count && model->extras[end].owner == VR_OWNER_FRAME; end++) {
        model->extras[end].row = work->frames[model->extras[end].row];
    }
    if (begin == end) return;
    qsort(model->extras + begin, end - begin, sizeof model->extras[0], by_owner);
    kept = begin + 1;
    for (size_t i = begin + 1; i < end; i++) {
        if (by_owner(&model->extras[i], &model->extras[kept - 1]) != 0) model->extras[kept++] = model->extras[i];
    }
    memmove(model->extras + kept, model->extras + end, (model->extra_count - end) * sizeof model->extras[0]);
    model->extra_count -= end - kept;
}

static void map_column(const struct symbolizing *work, uint32_t *column, size_t count) {
    for (size_t i = 0; i < count; i++) column[i] = work->stacks[column[i]];
}

// Replaces the old tables by the new ones. Cannot fail.
static void replace_tables(struct symbolizing *work) {
    struct vr_model *model = work->model;
    map_column(work, model->segments.stack, model->segments.count);
    map_column(work, model->blocks.stack, model->blocks.count);
    for (size_t i = 0; i < model->history_count; i++) map_column(work, model->histories[i].stack, model->histories[i].count);
    for (size_t i = 0; i < model->tenant_count; i++) {
        model->tenants[i].stack = work->stacks[model->tenants[i].stack];
        model->tenants[i].cpp_stack = work->stacks[model->tenants[i].cpp_stack];
    }
    move_extras(work);
    vr_model_release_names(model);
    vr_builder_finish(&work->builder, model);
}

static enum vram_status run_symbolizing(struct symbolizing *work, const struct vr_symbol_places *places) {
    const struct vr_model *model = work->model;
    VR_TRY(gather_places(work));
    if (work->count == 0) return VRAM_OK;
    work->became = calloc((size_t)model->frames.count + 1, sizeof work->became[0]);
    work->frames = calloc((size_t)model->frames.count + 1, sizeof work->frames[0]);
    work->stacks = calloc((size_t)model->stacks.count + 1, sizeof work->stacks[0]);
    if (work->became == NULL || work->frames == NULL || work->stacks == NULL) return VRAM_NO_HOST_MEMORY;
    VR_TRY(copy_strings(work));
    VR_TRY(resolve_places(work, places));
    VR_TRY(map_frames(work));
    VR_TRY(map_stacks(work));
    replace_tables(work);
    return VRAM_OK;
}

enum vram_status vram_recording_symbolize(struct vram_recording *recording, const struct vram_symbols_options *options,
                                          struct vram_symbols_counts *counts) {
    if (recording == NULL) return VRAM_INVALID_ARGUMENT;
    struct vr_symbol_places places = {.debug_dirs = NULL};
    if (options != NULL) {
        places.no_lines = options->names_only;
        places.debug_dirs = options->debug_dirs;
        places.debug_dir_count = options->debug_dirs == NULL ? 0 : options->debug_dir_count;
    }
    struct symbolizing work = {.model = &recording->model};
    VR_TRY(vr_builder_init(&work.builder, UINT64_MAX));
    const enum vram_status status = run_symbolizing(&work, &places);
    vr_builder_release(&work.builder);
    free(work.unresolved);
    free(work.became);
    free(work.made);
    free(work.frames);
    free(work.stacks);
    if (status == VRAM_OK && counts != NULL) *counts = work.counts;
    return status;
}
