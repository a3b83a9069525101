#include "history/symbols.h"

// The parts of the format that are read; all fields little-endian.
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

static bool inside(const struct vr_elf *elf, uint64_t offset, uint64_t bytes) {
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
    if (!inside(&opened, opened.sections, (uint64_t)opened.section_count * opened.section_bytes)) return false;
    *elf = opened;
    return true;
}

// False for a section that is not there, or not whole.
static bool get_section(const struct vr_elf *elf, uint32_t index, struct section *section) {
    if (index >= elf->section_count) return false;
    const unsigned char *at = elf->bytes + elf->sections + (uint64_t)index * elf->section_bytes;
    *section = (struct section){.name = (uint32_t)number(at, 4),
                                .type = (uint32_t)number(at + 4, 4),
                                .offset = number(at + 24, 8),
                                .size = number(at + 32, 8),
                                .link = (uint32_t)number(at + 40, 4)};
    const bool packed = (number(at + 8, 8) & SECTION_COMPRESSED) != 0;
    return section->type == SECTION_NO_BYTES || (!packed && inside(elf, section->offset, section->size));
}

// A string of a table of strings; NULL for one that does not end in it.
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

// How good a name is: global before weak before local, without leading underscores before with them. Never 0.
static uint8_t rank_of(unsigned binding, const char *name) {
    const uint8_t rank = binding == 1 ? 5 : binding == 0 ? 1 : 3;
    return (uint8_t)(name[0] == '_' && name[1] == '_' ? rank : rank + 1);
}

// The first of the offsets whose address is at or after `address`.
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
        if ((type != 2 && type != 10) || number(at + 6, 2) == 0 || bytes == 0) continue; // functions that are defined
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
    if (!get_section(elf, (uint32_t)number(elf->bytes + 62, 2), &names)) return true; // where it is not known
    for (uint32_t i = 0; i < elf->section_count; i++) {
        (void)get_section(elf, i, &section); // a packed one has a name
        const char *name = get_text(elf, &names, section.name);
        for (size_t k = 0; name != NULL && k < VR_COUNT_OF(known); k++)
            if (strcmp(name, known[k]) == 0) return true;
    }
    return false;
}
