// fit_gguf.c: reads GGUF versions 2 and 3, as ggml's description of the format defines them. All numbers are little-endian.
#define _GNU_SOURCE
#include "fit_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output.h"
#include "ui.h"

#define MOST_DIMENSIONS 8
#define MOST_DEPTH      4 // of nested arrays
#define USUAL_ALIGNMENT 32
#define MOST_PARTS      1000

// Elements and bytes of a block, by tensor type (ggml's ggml_type_size() and ggml_blck_size()). 0: an unused number.
static const struct {
    uint16_t elements, bytes;
} types[] = {
    [0] = {1, 4},      [1] = {1, 2},     [2] = {32, 18},    [3] = {32, 20},    [6] = {32, 22},    [7] = {32, 24},    [8] = {32, 34},
    [9] = {32, 36},    [10] = {256, 84}, [11] = {256, 110}, [12] = {256, 144}, [13] = {256, 176}, [14] = {256, 210}, [15] = {256, 292},
    [16] = {256, 66},  [17] = {256, 74}, [18] = {256, 98},  [19] = {256, 50},  [20] = {32, 18},   [21] = {256, 110}, [22] = {256, 82},
    [23] = {256, 136}, [24] = {1, 1},    [25] = {1, 2},     [26] = {1, 4},     [27] = {1, 8},     [28] = {1, 8},     [29] = {256, 56},
    [30] = {1, 2},     [34] = {256, 54}, [35] = {256, 66},  [39] = {32, 17},   [40] = {64, 36},
};
// Bytes of a metadata value, by type. 8 is a string, 9 an array.
static const uint8_t value_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
enum { UINT32 = 4, STRING = 8, ARRAY = 9 };

struct reader {
    FILE *file;
    uint64_t at, size; // of the actual file
    uint32_t alignment;
};

static bool take_bytes(struct reader *reader, void *bytes, size_t count) {
    if (count > reader->size - reader->at || fread(bytes, 1, count, reader->file) != count) return false;
    reader->at += count;
    return true;
}

static bool skip_bytes(struct reader *reader, uint64_t count) {
    if (count > reader->size - reader->at || fseeko(reader->file, (off_t)count, SEEK_CUR) != 0) return false;
    reader->at += count;
    return true;
}

// Reads a 32-bit number, which is little-endian as on this machine.
static bool take_u32(struct reader *reader, uint32_t *value) { return take_bytes(reader, value, sizeof *value); }
static bool take_u64(struct reader *reader, uint64_t *value) { return take_bytes(reader, value, sizeof *value); }

// Reads a string. Skips what does not fit into `text`.
static bool take_string(struct reader *reader, char *text, size_t capacity) {
    uint64_t length;
    if (!take_u64(reader, &length)) return false;
    const size_t kept = length < capacity ? (size_t)length : capacity - 1;
    if (!take_bytes(reader, text, kept) || !skip_bytes(reader, length - kept)) return false;
    text[kept] = '\0';
    return true;
}

static bool skip_values(struct reader *reader, uint32_t type, uint64_t count, unsigned depth) {
    char text[1];
    if (type >= sizeof value_bytes || depth > MOST_DEPTH) return false;
    if (value_bytes[type] != 0) return count <= reader->size && skip_bytes(reader, count * value_bytes[type]);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t inner;
        uint64_t inner_count;
        if (type == STRING
                ? !take_string(reader, text, sizeof text)
                : !take_u32(reader, &inner) || !take_u64(reader, &inner_count) || !skip_values(reader, inner, inner_count, depth + 1))
            return false;
    }
    return true;
}

static bool take_pair(struct reader *reader) {
    char key[64];
    uint32_t type;
    if (!take_string(reader, key, sizeof key) || !take_u32(reader, &type)) return false;
    if (strcmp(key, "general.alignment") != 0 || type != UINT32) return skip_values(reader, type, 1, 0);
    return take_u32(reader, &reader->alignment) && reader->alignment != 0 && reader->alignment <= 1 << 20;
}

// Reads a tensor's offset from data_begin, and its bytes.
static bool take_tensor(struct reader *reader, uint64_t *offset, uint64_t *bytes) {
    char name[1];
    uint32_t count, type;
    uint64_t size, elements = 1;
    if (!take_string(reader, name, sizeof name) || !take_u32(reader, &count) || count > MOST_DIMENSIONS) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!take_u64(reader, &size) || (size != 0 && elements > UINT64_MAX / size))
            return false;
        else
            elements *= size;
    if (!take_u32(reader, &type) || !take_u64(reader, offset)) return false;
    if (type >= sizeof types / sizeof *types || types[type].elements == 0 || elements % types[type].elements != 0) return false;
    elements /= types[type].elements;
    if (elements > ((uint64_t)1 << 50) || *offset > (uint64_t)1 << 50) return false;
    *bytes = elements * types[type].bytes;
    return true;
}

static bool take_all(struct reader *reader, struct fit_gguf *gguf) {
    char magic[4];
    uint32_t version;
    uint64_t tensors, pairs, end = 0;
    if (!take_bytes(reader, magic, sizeof magic) || memcmp(magic, "GGUF", sizeof magic) != 0 || !take_u32(reader, &version) ||
        version < 2 || version > 3)
        return false;
    if (!take_u64(reader, &tensors) || !take_u64(reader, &pairs)) return false;
    for (uint64_t i = 0; i < pairs; i++)
        if (!take_pair(reader)) return false;
    struct fit_gguf read = {.tensor_count = tensors};
    for (uint64_t i = 0; i < tensors; i++) {
        uint64_t offset, bytes;
        if (!take_tensor(reader, &offset, &bytes)) return false;
        read.tensor_bytes += bytes;
        if (offset + bytes > end) end = offset + bytes;
    }
    read.data_begin = (reader->at + reader->alignment - 1) / reader->alignment * reader->alignment;
    read.file_bytes = read.data_begin + (end + reader->alignment - 1) / reader->alignment * reader->alignment;
    *gguf = read;
    return true;
}

bool fit_gguf_read(const char *path, struct fit_gguf *gguf, char *wrong, size_t capacity) {
    struct stat about;
    struct reader reader = {.file = fopen(path, "rb"), .alignment = USUAL_ALIGNMENT};
    if (reader.file == NULL || fstat(fileno(reader.file), &about) != 0 || !S_ISREG(about.st_mode)) {
        (void)snprintf(wrong, capacity, "%s", reader.file == NULL ? strerror(errno) : "not a file");
        if (reader.file != NULL) (void)fclose(reader.file);
        return false;
    }
    reader.size = (uint64_t)about.st_size;
    const bool good = take_all(&reader, gguf);
    if (!good && reader.at < 4)
        (void)snprintf(wrong, capacity, "not a GGUF file");
    else if (!good)
        (void)snprintf(wrong, capacity, "at byte %" PRIu64 ": the header of GGUF 2 or 3 is missing or incomplete", reader.at);
    (void)fclose(reader.file);
    return good;
}

// --- sparse copies ----------------------------------------------------------------------------------------------------------------------

// Copies the header, then extends the copy with a hole.
static bool copy_header(const char *from, const char *to, const struct fit_gguf *gguf) {
    char bytes[65536];
    FILE *in = fopen(from, "rb");
    struct output *out = in == NULL ? NULL : output_open(to);
    uint64_t left = gguf->data_begin;
    bool good = out != NULL;
    while (good && left > 0) {
        const size_t got = fread(bytes, 1, left < sizeof bytes ? (size_t)left : sizeof bytes, in);
        if (got == 0) break; // the padding before the tensors may be missing
        good = output_write(out, bytes, got);
        left -= got;
    }
    if (in != NULL) (void)fclose(in);
    if (out != NULL) good = output_close(out, good) == 0 && good;
    return good && truncate(to, (off_t)gguf->file_bytes) == 0;
}

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool copy_one(const char *path, const char *folder, struct fit_gguf *sum) {
    char to[4400], wrong[200];
    struct fit_gguf gguf;
    if (!fit_gguf_read(path, &gguf, wrong, sizeof wrong)) {
        ui_say("vram fit: %s: %s", path, wrong);
        return false;
    }
    (void)snprintf(to, sizeof to, "%s/%s", folder, name_of(path));
    if (access(to, F_OK) != 0 && !copy_header(path, to, &gguf)) {
        ui_say("vram fit: %s: cannot copy its header: %s", path, strerror(errno));
        return false;
    }
    sum->tensor_bytes += gguf.tensor_bytes;
    sum->tensor_count += gguf.tensor_count;
    return true;
}

// Copies the file; for "NAME-00001-of-00003.gguf" the other parts as well.
static bool copy_parts(const char *path, const char *folder, struct fit_gguf *sum) {
    unsigned part, count;
    const size_t length = strlen(path), tail = strlen("-00001-of-00003.gguf");
    if (length <= tail || sscanf(path + length - tail, "-%5u-of-%5u.gguf", &part, &count) != 2 || count > MOST_PARTS)
        return copy_one(path, folder, sum);
    for (part = 1; part <= count; part++) {
        char other[4096];
        (void)snprintf(other, sizeof other, "%.*s-%05u-of-%05u.gguf", (int)(length - tail), path, part, count);
        if (!copy_one(other, folder, sum)) return false;
    }
    return true;
}

// Returns where the path of a file begins in an argument, "FILE.gguf" or "--name=FILE.gguf"; NULL if there is no such path.
static const char *path_in(const char *argument) {
    const size_t length = strlen(argument);
    if (length < 6 || strcmp(argument + length - 5, ".gguf") != 0) return NULL;
    if (access(argument, F_OK) == 0) return argument;
    const char *equals = strchr(argument, '=');
    return argument[0] == '-' && equals != NULL && access(equals + 1, F_OK) == 0 ? equals + 1 : NULL;
}

static char *replace_argument(const char *argument, const char *folder) {
    const char *path = path_in(argument);
    struct fit_gguf sum = {.tensor_count = 0};
    if (path == NULL) return strdup(argument);
    if (!copy_parts(path, folder, &sum)) return NULL;
    ui_say("vram fit: %s: %" PRIu64 " tensors of %" PRIu64 " B were not read; a hole replaces them", path, sum.tensor_count,
           sum.tensor_bytes);
    const size_t capacity = (size_t)(path - argument) + strlen(folder) + strlen(path) + 2;
    char *text = malloc(capacity);
    if (text != NULL) (void)snprintf(text, capacity, "%.*s%s/%s", (int)(path - argument), argument, folder, name_of(path));
    return text;
}

char **fit_gguf_replace(char **program, const char *folder) {
    size_t count = 0;
    while (program[count] != NULL) count++;
    char **replaced = calloc(count + 1, sizeof *replaced);
    for (size_t i = 0; replaced != NULL && i < count; i++) {
        replaced[i] = replace_argument(program[i], folder);
        if (replaced[i] != NULL) continue;
        fit_gguf_release(replaced);
        return NULL;
    }
    return replaced;
}

void fit_gguf_release(char **program) {
    for (size_t i = 0; program != NULL && program[i] != NULL; i++) free(program[i]);
    free(program);
}
