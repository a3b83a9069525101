// Reader of cubins and PTX: kernels, variables and their sizes.
#include "sim/modules/sim_image.h"

#include "sim/modules/sim_ptx.h"

#include <stdlib.h>
#include <string.h>

// ---- Kernels and variables of an image.

enum { SMALL_REGISTERS = 32 }; // assumed for an unknown kernel

static char *copy_name(const char *name, size_t length) {
    char *copy = malloc(length + 1);
    if (copy == NULL) return NULL;
    if (length > 0) memcpy(copy, name, length);
    copy[length] = '\0';
    return copy;
}

// Matches PyTorch's torch.cuda._sleep and the kernel of NVIDIA's samples, which poll clock64() until a number of cycles has passed.
static bool is_spinning(const char *name) { return strstr(name, "spin_kernel") != NULL; }

struct vr_sim_kernel *vr_sim_image_add_kernel(struct vr_sim_image *image, const char *name, size_t length) {
    if (VR_GROW(image, kernels, image->kernel_count + 1) != VRAM_OK) return NULL;
    char *copy = copy_name(name, length);
    if (copy == NULL) return NULL;
    struct vr_sim_kernel *kernel = &image->kernels[image->kernel_count++];
    *kernel = (struct vr_sim_kernel){
        .name = copy, .registers = SMALL_REGISTERS, .spins = is_spinning(copy), .fill_value_bytes = vr_sim_fill_value_bytes(copy)};
    return kernel;
}

static bool sim_image_add_variable(struct vr_sim_image *image, const char *name, size_t length, uint64_t size_bytes, bool managed) {
    if (VR_GROW(image, variables, image->variable_count + 1) != VRAM_OK) return false;
    char *copy = copy_name(name, length);
    if (copy == NULL) return false;
    image->variables[image->variable_count++] = (struct vr_sim_variable){copy, size_bytes, managed};
    return true;
}

// Adds a parameter. Parameters come in any order; those that have not come yet are zero.
bool vr_sim_kernel_add_parameter(struct vr_sim_kernel *kernel, uint32_t ordinal, uint32_t offset_bytes, uint32_t size_bytes) {
    if (ordinal >= 4096) return true; // a kernel's parameters take at most 32,764 bytes
    const size_t needed = (size_t)ordinal + 1;
    if (VR_GROW(kernel, parameters, needed) != VRAM_OK) return false;
    for (; kernel->parameter_count < needed; kernel->parameter_count++)
        kernel->parameters[kernel->parameter_count] = (struct vr_sim_parameter){0, 0};
    kernel->parameters[ordinal] = (struct vr_sim_parameter){offset_bytes, size_bytes};
    return true;
}

size_t vr_sim_image_kernel(struct vr_sim_image *image, const char *name) {
    for (size_t i = 0; i < image->kernel_count; i++)
        if (strcmp(image->kernels[i].name, name) == 0) return i;
    if (!image->open || name[0] == '\0' || vr_sim_image_add_kernel(image, name, strlen(name)) == NULL) return SIZE_MAX;
    return image->kernel_count - 1;
}

size_t vr_sim_image_variable(const struct vr_sim_image *image, const char *name) {
    for (size_t i = 0; i < image->variable_count; i++)
        if (strcmp(image->variables[i].name, name) == 0) return i;
    return SIZE_MAX;
}

void vr_sim_image_release(struct vr_sim_image *image) {
    if (image == NULL || --image->references > 0) return;
    for (size_t i = 0; i < image->kernel_count; i++) {
        free(image->kernels[i].name);
        free(image->kernels[i].parameters);
        free(image->kernels[i].outputs);
        free(image->kernels[i].operands);
        free(image->kernels[i].effects);
    }
    for (size_t i = 0; i < image->variable_count; i++) free(image->variables[i].name);
    free(image->kernels);
    free(image->variables);
    free(image);
}

// ---- Reader of cubins. A cubin is an ELF file. NVIDIA's additions are not published; what is read here was derived with ptxas: a kernel
// is a function with bit 0x10 of st_other; .nv.info sections hold attributes (form, number, and two bytes of value or length);
// .nv.shared.<kernel> has the size of the kernel's shared memory. Every offset is checked against the length of the file.

enum {
    MACHINE_CUDA = 190,
    HEADER = 64,
    SECTION = 64,
    SYMBOL = 24,
    TYPE_SYMBOLS = 2,
    TYPE_NO_BYTES = 8,
    KIND_OBJECT = 1,
    KIND_FUNCTION = 2,
    OTHER_MANAGED = 0x04,
    OTHER_KERNEL = 0x10,
    ABI_SECOND = 8, // since this version, the second byte of the flags is the architecture
    FLAG_EXACT = 0x800,
    FORM_SIZED = 4, // form of an attribute: the two bytes are the length of the data after them
    INFO_MOST_THREADS = 0x05,
    INFO_FRAME = 0x11,
    INFO_STACK = 0x12, // with the frames of the functions that it calls
    INFO_PARAMETER = 0x17,
    INFO_REGISTERS = 0x2f,
    INFO_LARGE_PARAMETER = 0x45, // of kernels with more than 4 KiB of parameters
    COMPAT_EXACT = 0x09,
    RESERVED_SHARED = 1024, // reserved by the system in each block's shared memory from 9.0 on; not an attribute of a kernel
};

struct cubin {
    const char *bytes;
    size_t size_bytes;
    const char *sections; // the table
    uint32_t count;
    uint32_t architecture;
    struct vr_sim_image *image;
    uint32_t *kernels; // by section: index of the kernel with that text, plus one
    size_t *symbols;   // by symbol: index of the kernel, plus one
    size_t symbol_count;
};

static uint64_t load_field(const char *bytes, size_t at, size_t width) {
    uint64_t value = 0;
    memcpy(&value, bytes + at, width);
    return value;
}

// Returns [at, at + size_bytes) of the file, or NULL.
static const char *file_part(const struct cubin *file, uint64_t at, uint64_t size_bytes) {
    return at <= file->size_bytes && size_bytes <= file->size_bytes - at ? file->bytes + at : NULL;
}

static const char *section_at(const struct cubin *file, uint64_t index) {
    return index < file->count ? file->sections + index * SECTION : NULL;
}

static uint64_t section_size(const char *section) { return load_field(section, 0x20, 8); }

// Returns the bytes of a section, or NULL if it has no bytes or an invalid header.
static const char *section_content(const struct cubin *file, const char *section, size_t *size_bytes) {
    const char *bytes =
        load_field(section, 4, 4) == TYPE_NO_BYTES ? NULL : file_part(file, load_field(section, 0x18, 8), section_size(section));
    *size_bytes = bytes == NULL ? 0 : (size_t)section_size(section);
    return bytes;
}

// Returns a string of a string table, or "" if the offset is invalid.
static const char *string_at(const struct cubin *file, const char *table, uint64_t at) {
    size_t size;
    const char *bytes = table == NULL ? NULL : section_content(file, table, &size);
    return bytes != NULL && at < size && memchr(bytes + at, '\0', size - (size_t)at) != NULL ? bytes + at : "";
}

static bool open_cubin(struct cubin *file, const char *bytes, size_t size_bytes) {
    *file = (struct cubin){.bytes = bytes, .size_bytes = size_bytes};
    if (size_bytes < HEADER || bytes[4] != 2 || load_field(bytes, 0x12, 2) != MACHINE_CUDA || load_field(bytes, 0x3a, 2) != SECTION)
        return false;
    file->count = (uint32_t)load_field(bytes, 0x3c, 2);
    file->sections = file_part(file, load_field(bytes, 0x28, 8), (uint64_t)file->count * SECTION);
    return file->sections != NULL;
}

static const char *section_name(const struct cubin *file, const char *section) {
    return string_at(file, section_at(file, load_field(file->bytes, 0x3e, 2)), load_field(section, 0, 4));
}

// Returns the rest of the name after a prefix, or NULL.
static const char *name_after(const char *name, const char *prefix) {
    const size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? name + length : NULL;
}

// --- attributes -----------------------------------------------------------------------------------------------------

typedef bool on_attribute(struct cubin *file, struct vr_sim_kernel *kernel, unsigned number, const char *value, size_t size_bytes);

// Calls `visit` for each attribute until it returns false.
static bool walk_attributes(struct cubin *file, const char *section, struct vr_sim_kernel *kernel, on_attribute *visit) {
    size_t size, at = 0;
    const char *bytes = section_content(file, section, &size);
    while (size - at >= 4) {
        const unsigned form = (unsigned char)bytes[at], number = (unsigned char)bytes[at + 1];
        const size_t length = form == FORM_SIZED ? (size_t)load_field(bytes, at + 2, 2) : 0;
        const char *value = form == FORM_SIZED ? bytes + at + 4 : bytes + at + 2;
        if (length > size - at - 4) return true;
        if (!visit(file, kernel, number, value, form == FORM_SIZED ? length : 2)) return false;
        at += 4 + length;
    }
    return true;
}

// Handles an attribute of one kernel.
static bool on_kernel(struct cubin *file, struct vr_sim_kernel *kernel, unsigned number, const char *value, size_t size_bytes) {
    (void)file;
    if (number == INFO_MOST_THREADS && size_bytes >= 12) {
        const uint64_t threads = load_field(value, 0, 4) * load_field(value, 4, 4);
        kernel->most_threads =
            threads * load_field(value, 8, 4) <= 1024 && threads <= 1024 ? (uint32_t)(threads * load_field(value, 8, 4)) : 0;
    }
    if ((number != INFO_PARAMETER && number != INFO_LARGE_PARAMETER) || size_bytes < 12) return true;
    // The size is in the upper 14 bits of the last word, or in the lower 16 for a large parameter.
    const uint32_t size = (uint32_t)load_field(value, 8, 4);
    return vr_sim_kernel_add_parameter(kernel, (uint32_t)load_field(value, 4, 2), (uint32_t)load_field(value, 6, 2),
                                       number == INFO_PARAMETER ? size >> 18 : size & 0xffff);
}

// Handles an attribute of the file: a value of the kernel that a symbol refers to.
static bool on_file(struct cubin *file, struct vr_sim_kernel *unused, unsigned number, const char *value, size_t size_bytes) {
    (void)unused;
    const uint64_t symbol = size_bytes >= 8 ? load_field(value, 0, 4) : UINT64_MAX;
    if (symbol >= file->symbol_count || file->symbols[symbol] == 0) return true;
    struct vr_sim_kernel *kernel = &file->image->kernels[file->symbols[symbol] - 1];
    if (number == INFO_REGISTERS) kernel->registers = (uint32_t)load_field(value, 4, 4) & 0xff;
    if (number == INFO_FRAME) kernel->local_bytes = (uint32_t)load_field(value, 4, 4);
    if (number == INFO_STACK) kernel->stack_bytes = (uint32_t)load_field(value, 4, 4);
    return true;
}

// --- symbols --------------------------------------------------------------------------------------------------------

static bool is_variable(const struct cubin *file, uint64_t index) {
    const char *section = section_at(file, index);
    const char *name = section == NULL ? "" : section_name(file, section);
    return name_after(name, ".nv.global") != NULL || name_after(name, ".nv.constant3") != NULL;
}

static bool add_symbol(struct cubin *file, const char *symbol, size_t number, const char *name) {
    const unsigned kind = (unsigned char)symbol[4] & 15, other = (unsigned char)symbol[5];
    const uint64_t section = load_field(symbol, 6, 2);
    if (name[0] == '\0') return true;
    if (kind == KIND_OBJECT && is_variable(file, section))
        return sim_image_add_variable(file->image, name, strlen(name), load_field(symbol, 0x10, 8), (other & OTHER_MANAGED) != 0);
    if (kind != KIND_FUNCTION || (other & OTHER_KERNEL) == 0 || section >= file->count) return true;
    struct vr_sim_kernel *kernel = vr_sim_image_add_kernel(file->image, name, strlen(name));
    if (kernel == NULL) return false;
    kernel->has_parameters = true;
    file->kernels[section] = (uint32_t)file->image->kernel_count;
    file->symbols[number] = file->image->kernel_count;
    return true;
}

static vr_cu_result read_symbols(struct cubin *file) {
    for (uint32_t i = 0; i < file->count; i++) {
        const char *section = section_at(file, i);
        if (load_field(section, 4, 4) != TYPE_SYMBOLS) continue;
        size_t size;
        const char *bytes = section_content(file, section, &size), *names = section_at(file, load_field(section, 0x28, 4));
        file->symbol_count = size / SYMBOL;
        file->symbols = calloc(file->symbol_count + 1, sizeof *file->symbols);
        if (file->symbols == NULL) return VR_CU_OUT_OF_MEMORY;
        for (size_t s = 0; s < file->symbol_count; s++) {
            const char *symbol = bytes + s * SYMBOL;
            if (!add_symbol(file, symbol, s, string_at(file, names, load_field(symbol, 0, 4)))) return VR_CU_OUT_OF_MEMORY;
        }
        return VR_CU_SUCCESS;
    }
    return VR_CU_SUCCESS;
}

// Returns the kernel that a section describes, identified by the section of its text.
static struct vr_sim_kernel *kernel_of(const struct cubin *file, const char *section) {
    const uint64_t text = load_field(section, 0x2c, 4);
    return text < file->count && file->kernels[text] != 0 ? &file->image->kernels[file->kernels[text] - 1] : NULL;
}

static uint32_t user_shared(const struct cubin *file, uint64_t size_bytes) {
    const uint64_t reserved = file->architecture >= 90 ? RESERVED_SHARED : 0;
    const uint64_t user = size_bytes > reserved ? size_bytes - reserved : 0;
    return user > UINT32_MAX ? UINT32_MAX : (uint32_t)user;
}

static vr_cu_result read_sections(struct cubin *file) {
    for (uint32_t i = 0; i < file->count; i++) {
        const char *section = section_at(file, i), *name = section_name(file, section);
        struct vr_sim_kernel *kernel = kernel_of(file, section);
        bool fits = true;
        if (strcmp(name, ".nv.info") == 0) fits = walk_attributes(file, section, NULL, on_file);
        if (kernel != NULL && name_after(name, ".nv.info.") != NULL) fits = walk_attributes(file, section, kernel, on_kernel);
        if (kernel != NULL && name_after(name, ".nv.shared.") != NULL) kernel->shared_bytes = user_shared(file, section_size(section));
        if (strcmp(name, ".nv.constant3") == 0 && section_size(section) <= 65536)
            file->image->constant_bytes = (uint32_t)section_size(section);
        if (!fits) return VR_CU_OUT_OF_MEMORY;
    }
    return VR_CU_SUCCESS;
}

// --- the file -------------------------------------------------------------------------------------------------------

// Returns whether the section .nv.compat restricts the file to one architecture.
static bool is_exact(const struct cubin *file) {
    for (uint32_t i = 0; i < file->count; i++) {
        const char *section = section_at(file, i);
        if (strcmp(section_name(file, section), ".nv.compat") != 0) continue;
        size_t size;
        const char *bytes = section_content(file, section, &size);
        for (size_t at = 0; size - at >= 4;) {
            const size_t length = bytes[at] == FORM_SIZED ? (size_t)load_field(bytes, at + 2, 2) : 0;
            if (bytes[at + 1] == COMPAT_EXACT) return bytes[at + 2] == 1;
            if (length > size - at - 4) return false;
            at += 4 + length;
        }
    }
    return false;
}

bool vr_sim_cubin_architecture(const void *bytes, size_t size_bytes, uint32_t *architecture, bool *exact) {
    struct cubin file;
    if (!open_cubin(&file, bytes, size_bytes)) return false;
    const uint64_t flags = load_field(bytes, 0x30, 4);
    const bool second = (unsigned char)file.bytes[8] >= ABI_SECOND;
    *architecture = (uint32_t)(second ? flags >> 8 : flags) & 0xff;
    *exact = second ? is_exact(&file) : (flags & FLAG_EXACT) != 0;
    return true;
}

vr_cu_result vr_sim_cubin_read(struct vr_sim_image *image, const void *bytes, size_t size_bytes) {
    struct cubin file;
    if (!open_cubin(&file, bytes, size_bytes)) return VR_CU_INVALID_IMAGE;
    file.image = image;
    file.architecture = image->binary_version;
    file.kernels = calloc((size_t)file.count + 1, sizeof *file.kernels);
    vr_cu_result result = file.kernels == NULL ? VR_CU_OUT_OF_MEMORY : read_symbols(&file);
    if (result == VR_CU_SUCCESS) result = read_sections(&file);
    free(file.kernels);
    free(file.symbols);
    return result;
}

// ---- Reader of PTX, a documented text language. Registers and local memory depend on the compiler and are unknown; static shared memory
// and parameters are in the text.

// Reads a decimal size. Returns 0 for anything else, or for a number of more than 32 bits.
static uint64_t word_number(struct vr_sim_ptx_word word) {
    uint64_t number = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (word.start[i] < '0' || word.start[i] > '9' || number > UINT32_MAX) return 0;
        number = number * 10 + (uint64_t)(word.start[i] - '0');
    }
    return number;
}

// Returns the bytes of ".u32", ".b64" and the like, or 0 if the word is not such a type.
static uint64_t type_bytes(struct vr_sim_ptx_word word) {
    if (word.length < 3 || word.start[0] != '.' || strchr("busf", word.start[1]) == NULL) return 0;
    const uint64_t bits = word_number((struct vr_sim_ptx_word){word.start + 2, word.length - 2});
    return bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128 ? bits / 8 : 0;
}

// A declaration such as ".align 8 .b8 name[24]".
struct declared {
    struct vr_sim_ptx_word name;
    uint64_t bytes, alignment;
    bool managed;
};

// Reads "(.managed)" and others after ".attribute". Returns true if .managed is among them.
static bool read_attributes(struct vr_sim_ptx_text *reader) {
    bool managed = false;
    for (struct vr_sim_ptx_word word = vr_sim_ptx_next(reader); word.length != 0 && !vr_sim_ptx_equals(word, ")");
         word = vr_sim_ptx_next(reader))
        managed |= vr_sim_ptx_equals(word, ".managed");
    return managed;
}

static struct declared read_declaration(struct vr_sim_ptx_text *reader, struct vr_sim_ptx_word *end) {
    struct declared declared = {.alignment = 1};
    uint64_t count = 1, each = 0;
    for (*end = vr_sim_ptx_next(reader); end->length != 0 && strchr(",;)={(", end->start[0]) == NULL; *end = vr_sim_ptx_next(reader)) {
        if (vr_sim_ptx_equals(*end, ".attribute"))
            declared.managed = read_attributes(reader);
        else if (vr_sim_ptx_equals(*end, ".align"))
            declared.alignment = word_number(vr_sim_ptx_next(reader));
        else if (vr_sim_ptx_equals(*end, ".v2") || vr_sim_ptx_equals(*end, ".v4"))
            count *= end->start[2] == '2' ? 2 : 4;
        else if (vr_sim_ptx_equals(*end, ".ptr"))
            continue;
        else if (end->start[0] == '[')
            count *= word_number(vr_sim_ptx_next(reader));
        else if (type_bytes(*end) != 0)
            each = type_bytes(*end);
        else if (vr_sim_ptx_is_word(end->start[0]) && end->start[0] != '.')
            declared.name = *end;
        if (count > UINT32_MAX) count = 0;
    }
    declared.bytes = count * each;
    if (declared.alignment == 0 || !vr_is_power_of_2(declared.alignment)) declared.alignment = each == 0 ? 1 : each;
    if (declared.alignment < each) declared.alignment = each;
    return declared;
}

static bool read_parameters(struct vr_sim_ptx_text *reader, struct vr_sim_kernel *kernel) {
    uint64_t at = 0;
    kernel->has_parameters = true;
    for (uint32_t i = 0;; i++) {
        struct vr_sim_ptx_word end;
        const struct declared declared = read_declaration(reader, &end);
        if (declared.name.length != 0 && at <= UINT32_MAX / 2) {
            at = vr_round_up(at, declared.alignment);
            if (!vr_sim_kernel_add_parameter(kernel, i, (uint32_t)at, (uint32_t)declared.bytes)) return false;
            at += declared.bytes;
        }
        if (end.length == 0 || !vr_sim_ptx_equals(end, ",")) return true;
    }
}

// Reads the block size of ".maxntid 128, 1, 1" or ".reqntid".
static uint32_t read_most_threads(struct vr_sim_ptx_text *reader) {
    uint64_t threads = 1;
    for (unsigned i = 0; i < 3; i++) {
        threads *= word_number(vr_sim_ptx_next(reader));
        const struct vr_sim_ptx_text before = *reader;
        if (vr_sim_ptx_equals(vr_sim_ptx_next(reader), ",")) continue;
        *reader = before;
        break;
    }
    return threads <= 1024 ? (uint32_t)threads : 0;
}

// Reads from the end of the parameters to the end of the body. Adds up the body's shared variables.
static void read_body(struct vr_sim_ptx_text *reader, struct vr_sim_kernel *kernel) {
    unsigned depth = 0;
    uint64_t shared = 0;
    for (struct vr_sim_ptx_word word = vr_sim_ptx_next(reader); word.length != 0; word = vr_sim_ptx_next(reader)) {
        if (depth == 0 && (vr_sim_ptx_equals(word, ".maxntid") || vr_sim_ptx_equals(word, ".reqntid")))
            kernel->most_threads = read_most_threads(reader);
        if (depth == 0 && vr_sim_ptx_equals(word, ";")) break; // a declaration without a body
        if (vr_sim_ptx_equals(word, "{")) depth++;
        if (depth > 0 && vr_sim_ptx_equals(word, ".shared")) {
            struct vr_sim_ptx_word end;
            const struct declared declared = read_declaration(reader, &end);
            shared = vr_round_up(shared, declared.alignment) + declared.bytes;
            if (shared > UINT32_MAX) shared = 0;
            word = end;
        }
        if (vr_sim_ptx_equals(word, "}") && (depth == 0 || --depth == 0)) break;
    }
    kernel->shared_bytes = (uint32_t)shared;
}

// Returns whether the code has atomic, volatile or ordered accesses: a kernel may wait with them for what another kernel writes.
static bool may_meet(const char *code, size_t length) {
    static const char *const signs[] = {"atom.", ".volatile", ".acquire", ".relaxed", ".sys"};
    bool found = false;
    for (size_t i = 0; i < VR_COUNT_OF(signs); i++)
        for (const char *at = code, *end = code + length; !found && (at = memchr(at, signs[i][0], (size_t)(end - at))) != NULL; at++)
            found = (size_t)(end - at) >= strlen(signs[i]) && memcmp(at, signs[i], strlen(signs[i])) == 0;
    return found;
}

void vr_sim_kernel_follow(struct vr_sim_kernel *kernel, const char *code, size_t length) {
    kernel->meets = may_meet(code, length);
    if (kernel->effects == NULL) kernel->effects = malloc(VR_SIM_PTX_PARAMETERS);
    if (kernel->effects != NULL) vr_sim_ptx_effects(code, length, kernel->effects);
}

static bool read_kernel(struct vr_sim_ptx_text *reader, struct vr_sim_image *image) {
    const struct vr_sim_ptx_word name = vr_sim_ptx_next(reader);
    if (name.length == 0 || !vr_sim_ptx_is_word(name.start[0])) return true;
    struct vr_sim_kernel *kernel = vr_sim_image_add_kernel(image, name.start, name.length);
    if (kernel == NULL) return false;
    kernel->has_parameters = true;
    const struct vr_sim_ptx_text before = *reader;
    if (!vr_sim_ptx_equals(vr_sim_ptx_next(reader), "("))
        *reader = before;
    else if (!read_parameters(reader, kernel))
        return false;
    read_body(reader, kernel);
    if (image->asks_effects) vr_sim_kernel_follow(kernel, before.at, (size_t)(reader->at - before.at));
    return true;
}

static bool read_variable(struct vr_sim_ptx_text *reader, struct vr_sim_image *image) {
    struct vr_sim_ptx_word end;
    const struct declared declared = read_declaration(reader, &end);
    if (declared.name.length == 0 || declared.bytes == 0) return true;
    return sim_image_add_variable(image, declared.name.start, declared.name.length, declared.bytes, declared.managed);
}

// Skips a device function, whose body contains declarations that look like variables of the module.
static void skip_function(struct vr_sim_ptx_text *reader) {
    unsigned depth = 0;
    for (struct vr_sim_ptx_word word = vr_sim_ptx_next(reader); word.length != 0; word = vr_sim_ptx_next(reader)) {
        if (vr_sim_ptx_equals(word, "{")) depth++;
        if (depth == 0 && vr_sim_ptx_equals(word, ";")) return;
        if (vr_sim_ptx_equals(word, "}") && (depth == 0 || --depth == 0)) return;
    }
}

vr_cu_result vr_sim_ptx_read(struct vr_sim_image *image, const char *text, size_t length) {
    struct vr_sim_ptx_text reader = {text, text + length};
    bool fits = true;
    for (struct vr_sim_ptx_word word = vr_sim_ptx_next(&reader); word.length != 0 && fits; word = vr_sim_ptx_next(&reader)) {
        if (vr_sim_ptx_equals(word, ".entry")) fits = read_kernel(&reader, image);
        if (vr_sim_ptx_equals(word, ".func")) skip_function(&reader);
        if (vr_sim_ptx_equals(word, ".global") || vr_sim_ptx_equals(word, ".const")) fits = read_variable(&reader, image);
    }
    return fits ? VR_CU_SUCCESS : VR_CU_OUT_OF_MEMORY;
}

// Reads ".target sm_90a": 'a' means features of one architecture, 'f' of a family.
bool vr_sim_ptx_architecture(const char *text, size_t length, uint32_t *architecture, bool *exact) {
    struct vr_sim_ptx_text reader = {text, text + length};
    for (struct vr_sim_ptx_word word = vr_sim_ptx_next(&reader); word.length != 0; word = vr_sim_ptx_next(&reader)) {
        if (!vr_sim_ptx_equals(word, ".target")) continue;
        struct vr_sim_ptx_word target = vr_sim_ptx_next(&reader);
        if (target.length < 5 || memcmp(target.start, "sm_", 3) != 0) return false;
        const char last = target.start[target.length - 1];
        const bool letter = last == 'a' || last == 'f';
        const uint64_t number = word_number((struct vr_sim_ptx_word){target.start + 3, target.length - 3 - letter});
        *architecture = (uint32_t)number;
        *exact = last == 'a';
        return number >= 10 && number < 1000;
    }
    return false;
}
