#include "analyze/frame_kinds.h"

// Longest part of a name that is examined: an untrusted file may have names of megabytes in a million frames.
enum { LOOKED_BYTES = 600 };

enum frame_row { ROW_FILE, ROW_LIBRARY, ROW_SOURCE, ROW_FUNCTION };

static const struct {
    enum frame_row row;
    enum vr_frame_kind kind;
    const char *text, *part;
} table[] = {
#define VR_FRAME_FILE(kind, part)           {ROW_FILE, VR_FRAME_##kind, part, ""},
#define VR_FRAME_LIBRARY(kind, name)        {ROW_LIBRARY, VR_FRAME_##kind, name, ""},
#define VR_FRAME_SOURCE(kind, part)         {ROW_SOURCE, VR_FRAME_##kind, part, ""},
#define VR_FRAME_FUNCTION(kind, name, part) {ROW_FUNCTION, VR_FRAME_##kind, name, part},
#include "analyze/frame_kinds.def"
};

// The end of a file's path, and the beginning of a function's name.
struct frame_path {
    char file[LOOKED_BYTES + 1];
    char function[LOOKED_BYTES + 1];
    const char *library;   // file name after the last slash
    const char *qualified; // function name without its result type
};

// Returns where a C++ function's qualified name begins: after the last blank outside templates and before the arguments. An operator's name
// may contain a blank.
static const char *qualified(const char *function) {
    const char *begin = function;
    size_t depth = 0;
    for (const char *c = function; *c != '\0'; c++) {
        if (strncmp(c, "operator", 8) == 0 && depth == 0) return begin;
        if (strncmp(c, "(anonymous namespace)", 21) == 0)
            c += 20;
        else if (*c == '<')
            depth++;
        else if (*c == '>' && depth != 0)
            depth--;
        else if (*c == '(' && depth == 0)
            return begin;
        else if (*c == ' ' && depth == 0)
            begin = c + 1;
    }
    return begin;
}

static void cut_path(const struct vr_frame_text *frame, struct frame_path *path) {
    const size_t file_bytes = frame->file_length < LOOKED_BYTES ? frame->file_length : LOOKED_BYTES;
    const size_t name_bytes = frame->name_length < LOOKED_BYTES ? frame->name_length : LOOKED_BYTES;
    memcpy(path->file, frame->file + (frame->file_length - file_bytes), file_bytes);
    path->file[file_bytes] = '\0';
    memcpy(path->function, frame->name, name_bytes);
    path->function[name_bytes] = '\0';
    for (char *c = path->file; *c != '\0'; c++) {
        if (*c == '\\') *c = '/';
    }
    const char *slash = strrchr(path->file, '/');
    path->library = slash == NULL ? path->file : slash + 1;
    path->qualified = qualified(path->function);
}

// Returns whether a frame is Python. A script need not have the extension: its top level is called <module> anyway.
static bool is_python(const struct vr_frame_text *frame) {
    const bool script = frame->file_length != 0 && strcmp(frame->name, "<module>") == 0;
    const bool extension = frame->file_length >= 3 && memcmp(frame->file + frame->file_length - 3, ".py", 3) == 0;
    return (script || extension) && frame->file[0] != '<';
}

// Returns whether a frame is a script that a package installs to start its program, such as /env/bin/torchrun.
static bool is_launcher(const struct frame_path *path) { return strstr(path->file, "/bin/") != NULL && strchr(path->library, '.') == NULL; }

static bool begins_with(const char *text, const char *wanted) {
    const size_t length = strlen(wanted), plain = length != 0 && strchr("^$", wanted[length - 1]) != NULL ? length - 1 : length;
    if (strncmp(text, wanted, plain) != 0) return false;
    if (plain == length) return true;
    return wanted[plain] == '^' ? text[plain] >= 'A' && text[plain] <= 'Z'
                                : text[plain] == '\0' || text[plain] == '(' || text[plain] == '@';
}

static bool row_matches(size_t row, const struct frame_path *path) {
    switch (table[row].row) {
    case ROW_LIBRARY: return begins_with(path->library, table[row].text);
    case ROW_FUNCTION: return begins_with(path->qualified, table[row].text) && strstr(path->function, table[row].part) != NULL;
    case ROW_FILE:
    case ROW_SOURCE: break;
    }
    return strstr(path->file, table[row].text) != NULL;
}

enum vr_frame_kind vr_frame_kind_of(const struct vr_frame_text *frame) {
    struct frame_path path;
    cut_path(frame, &path);
    const bool python = is_python(frame) || path.file[0] == '<';
    for (size_t i = 0; i < VR_COUNT_OF(table); i++) {
        if ((table[i].row == ROW_FILE) == python && row_matches(i, &path)) return table[i].kind;
    }
    if (python && is_launcher(&path)) return VR_FRAME_INTERPRETER;
    // The standard library, except installed packages in the same folder.
    if (python)
        return strstr(path.file, "/lib/python3") != NULL && strstr(path.file, "-packages/") == NULL ? VR_FRAME_INTERPRETER : VR_FRAME_OWN;
    return path.function[0] == '\0' || strcmp(path.function, "??") == 0 ? VR_FRAME_RUNTIME : VR_FRAME_NATIVE;
}

static struct vr_frame_text frame_text_of(const struct vr_model *model, uint32_t frame) {
    const uint32_t file = model->frames.filename[frame], name = model->frames.name[frame];
    return (struct vr_frame_text){.file = vr_model_string(model, file),
                                  .file_length = vr_model_string_length(model, file),
                                  .name = vr_model_string(model, name),
                                  .name_length = vr_model_string_length(model, name)};
}

enum vr_frame_kind vr_frame_kind(const struct vr_model *model, uint32_t frame) {
    const struct vr_frame_text text = frame_text_of(model, frame);
    return vr_frame_kind_of(&text);
}

bool vr_frame_is_python(const struct vr_model *model, uint32_t frame, bool outside_torch) {
    const struct vr_frame_text text = frame_text_of(model, frame);
    return is_python(&text) && (!outside_torch || strstr(text.file, "/torch/") == NULL);
}

static bool is_of_torch(enum vr_frame_kind kind) {
    return kind == VR_FRAME_NODE || kind == VR_FRAME_OPERATOR || kind == VR_FRAME_KERNEL || kind == VR_FRAME_TORCH;
}

bool vr_site_choice_add(struct vr_site_choice *choice, enum vr_frame_kind kind, uint64_t frame) {
    if (kind == VR_FRAME_NATIVE && !choice->has[VR_FRAME_OUTSIDE]) {
        choice->frame[VR_FRAME_OUTSIDE] = frame;
        choice->has[VR_FRAME_OUTSIDE] = true;
    }
    // Machine code seen so far was called by PyTorch, such as a kernel of an extension, so it is not outside.
    if (is_of_torch(kind)) choice->has[VR_FRAME_OUTSIDE] = false;
    if (!choice->has[kind] || kind == VR_FRAME_OPERATOR) choice->frame[kind] = frame;
    choice->has[kind] = true;
    return kind == VR_FRAME_OWN;
}

uint64_t vr_site_choice_best(const struct vr_site_choice *choice) {
    size_t best = VR_FRAME_OWN;
    while (!choice->has[best]) best++;
    return choice->frame[best];
}

const char *vr_frame_kind_word(enum vr_frame_kind kind) {
    static const char *const words[VR_FRAME_KIND_COUNT] = {
#define VR_FRAME_KIND_ROW(constant, word) word,
        VR_FRAME_KINDS(VR_FRAME_KIND_ROW)
#undef VR_FRAME_KIND_ROW
    };
    return words[kind];
}
