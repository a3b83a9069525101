#include "history/stack_python.h"

#include <stdatomic.h>

#include "history/stack_python_code.h"
#include "os/os.h"

// --- layouts ------------------------------------------------------------------------------------------------------------------
//
// Offsets in bytes, from the headers of each version. Within a minor version they are fixed from the first release on.

enum chain {
    FRAME_OBJECTS, // 3.8, 3.9: PyThreadState.frame; a separate call of the loop runs each frame
    FRAME_RECORDS, // 3.10: likewise, and a record of each call of the loop on the C stack (CFrame)
    RECORDS,       // 3.11: the record points to the innermost frame; the outermost frame of a call is marked is_entry
    RECORD_SHIMS,  // 3.12: the record points to the innermost frame; a frame on the C stack ends a call's frames
    SHIMS,         // from 3.13 on: the thread points to the innermost frame
};

struct vr_python_layout {
    unsigned minor;
    enum chain chain;
    enum vr_python_lines lines;
    uint16_t thread_frame; // in PyThreadState: frame, cframe or current_frame
    uint16_t thread_record;
    uint16_t record_frame; // in the record
    uint16_t record_previous;
    uint16_t frame_code; // in a frame
    uint16_t frame_previous;
    uint16_t frame_instruction; // f_lasti (int), prev_instr or instr_ptr
    uint16_t frame_owner;       // char, FRAME_OWNED_BY_
    uint16_t frame_is_entry;    // bool
    uint16_t code_filename;     // in PyCodeObject
    uint16_t code_name;
    uint16_t code_first_line;
    uint16_t code_lines;
    uint16_t code_first_traceable;
    uint16_t code_start;
    uint16_t lasti_unit; // bytes per unit of f_lasti
};

static const struct vr_python_layout layouts[] = {
    {8, FRAME_OBJECTS, VR_PYTHON_LNOTAB, 24, 0, 0, 0, 32, 24, 104, 0, 0, 104, 112, 40, 120, 0, 0, 1},
    {9, FRAME_OBJECTS, VR_PYTHON_LNOTAB, 24, 0, 0, 0, 32, 24, 104, 0, 0, 104, 112, 40, 120, 0, 0, 1},
    {10, FRAME_RECORDS, VR_PYTHON_PEP626, 24, 48, 0, 8, 32, 24, 96, 0, 0, 104, 112, 40, 120, 0, 0, 2},
    {11, RECORDS, VR_PYTHON_PEP657, 0, 56, 8, 16, 32, 48, 56, 69, 68, 112, 120, 72, 136, 168, 184, 0},
    {12, RECORD_SHIMS, VR_PYTHON_PEP657, 0, 56, 0, 8, 0, 8, 56, 70, 0, 112, 120, 68, 136, 176, 192, 0},
    {13, SHIMS, VR_PYTHON_PEP657, 72, 0, 0, 0, 0, 8, 56, 70, 0, 112, 120, 68, 136, 184, 200, 0},
    {14, SHIMS, VR_PYTHON_PEP657, 72, 0, 0, 0, 0, 8, 56, 74, 0, 112, 120, 68, 136, 192, 208, 0},
    {15, SHIMS, VR_PYTHON_PEP657, 72, 0, 0, 0, 0, 8, 56, 74, 0, 112, 120, 68, 136, 192, 208, 0},
};

// Frames that end a call are on the C stack; from 3.14 on, those of the interpreter's loop have a number of their own (3; the others have
// 4).
enum { OWNED_BY_GENERATOR = 1, OWNED_BY_C_STACK = 3 };
// From 3.14 on, a frame's reference to its code object is tagged if it is not counted.
enum { REFERENCE_TAG = 3 };
// Offsets in every object, in every bytes object, and in every string.
enum { OBJECT_TYPE = 8, BYTES_SIZE = 16, BYTES_DATA = 32, TEXT_LENGTH = 16, TEXT_HASH = 24, TEXT_STATE = 32 };

struct interpreter {
    const struct vr_python_layout *layout;
    void *(*this_thread)(void);
    int (*is_initialized)(void);
    int (*is_finalizing)(void);
    uint64_t code_type;
    uint64_t loop_start;
    uint64_t loop_end;
};

static struct interpreter interpreter;
static _Atomic int found; // 0: not yet; 1: search in progress; 2: `interpreter` is filled; 3: unsupported interpreter
static _Atomic uint64_t loads_then;

VR_INLINE uint64_t word_at(uint64_t address) { return *(const uint64_t *)(uintptr_t)address; }
VR_INLINE uint32_t int_at(uint64_t address) { return *(const uint32_t *)(uintptr_t)address; }
VR_INLINE uint8_t byte_at(uint64_t address) { return *(const uint8_t *)(uintptr_t)address; }

// --- finding the interpreter ---------------------------------------------------------------------------------------------------

// dlsym() returns function pointers as data pointers.
static void find_function(void *library, const char *name, void *function) {
    void *symbol = vr_os_dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
}

static bool find_libpython(void *context, const struct vr_os_module *module) {
    char *path = context;
    const char *slash = strrchr(module->path, '/');
    const char *name = slash == NULL ? module->path : slash + 1;
    if (strncmp(name, "libpython3.", 11) != 0 || strlen(module->path) >= 4096) return true;
    memcpy(path, module->path, strlen(module->path) + 1);
    return false;
}

// Returns the layout for a version such as "3.11.7 (main, ...) [GCC ...]"; NULL if it is not supported.
static const struct vr_python_layout *find_layout(const char *version) {
    if (strncmp(version, "3.", 2) != 0 || strstr(version, "free-threading") != NULL || sizeof(void *) != 8) return NULL;
    const unsigned long minor = strtoul(version + 2, NULL, 10);
    for (size_t i = 0; i < VR_COUNT_OF(layouts); i++) {
        if (layouts[i].minor == minor) return &layouts[i];
    }
    return NULL;
}

// Looks for the interpreter; *state becomes the next state of `found`.
static void find_interpreter(void *state) {
    int *next = state;
    void *library = NULL; // the program's own scope
    *next = 0;
    const char *(*version)(void);
    find_function(NULL, "Py_GetVersion", &version);
    if (version == NULL) { // a libpython loaded at run time
        char path[4096] = "";
        vr_os_modules(find_libpython, path);
        library = path[0] == '\0' ? NULL : vr_os_dlopen(path, NULL);
        if (library == NULL) return;
        find_function(library, "Py_GetVersion", &version);
        if (version == NULL) {
            *next = 3;
            return;
        }
    }
    interpreter.layout = find_layout(version());
    find_function(library, "PyGILState_GetThisThreadState", &interpreter.this_thread);
    find_function(library, "Py_IsInitialized", &interpreter.is_initialized);
    find_function(library, "Py_IsFinalizing", &interpreter.is_finalizing);
    if (interpreter.is_finalizing == NULL) find_function(library, "_Py_IsFinalizing", &interpreter.is_finalizing);
    interpreter.code_type = (uint64_t)(uintptr_t)vr_os_dlsym(library, "PyCode_Type");
    const uint64_t loop = (uint64_t)(uintptr_t)vr_os_dlsym(library, "_PyEval_EvalFrameDefault");
    if (loop != 0) (void)vr_os_function(loop, &interpreter.loop_start, &interpreter.loop_end);
    // Builds with Py_TRACE_REFS have two more words in every object.
    const bool known = interpreter.layout != NULL && interpreter.this_thread != NULL && interpreter.is_initialized != NULL &&
                       interpreter.is_finalizing != NULL && interpreter.code_type != 0 &&
                       vr_os_dlsym(library, "_Py_PrintReferences") == NULL;
    *next = known ? 2 : 3;
}

static void note_loads(void *context, uint64_t loads, uint64_t unloads) {
    (void)unloads;
    *(uint64_t *)context = loads;
}

// Looks for an interpreter unless nothing was loaded since the last search.
VR_NOINLINE static bool look_again(void) {
    uint64_t loads = 0;
    int expected = 0;
    if (atomic_load_explicit(&found, memory_order_acquire) != 0) return false;
    vr_os_modules_hold(note_loads, &loads);
    if (loads == atomic_load_explicit(&loads_then, memory_order_relaxed) && loads != 0) return false;
    if (!atomic_compare_exchange_strong(&found, &expected, 1)) return false;
    atomic_store_explicit(&loads_then, loads, memory_order_relaxed);
    int next;
    vr_os_on_spare_stack(find_interpreter, &next); // the loader needs a deep stack
    atomic_store_explicit(&found, next, memory_order_release);
    return next == 2;
}

// --- code objects --------------------------------------------------------------------------------------------------------------

// Appends a character as UTF-8 and returns its number of bytes.
static size_t put_utf8(char *bytes, uint32_t character) {
    if (character < 0x80) {
        bytes[0] = (char)character;
        return 1;
    }
    const size_t count = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = count; i-- > 1; character >>= 6) bytes[i] = (char)(0x80 | (character & 0x3f));
    bytes[0] = (char)(lead[count] | character);
    return count;
}

enum { TEXT_MAX = 1024 };

// Returns the address of a string's characters. Up to 3.11 a string also stores wstr and its length.
VR_INLINE uint64_t text_data(const struct vr_python_layout *layout, uint64_t text, uint32_t state) {
    const bool ascii = (state >> 6 & 1) != 0;
    return text + (layout->minor < 12 ? (ascii ? 48 : 72) : (ascii ? 40 : 56));
}

// Copies a Python string as UTF-8, cut at TEXT_MAX characters; `bytes` has room for four times as many and a NUL.
static void copy_text(const struct vr_python_layout *layout, uint64_t text, char *bytes) {
    const uint32_t state = int_at(text + TEXT_STATE);
    const unsigned width = state >> 2 & 7;
    const bool compact = (state >> 5 & 1) != 0;
    const uint64_t data = text_data(layout, text, state);
    uint64_t length = word_at(text + TEXT_LENGTH);
    size_t at = 0;
    if (!compact || (width != 1 && width != 2 && width != 4)) length = 0;
    if (length > TEXT_MAX) length = TEXT_MAX;
    for (uint64_t i = 0; i < length; i++) {
        uint32_t character = 0;
        memcpy(&character, (const char *)(uintptr_t)data + i * width, width);
        if (character == 0 || character > 0x10ffff) break;
        at += put_utf8(bytes + at, character);
    }
    bytes[at] = '\0';
}

VR_NOINLINE static uint32_t copy_code(const struct vr_python_layout *layout, uint64_t code, uint64_t key) {
    char name[TEXT_MAX * 4 + 1], filename[TEXT_MAX * 4 + 1];
    copy_text(layout, word_at(code + layout->code_name), name);
    copy_text(layout, word_at(code + layout->code_filename), filename);
    const uint64_t lines = word_at(code + layout->code_lines);
    const struct vr_python_code copy = {.name = name,
                                        .filename = filename,
                                        .lines = (const unsigned char *)(uintptr_t)(lines + BYTES_DATA),
                                        .line_bytes = (size_t)word_at(lines + BYTES_SIZE),
                                        .first_line = (int32_t)int_at(code + layout->code_first_line),
                                        .form = layout->lines};
    return vr_codes_add(key, &copy);
}

VR_INLINE uint64_t blend(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

VR_INLINE uint64_t blend_bytes(uint64_t hash, uint64_t at, uint64_t bytes) {
    uint64_t word = 0;
    for (; bytes >= 8; at += 8, bytes -= 8) hash = blend(hash, word_at(at));
    memcpy(&word, (const char *)(uintptr_t)at, (size_t)bytes);
    return blend(hash, word);
}

// Returns Python's own hash of a string, or a hash of its bytes if Python never computed one.
VR_INLINE uint64_t text_key(const struct vr_python_layout *layout, uint64_t text) {
    const uint64_t hash = word_at(text + TEXT_HASH);
    if (VR_LIKELY(hash != UINT64_MAX)) return hash;
    const uint32_t state = int_at(text + TEXT_STATE);
    return blend_bytes(state, text_data(layout, text, state), word_at(text + TEXT_LENGTH) * (state >> 2 & 7));
}

// Returns a key that distinguishes a code object from another one that later takes its address: its name and file, its first line, and its
// line table (of a long table, the length and both ends).
VR_INLINE uint64_t key_of(const struct vr_python_layout *layout, uint64_t code) {
    enum { WHOLE = 128, END = 32 };
    const uint64_t lines = word_at(code + layout->code_lines), bytes = word_at(lines + BYTES_SIZE), data = lines + BYTES_DATA;
    uint64_t key = blend(code, text_key(layout, word_at(code + layout->code_name)));
    key = blend(key, text_key(layout, word_at(code + layout->code_filename)));
    key = blend(key, bytes << 32 ^ int_at(code + layout->code_first_line));
    if (bytes <= WHOLE) {
        key = blend_bytes(key, data, bytes);
    } else {
        key = blend_bytes(key, data, END);
        key = blend_bytes(key, data + bytes - END, END);
    }
    return key == 0 ? 1 : key;
}

// --- frames --------------------------------------------------------------------------------------------------------------------

VR_INLINE bool ends_call(const struct vr_python_layout *layout, uint64_t frame) {
    return byte_at(frame + layout->frame_owner) >= OWNED_BY_C_STACK;
}

// At the start of a walk, skips frames that do not belong to a program: those that end a call.
static void skip_shims(struct vr_python_walk *walk) {
    const struct vr_python_layout *layout = walk->layout;
    if (layout->chain != RECORD_SHIMS && layout->chain != SHIMS) return;
    while (walk->frame != 0 && ends_call(layout, walk->frame)) {
        walk->frame = word_at(walk->frame + layout->frame_previous);
    }
}

bool vr_python_begin(struct vr_python_walk *walk) {
    *walk = (struct vr_python_walk){.layout = NULL};
    if (VR_UNLIKELY(atomic_load_explicit(&found, memory_order_acquire) != 2) && !look_again()) return false;
    if (interpreter.is_initialized() == 0 || interpreter.is_finalizing() != 0) return false;
    const uint64_t thread = (uint64_t)(uintptr_t)interpreter.this_thread();
    if (thread == 0) return false;
    const struct vr_python_layout *layout = interpreter.layout;
    walk->layout = layout;
    if (layout->thread_record != 0) walk->marker = word_at(thread + layout->thread_record);
    if (layout->chain == RECORDS || layout->chain == RECORD_SHIMS) {
        if (walk->marker == 0) return false;
        walk->frame = word_at(walk->marker + layout->record_frame);
    } else {
        walk->frame = word_at(thread + layout->thread_frame);
    }
    skip_shims(walk);
    return walk->frame != 0;
}

uint64_t vr_python_anchor(const struct vr_python_walk *walk) {
    const struct vr_python_layout *layout = walk->layout;
    if (layout->chain != RECORD_SHIMS && layout->chain != SHIMS) return walk->marker;
    uint64_t frame = walk->frame;
    while (frame != 0 && !ends_call(layout, frame)) frame = word_at(frame + layout->frame_previous);
    return frame;
}

bool vr_python_is_loop(const struct vr_python_walk *walk, uint64_t pc) {
    return walk->layout != NULL && pc > interpreter.loop_start && pc <= interpreter.loop_end;
}

// Returns the word of the frame; 0 for a frame that has not begun yet or is of an unsupported kind.
VR_INLINE uint64_t word_of(const struct vr_python_layout *layout, uint64_t frame) {
    const uint64_t code = word_at(frame + layout->frame_code) & ~(uint64_t)REFERENCE_TAG;
    if (code == 0 || word_at(code + OBJECT_TYPE) != interpreter.code_type) return 0;
    uint64_t offset;
    if (layout->lasti_unit != 0) {
        const int32_t lasti = (int32_t)int_at(frame + layout->frame_instruction);
        offset = lasti < 0 ? 0 : (uint64_t)lasti * layout->lasti_unit;
    } else {
        const uint64_t start = code + layout->code_start, instruction = word_at(frame + layout->frame_instruction);
        const uint64_t first = (uint64_t)(int32_t)int_at(code + layout->code_first_traceable) * 2;
        if (instruction < start + first && byte_at(frame + layout->frame_owner) != OWNED_BY_GENERATOR) return 0;
        offset = instruction < start ? 0 : instruction - start;
    }
    const uint64_t key = key_of(layout, code);
    uint32_t id = vr_codes_find(key);
    if (VR_UNLIKELY(id == UINT32_MAX)) id = copy_code(layout, code, key);
    return id == UINT32_MAX ? 0 : VR_PYTHON_WORD | (uint64_t)id << 32 | (offset & UINT32_MAX);
}

// Moves past a frame; returns true if it was the outermost of its group.
VR_INLINE bool leave(struct vr_python_walk *walk) {
    const struct vr_python_layout *layout = walk->layout;
    const uint64_t frame = walk->frame;
    walk->frame = word_at(frame + layout->frame_previous);
    switch (layout->chain) {
    case FRAME_OBJECTS: return true;
    case FRAME_RECORDS:
        if (walk->marker != 0) walk->marker = word_at(walk->marker + layout->record_previous);
        return true;
    case RECORDS:
        if (byte_at(frame + layout->frame_is_entry) == 0) return false;
        if (walk->marker != 0) walk->marker = word_at(walk->marker + layout->record_previous);
        return true;
    default: break;
    }
    if (walk->frame == 0 || !ends_call(layout, walk->frame)) return false;
    skip_shims(walk);
    return true;
}

size_t vr_python_group(struct vr_python_walk *walk, uint64_t *words, size_t capacity) {
    size_t count = 0;
    bool last = false;
    while (!last && walk->frame != 0 && count < capacity) {
        const uint64_t word = word_of(walk->layout, walk->frame);
        if (word != 0) words[count++] = word;
        last = leave(walk);
    }
    return count;
}

bool vr_python_resolve(uint64_t word, const char **name, const char **filename, int64_t *line) {
    const struct vr_python_code *code = vr_codes_get((uint32_t)(word >> 32) & 0x7fffffff);
    if ((word & VR_PYTHON_WORD) == 0 || code == NULL) return false;
    *name = code->name;
    *filename = code->filename;
    *line = vr_python_line(code, word & UINT32_MAX);
    return true;
}

uint64_t vr_python_bytes(void) { return vr_codes_bytes(); }
