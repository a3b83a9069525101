#include "history/symbols.h"
#include "os/once.h"

// The parts of ELF that are read; all fields are little-endian.
enum { HEADER_BYTES = 64, SECTION_BYTES = 64, SYMBOL_BYTES = 24 };
enum { SECTION_SYMBOLS = 2, SECTION_NOTES = 7, SECTION_NO_BYTES = 8, SECTION_DYNAMIC_SYMBOLS = 11, SECTION_COMPRESSED = 0x800 };

struct section {
    uint32_t name;
    uint32_t type;
    uint64_t offset;
    uint64_t size;
    uint32_t link;
};

static uint64_t number(const unsigned char *at, size_t bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

static bool offset_inside(const struct vr_elf *elf, uint64_t offset, uint64_t bytes) {
    return offset <= elf->size_bytes && bytes <= elf->size_bytes - offset;
}

bool vr_elf_open(struct vr_elf *elf, const unsigned char *bytes, uint64_t size_bytes) {
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2 /* 64 bits */, 1 /* little-endian */, 1};
    if (size_bytes < HEADER_BYTES || memcmp(bytes, magic, sizeof magic) != 0) return false;
    struct vr_elf opened = {.bytes = bytes, .size_bytes = size_bytes};
    opened.sections = number(bytes + 40, 8);
    opened.section_bytes = (uint32_t)number(bytes + 58, 2);
    opened.section_count = (uint32_t)number(bytes + 60, 2);
    if (opened.section_bytes < SECTION_BYTES) opened.section_count = 0;
    if (!offset_inside(&opened, opened.sections, (uint64_t)opened.section_count * opened.section_bytes)) return false;
    *elf = opened;
    return true;
}

// Returns false for a section that is missing or truncated.
static bool get_section(const struct vr_elf *elf, uint32_t index, struct section *section) {
    if (index >= elf->section_count) return false;
    const unsigned char *at = elf->bytes + elf->sections + (uint64_t)index * elf->section_bytes;
    *section = (struct section){.name = (uint32_t)number(at, 4),
                                .type = (uint32_t)number(at + 4, 4),
                                .offset = number(at + 24, 8),
                                .size = number(at + 32, 8),
                                .link = (uint32_t)number(at + 40, 4)};
    const bool packed = (number(at + 8, 8) & SECTION_COMPRESSED) != 0;
    return section->type == SECTION_NO_BYTES || (!packed && offset_inside(elf, section->offset, section->size));
}

// Returns a string of a string table; NULL if it does not end within the table.
static const char *get_text(const struct vr_elf *elf, const struct section *table, uint64_t at) {
    if (table->type == SECTION_NO_BYTES || at >= table->size) return NULL;
    const char *text = (const char *)elf->bytes + table->offset + at;
    return memchr(text, '\0', (size_t)(table->size - at)) == NULL ? NULL : text;
}

static bool find_note(const unsigned char *at, const unsigned char *end, char *text) {
    while (end - at >= 12) {
        const uint64_t name = number(at, 4), bytes = number(at + 4, 4), type = number(at + 8, 4);
        const uint64_t name_padded = (name + 3) & ~(uint64_t)3, padded = (bytes + 3) & ~(uint64_t)3;
        at += 12;
        if (name_padded + padded > (uint64_t)(end - at)) return false;
        if (type == 3 && name == 4 && memcmp(at, "GNU", 4) == 0 && bytes <= 64) {
            static const char digits[] = "0123456789abcdef";
            for (uint64_t i = 0; i < bytes; i++) {
                text[2 * i] = digits[at[name_padded + i] >> 4];
                text[2 * i + 1] = digits[at[name_padded + i] & 15];
            }
            text[2 * bytes] = '\0';
            return true;
        }
        at += name_padded + padded;
    }
    return false;
}

void vr_elf_build_id(const struct vr_elf *elf, char *text) {
    struct section section;
    text[0] = '\0';
    for (uint32_t i = 0; i < elf->section_count; i++) {
        if (!get_section(elf, i, &section) || section.type != SECTION_NOTES) continue;
        const unsigned char *notes = elf->bytes + section.offset;
        if (find_note(notes, notes + section.size, text)) return;
    }
}

// Ranks a name: global over weak over local; without leading underscores over with them. Never 0.
static uint8_t rank_of(unsigned binding, const char *name) {
    const uint8_t rank = binding == 1 ? 5 : binding == 0 ? 1 : 3;
    return (uint8_t)(name[0] == '_' && name[1] == '_' ? rank : rank + 1);
}

// Returns the first offset whose address is at or after `address`.
static size_t first_at(const uint64_t *offsets, size_t count, uint64_t address) {
    size_t first;
    VR_LOWER_BOUND(first, i, 0, count, offsets[i] - 1 < address);
    return first;
}

static void match_symbols(const struct vr_elf *elf, const struct section *symbols, const uint64_t *offsets, size_t count,
                          const char **names, uint8_t *ranks) {
    struct section strings;
    if (!get_section(elf, symbols->link, &strings)) return;
    const unsigned char *at = elf->bytes + symbols->offset, *end = at + symbols->size / SYMBOL_BYTES * SYMBOL_BYTES;
    for (; at < end; at += SYMBOL_BYTES) {
        const unsigned type = at[4] & 15, binding = at[4] >> 4;
        const uint64_t start = number(at + 8, 8), bytes = number(at + 16, 8);
        if ((type != 2 && type != 10) || number(at + 6, 2) == 0 || bytes == 0) continue; // only defined functions
        size_t i = first_at(offsets, count, start);
        if (i == count || offsets[i] - 1 - start >= bytes) continue;
        const char *name = get_text(elf, &strings, number(at, 4));
        if (name == NULL || name[0] == '\0') continue;
        const uint8_t rank = rank_of(binding, name);
        for (; i < count && offsets[i] - 1 - start < bytes; i++) {
            if (rank <= ranks[i]) continue;
            ranks[i] = rank;
            names[i] = name;
        }
    }
}

void vr_elf_names(const struct vr_elf *elf, const uint64_t *offsets, size_t count, const char **names, uint8_t *ranks) {
    struct section section;
    for (uint32_t i = 0; i < elf->section_count; i++) {
        if (!get_section(elf, i, &section)) continue;
        if (section.type == SECTION_SYMBOLS || section.type == SECTION_DYNAMIC_SYMBOLS) {
            match_symbols(elf, &section, offsets, count, names, ranks);
        }
    }
}

bool vr_elf_has_debug(const struct vr_elf *elf) {
    static const char *const known[] = {".debug_info", ".zdebug_info", ".debug_line", ".zdebug_line"};
    struct section names, section = {.name = 0};
    if (!get_section(elf, (uint32_t)number(elf->bytes + 62, 2), &names)) return true; // unknown
    for (uint32_t i = 0; i < elf->section_count; i++) {
        (void)get_section(elf, i, &section); // a compressed one still has a name
        const char *name = get_text(elf, &names, section.name);
        for (size_t k = 0; name != NULL && k < VR_COUNT_OF(known); k++)
            if (strcmp(name, known[k]) == 0) return true;
    }
    return false;
}

// Reads lines and inlined functions through elfutils' libdw, loaded when first needed. Uses only its stable interface for plain DWARF, of
// which the called parts are declared here.

// --- libdw ---------------------------------------------------------------------------------------------------------------------

struct dwarf_die { // Dwarf_Die
    void *address;
    void *unit;
    void *abbreviation;
    long padding;
};
struct dwarf_attribute { // Dwarf_Attribute
    unsigned code;
    unsigned form;
    unsigned char *value;
    void *unit;
};

enum { TAG_SUBPROGRAM = 0x2e, TAG_INLINED = 0x1d, TAG_NAMESPACE = 0x39, TAG_BLOCK = 0x0b, TAG_CLASS = 0x02, TAG_STRUCTURE = 0x13 };
enum { AT_NAME = 0x03, AT_CALL_FILE = 0x58, AT_CALL_LINE = 0x59, AT_LINKAGE_NAME = 0x6e, AT_MIPS_LINKAGE_NAME = 0x2007 };

#define DWARF_CALLS(X)                                                                                                                     \
    X(void *, begin, (int file, int command))                                                                                              \
    X(int, end, (void *dwarf))                                                                                                             \
    X(int, errno, (void))                                                                                                                  \
    X(void *, new_oom_handler, (void *dwarf, void (*handler)(void)))                                                                       \
    X(int, nextcu,                                                                                                                         \
      (void *dwarf, uint64_t offset, uint64_t *next, size_t *header, uint64_t *abbreviations, uint8_t *address_size,                       \
       uint8_t *offset_size))                                                                                                              \
    X(struct dwarf_die *, offdie, (void *dwarf, uint64_t offset, struct dwarf_die *die))                                                   \
    X(ptrdiff_t, ranges, (struct dwarf_die * die, ptrdiff_t at, uint64_t * base, uint64_t * start, uint64_t * end))                        \
    X(int, child, (struct dwarf_die * die, struct dwarf_die * child))                                                                      \
    X(int, siblingof, (struct dwarf_die * die, struct dwarf_die * sibling))                                                                \
    X(int, tag, (struct dwarf_die * die))                                                                                                  \
    X(void *, getsrc_die, (struct dwarf_die * unit, uint64_t address))                                                                     \
    X(int, lineno, (void *line, int *number))                                                                                              \
    X(const char *, linesrc, (void *line, uint64_t *modified, uint64_t *length))                                                           \
    X(int, getsrcfiles, (struct dwarf_die * unit, void **files, size_t *count))                                                            \
    X(const char *, filesrc, (void *files, size_t index, uint64_t *modified, uint64_t *length))                                            \
    X(struct dwarf_attribute *, attr_integrate, (struct dwarf_die * die, unsigned name, struct dwarf_attribute *attribute))                \
    X(struct dwarf_attribute *, attr, (struct dwarf_die * die, unsigned name, struct dwarf_attribute *attribute))                          \
    X(const char *, formstring, (struct dwarf_attribute * attribute))                                                                      \
    X(int, formudata, (struct dwarf_attribute * attribute, uint64_t * value))

static struct {
#define DWARF_POINTER(result, name, arguments) result(*name) arguments;
    DWARF_CALLS(DWARF_POINTER)
#undef DWARF_POINTER
} dw;

static struct vr_once prepared;
static bool have_libdw; // valid once prepared

static bool load_libdw(void) {
    void *library = vr_os_dlopen("libdw.so.1", NULL);
    if (library == NULL) return false;
    void *symbol;
#define DWARF_LOAD(result, name, arguments)                                                                                                \
    symbol = vr_os_dlsym(library, "dwarf_" #name);                                                                                         \
    if (symbol == NULL) return false;                                                                                                      \
    memcpy(&dw.name, &symbol, sizeof symbol);
    DWARF_CALLS(DWARF_LOAD)
#undef DWARF_LOAD
    return true;
}

static void prepare_libdw(void) { have_libdw = load_libdw(); }

bool vr_dwarf_load(void) {
    vr_once(&prepared, prepare_libdw);
    return have_libdw;
}

void vr_dwarf_wake(void) { (void)dw.errno(); }

// --- one unit ------------------------------------------------------------------------------------------------------------------

enum { DEPTH_MAX = 64, NESTING_MAX = 256 };

struct dwarf_task {
    const uint64_t *offsets;
    size_t count;
    const char *const *names;
    bool *found;
    const struct vr_symbol_sink *sink;
    struct dwarf_die *unit;
    void *files; // of the unit
    size_t file_count;
};

// A path of DIEs to an address: the function and the functions inlined in it, outermost first.
struct path {
    struct dwarf_die dies[DEPTH_MAX];
    size_t count;
};

static bool die_covers(struct dwarf_die *die, uint64_t address) {
    uint64_t base, start, end;
    for (ptrdiff_t at = 0; (at = dw.ranges(die, at, &base, &start, &end)) > 0;) {
        if (address >= start && address < end) return true;
    }
    return false;
}

// Extends the path, level by level, by the functions inlined at the address.
static void descend_path(struct path *path, uint64_t address) {
    struct dwarf_die scope = path->dies[0], child;
    for (unsigned nesting = 0; nesting < NESTING_MAX && path->count < DEPTH_MAX; nesting++) {
        if (dw.child(&scope, &child) != 0) return;
        bool found = false;
        do {
            const int tag = dw.tag(&child);
            found = (tag == TAG_INLINED || tag == TAG_BLOCK) && die_covers(&child, address);
            if (found && tag == TAG_INLINED) path->dies[path->count++] = child;
        } while (!found && dw.siblingof(&child, &child) == 0);
        if (!found) return;
        scope = child;
    }
}

static const char *text_of(struct dwarf_die *die, unsigned name) {
    struct dwarf_attribute attribute;
    return dw.attr_integrate(die, name, &attribute) == NULL ? NULL : dw.formstring(&attribute);
}

static const char *name_of(struct dwarf_die *die) {
    const char *name = text_of(die, AT_LINKAGE_NAME);
    if (name == NULL) name = text_of(die, AT_MIPS_LINKAGE_NAME);
    return name != NULL ? name : text_of(die, AT_NAME);
}

static uint64_t number_of(struct dwarf_die *die, unsigned name) {
    struct dwarf_attribute attribute;
    uint64_t value = 0;
    if (dw.attr(die, name, &attribute) == NULL || dw.formudata(&attribute, &value) != 0) return 0;
    return value;
}

static enum vram_status emit_path(const struct dwarf_task *task, size_t index, struct path *path) {
    int line = 0;
    const char *filename = NULL;
    void *row = dw.getsrc_die(task->unit, task->offsets[index] - 1);
    if (row != NULL) {
        (void)dw.lineno(row, &line);
        filename = dw.linesrc(row, NULL, NULL);
    }
    for (size_t i = path->count; i-- > 0;) {
        struct dwarf_die *die = &path->dies[i];
        const char *name = name_of(die);
        if (i == 0 && task->names[index] != NULL) name = task->names[index];
        VR_TRY(task->sink->frame(task->sink->context, index, name == NULL ? "" : name, filename, line));
        line = (int)number_of(die, AT_CALL_LINE);
        const uint64_t file = number_of(die, AT_CALL_FILE);
        filename = file < task->file_count ? dw.filesrc(task->files, (size_t)file, NULL, NULL) : NULL;
    }
    task->found[index] = true;
    return VRAM_OK;
}

// Returns the first address at or after `address`.
static size_t first_row_at(const struct dwarf_task *task, uint64_t address) {
    size_t first;
    VR_LOWER_BOUND(first, i, 0, task->count, task->offsets[i] - 1 < address);
    return first;
}

static enum vram_status emit_function(const struct dwarf_task *task, struct dwarf_die *function) {
    uint64_t base, start, end;
    struct path path;
    for (ptrdiff_t at = 0; (at = dw.ranges(function, at, &base, &start, &end)) > 0;) {
        for (size_t i = first_row_at(task, start); i < task->count && task->offsets[i] - 1 < end; i++) {
            if (task->found[i]) continue;
            path.dies[0] = *function;
            path.count = 1;
            descend_path(&path, task->offsets[i] - 1);
            VR_TRY(emit_path(task, i, &path));
        }
    }
    return VRAM_OK;
}

// Emits the functions of a unit, including those inside namespaces and classes.
static enum vram_status emit_functions(const struct dwarf_task *task, struct dwarf_die *scope, unsigned nesting) {
    struct dwarf_die child;
    if (nesting == DEPTH_MAX || dw.child(scope, &child) != 0) return VRAM_OK;
    do {
        const int tag = dw.tag(&child);
        if (tag == TAG_SUBPROGRAM) VR_TRY(emit_function(task, &child));
        if (tag == TAG_NAMESPACE || tag == TAG_CLASS || tag == TAG_STRUCTURE) VR_TRY(emit_functions(task, &child, nesting + 1));
    } while (dw.siblingof(&child, &child) == 0);
    return VRAM_OK;
}

// Emits lines of addresses that are in the unit but in no function it describes, such as assembly.
static enum vram_status emit_rest(const struct dwarf_task *task, struct dwarf_die *unit) {
    uint64_t base, start, end;
    for (ptrdiff_t at = 0; (at = dw.ranges(unit, at, &base, &start, &end)) > 0;) {
        for (size_t i = first_row_at(task, start); i < task->count && task->offsets[i] - 1 < end; i++) {
            if (task->found[i] || task->names[i] == NULL) continue;
            void *row = dw.getsrc_die(unit, task->offsets[i] - 1);
            int line = 0;
            if (row == NULL || dw.lineno(row, &line) != 0) continue;
            VR_TRY(task->sink->frame(task->sink->context, i, task->names[i], dw.linesrc(row, NULL, NULL), line));
            task->found[i] = true;
        }
    }
    return VRAM_OK;
}

static bool any_inside(const struct dwarf_task *task, struct dwarf_die *unit) {
    uint64_t base, start, end;
    for (ptrdiff_t at = 0; (at = dw.ranges(unit, at, &base, &start, &end)) > 0;) {
        const size_t i = first_row_at(task, start);
        if (i < task->count && task->offsets[i] - 1 < end) return true;
    }
    return false;
}

static enum vram_status find_places(int file, struct dwarf_task *task, void (*give_up)(void)) {
    void *dwarf = dw.begin(file, 0);
    if (dwarf == NULL) return VRAM_UNSUPPORTED;
    (void)dw.new_oom_handler(dwarf, give_up);
    enum vram_status status = VRAM_OK;
    bool any = false;
    uint64_t offset = 0, next;
    size_t header;
    while (status == VRAM_OK && dw.nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0 && next > offset) {
        struct dwarf_die unit;
        any = true;
        if (dw.offdie(dwarf, offset + header, &unit) != NULL && any_inside(task, &unit)) {
            task->unit = &unit;
            task->file_count = 0;
            if (dw.getsrcfiles(&unit, &task->files, &task->file_count) != 0) task->file_count = 0;
            status = emit_functions(task, &unit, 0);
            if (status == VRAM_OK) status = emit_rest(task, &unit);
        }
        offset = next;
        if (task->sink->working != NULL) task->sink->working(task->sink->context);
    }
    (void)dw.end(dwarf);
    return status == VRAM_OK && !any ? VRAM_UNSUPPORTED : status;
}

enum vram_status vr_dwarf_find(int file, const uint64_t *offsets, size_t count, const char *const *names, bool *found,
                               void (*give_up)(void), const struct vr_symbol_sink *sink) {
    struct dwarf_task task = {.offsets = offsets, .count = count, .names = names, .found = found, .sink = sink};
    return find_places(file, &task, give_up);
}
