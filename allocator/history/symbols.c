#include "history/symbols.h"

#include "vram/recording.h"

#include <stdio.h>

#include "os/os.h"

// --- files ---------------------------------------------------------------------------------------------------------------------

struct file {
    struct vr_os_view view;
    struct vr_elf elf;
};

// Opens a program file that has the build id, if one is asked for.
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

// DIR/.build-id/ab/cdef... with the suffix, in each of the folders.
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

// --- all of a file's addresses -------------------------------------------------------------------------------------------------

// One look for the return addresses of one file, and what each of them is known by so far.
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

// --- for programs ------------------------------------------------------------------------------------------------------------

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
