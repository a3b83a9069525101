#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "embedded.h"
#include "input.h"
#include "ui.h"
#include "vram/recording.h"
#include "zip.h"

#define BUFFER_BYTES ((size_t)256 << 10)
// xz -9 needs 65 MiB. A file that needs more than this is refused.
#define XZ_MEMORY_BYTES ((uint64_t)256 << 20)
// The limit of unpacked bytes without --max-unpacked. Histories compress 10 to 60 times.
#define UNPACKED_BYTES     ((uint64_t)1 << 30)
#define UNPACKED_RATIO     200
#define LEAST_MEMORY_BYTES ((uint64_t)256 << 20)

uint64_t input_max_unpacked = 0;
const char *input_skip = NULL;

struct input;

// A decompressor. fill() writes at most `capacity` bytes to `to` and returns their number, 0 at the end, SIZE_MAX on damage.
struct codec {
    const char *name;
    unsigned char magic[6];
    size_t magic_length;
    bool (*begin)(struct input *input);
    size_t (*fill)(struct input *input, unsigned char *to, size_t capacity);
    void (*end)(struct input *input);
};

struct input {
    FILE *file;
    struct embedded *page;     // the page that the bytes come from; NULL: the file
    struct zip *zip;           // or the archive that they come from
    struct input *outer;       // the input of the page or the archive
    const struct codec *codec; // NULL: plain
    unsigned char *buffer;     // of the file
    size_t at, filled;
    bool at_end;  // of the file
    bool between; // between compressed members, where the file may end
    uint64_t produced;
    uint64_t taken;                    // bytes read from the file
    uint64_t unpacked;                 // by the codec
    bool over;                         // the limit is exceeded
    unsigned char head[EMBEDDED_HEAD]; // bytes read ahead
    size_t head_at, head_filled;
    char error[256]; // "" if nothing failed
    union {
        z_stream gzip;
        lzma_stream xz;
        ZSTD_DStream *zstd;
    } state;
};

static size_t fail_input(struct input *input, const char *what) {
    (void)snprintf(input->error, sizeof input->error, "%s", what);
    return SIZE_MAX;
}

static size_t damaged_input(struct input *input, const char *reason) {
    (void)snprintf(input->error, sizeof input->error, "the %s data is damaged: %s", input->codec->name, reason);
    return SIZE_MAX;
}

// Refills the buffer. Returns false at the end of the file, or on an error, which sets input->error.
static bool refill_input(struct input *input) {
    if (input->at_end || input->error[0] != '\0') return false;
    input->at = 0;
    if (input->page != NULL) {
        input->filled = embedded_read(input->page, input->buffer, BUFFER_BYTES);
        if (input->filled == SIZE_MAX) input->filled = 0;
        if (input->filled < BUFFER_BYTES && input->page->error != NULL) (void)fail_input(input, input->page->error);
    } else if (input->zip != NULL) {
        input->filled = zip_read(input->zip, input->buffer, BUFFER_BYTES);
        if (input->filled == SIZE_MAX) input->filled = 0;
        if (input->zip->error != NULL) (void)fail_input(input, input->zip->error);
    } else {
        input->filled = fread(input->buffer, 1, BUFFER_BYTES, input->file);
        if (input->filled < BUFFER_BYTES && ferror(input->file)) (void)fail_input(input, strerror(errno));
    }
    input->at_end = input->filled < BUFFER_BYTES;
    input->taken += input->filled;
    return input->filled != 0 && input->error[0] == '\0';
}

static bool begin_gzip(struct input *input) {
    input->state.gzip = (z_stream){0};
    return inflateInit2(&input->state.gzip, 15 + 16) == Z_OK;
}

static size_t fill_gzip(struct input *input, unsigned char *to, size_t capacity) {
    z_stream *stream = &input->state.gzip;
    stream->next_out = to;
    stream->avail_out = capacity > 1u << 30 ? 1u << 30 : (uInt)capacity;
    while (stream->next_out == to) {
        if (input->at == input->filled && !refill_input(input)) {
            if (input->error[0] != '\0') return SIZE_MAX;
            return input->between ? 0 : damaged_input(input, "it is incomplete");
        }
        if (input->between && inflateReset(stream) != Z_OK) return damaged_input(input, "reading cannot be restarted");
        input->between = false;
        stream->next_in = input->buffer + input->at;
        stream->avail_in = (uInt)(input->filled - input->at);
        const int result = inflate(stream, Z_NO_FLUSH);
        input->at = input->filled - stream->avail_in;
        if (result == Z_STREAM_END) {
            input->between = true;
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return damaged_input(input, stream->msg != NULL ? stream->msg : "it cannot be decompressed");
        }
    }
    return (size_t)(stream->next_out - to);
}

static void end_gzip(struct input *input) { (void)inflateEnd(&input->state.gzip); }

static bool begin_xz(struct input *input) {
    input->state.xz = (lzma_stream)LZMA_STREAM_INIT;
    return lzma_stream_decoder(&input->state.xz, XZ_MEMORY_BYTES, LZMA_CONCATENATED) == LZMA_OK;
}

static size_t fill_xz(struct input *input, unsigned char *to, size_t capacity) {
    lzma_stream *stream = &input->state.xz;
    stream->next_out = to;
    stream->avail_out = capacity;
    while (stream->next_out == to) {
        if (input->at == input->filled && !refill_input(input) && input->error[0] != '\0') return SIZE_MAX;
        const bool over = input->at == input->filled && input->at_end;
        stream->next_in = input->buffer + input->at;
        stream->avail_in = input->filled - input->at;
        const lzma_ret result = lzma_code(stream, over ? LZMA_FINISH : LZMA_RUN);
        input->at = input->filled - stream->avail_in;
        if (result == LZMA_STREAM_END) break;
        if (result == LZMA_MEMLIMIT_ERROR) return damaged_input(input, "decompressing it needs more than 256 MiB");
        if (result == LZMA_BUF_ERROR) return damaged_input(input, "it is incomplete");
        if (result != LZMA_OK) return damaged_input(input, "it cannot be decompressed");
    }
    return (size_t)(stream->next_out - to);
}

static void end_xz(struct input *input) { lzma_end(&input->state.xz); }

static bool begin_zstd(struct input *input) {
    input->state.zstd = ZSTD_createDStream();
    input->between = true;
    return input->state.zstd != NULL;
}

static size_t fill_zstd(struct input *input, unsigned char *to, size_t capacity) {
    ZSTD_outBuffer out = {to, capacity, 0};
    while (out.pos == 0) {
        if (input->at == input->filled && !refill_input(input)) {
            if (input->error[0] != '\0') return SIZE_MAX;
            return input->between ? 0 : damaged_input(input, "it is incomplete");
        }
        ZSTD_inBuffer in = {input->buffer, input->filled, input->at};
        const size_t result = ZSTD_decompressStream(input->state.zstd, &out, &in);
        input->at = in.pos;
        if (ZSTD_isError(result)) return damaged_input(input, ZSTD_getErrorName(result));
        input->between = result == 0;
    }
    return out.pos;
}

static void end_zstd(struct input *input) { (void)ZSTD_freeDStream(input->state.zstd); }

static const struct codec codecs[] = {
    {"gzip", {0x1F, 0x8B}, 2, begin_gzip, fill_gzip, end_gzip},
    {"xz", {0xFD, '7', 'z', 'X', 'Z', 0}, 6, begin_xz, fill_xz, end_xz},
    {"zstd", {0x28, 0xB5, 0x2F, 0xFD}, 4, begin_zstd, fill_zstd, end_zstd},
};

static size_t fill_plain(struct input *input, unsigned char *to, size_t capacity) {
    if (input->at == input->filled && !refill_input(input)) return input->error[0] == '\0' ? 0 : SIZE_MAX;
    const size_t part = input->filled - input->at < capacity ? input->filled - input->at : capacity;
    memcpy(to, input->buffer + input->at, part);
    input->at += part;
    return part;
}

// Returns the size of a regular file; for anything else, the bytes read so far.
static uint64_t packed_bytes(const struct input *input) {
    struct stat facts;
    const struct input *from = input->outer != NULL ? input->outer : input;
    const bool known = from->file != stdin && fstat(fileno(from->file), &facts) == 0 && S_ISREG(facts.st_mode);
    return known ? (uint64_t)facts.st_size : from->taken;
}

static uint64_t most_unpacked(const struct input *input) {
    if (input_max_unpacked != 0) return input_max_unpacked;
    const uint64_t packed = packed_bytes(input), most = packed > UINT64_MAX / UNPACKED_RATIO ? UINT64_MAX : packed * UNPACKED_RATIO;
    return most > UNPACKED_BYTES ? most : UNPACKED_BYTES;
}

// Returns the memory limit for decoding. Packed contents may be anything, so the limit is what the bytes may unpack to, but at least enough
// for small files.
static uint64_t most_memory(const struct input *input) {
    const uint64_t packed = packed_bytes(input), part = packed > UINT64_MAX / UNPACKED_RATIO ? UINT64_MAX : packed * UNPACKED_RATIO;
    const uint64_t most = input_max_unpacked != 0 ? input_max_unpacked : part;
    return most > LEAST_MEMORY_BYTES ? most : LEAST_MEMORY_BYTES;
}

static size_t too_much(struct input *input) {
    char most[UI_SIZE_CAPACITY], packed[UI_SIZE_CAPACITY];
    (void)ui_size(most_unpacked(input), most);
    (void)ui_size(packed_bytes(input), packed);
    (void)snprintf(input->error, sizeof input->error, "its %s unpack to more than %s; --max-unpacked SIZE allows more", packed, most);
    input->over = true;
    return SIZE_MAX;
}

// Returns whether a small file may be a large recording.
static bool is_packed(const struct input *input) { return input->codec != NULL || input->zip != NULL; }

// Decodes up to `capacity` bytes. Returns SIZE_MAX with input->error set if decoding fails or the output exceeds the limit.
static size_t decode_input(struct input *input, void *buffer, size_t capacity) {
    if (input->error[0] != '\0') return SIZE_MAX;
    if (!is_packed(input)) return fill_plain(input, buffer, capacity);
    const size_t count = input->codec != NULL ? input->codec->fill(input, buffer, capacity) : fill_plain(input, buffer, capacity);
    if (count == SIZE_MAX) return count;
    input->unpacked += count;
    return input->unpacked > most_unpacked(input) ? too_much(input) : count;
}

// The read() of struct vram_input.
static size_t input_read(void *context, void *buffer, size_t capacity) {
    struct input *input = context;
    const size_t left = input->head_filled - input->head_at;
    size_t count = left < capacity ? left : capacity;
    if (left != 0) {
        memcpy(buffer, input->head + input->head_at, count);
        input->head_at += count;
    } else {
        count = decode_input(input, buffer, capacity);
    }
    if (count != SIZE_MAX) input->produced += count;
    return count;
}

// Returns whether the input is a page of `vram view`. Keeps the bytes read ahead for later reads.
static bool is_page(struct input *input) {
    size_t count = 1;
    while (input->head_filled < sizeof input->head && count != 0 && count != SIZE_MAX) {
        count = decode_input(input, input->head + input->head_filled, sizeof input->head - input->head_filled);
        if (count != SIZE_MAX) input->head_filled += count;
    }
    return embedded_is_page((const char *)input->head, input->head_filled);
}

// Chooses the decompressor by the first bytes. Returns false if it cannot start.
static bool choose_codec(struct input *input) {
    (void)refill_input(input);
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        if (input->filled < codecs[i].magic_length || memcmp(input->buffer, codecs[i].magic, codecs[i].magic_length) != 0) continue;
        input->codec = &codecs[i];
        if (codecs[i].begin(input)) return true;
        input->codec = NULL;
        (void)fail_input(input, "not enough host memory to unpack it");
        return false;
    }
    return true;
}

static int open_failed(const char *name, const char *what) {
    struct vram_error error = {.status = VRAM_IO, .offset = VRAM_NO_OFFSET};
    (void)snprintf(error.message, sizeof error.message, "%s", what);
    return ui_error(name, &error);
}

static FILE *open_file(const char *path, const char **reason) {
    struct stat facts;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        *reason = strerror(errno);
        return NULL;
    }
    if (fstat(fileno(file), &facts) == 0 && S_ISDIR(facts.st_mode)) {
        fclose(file);
        *reason = "is a directory; expected a recording file";
        return NULL;
    }
    return file;
}

static int fail_with_message(const struct input *input, const char *name) {
    struct vram_error error = {.status = VRAM_IO, .offset = input->produced};
    (void)snprintf(error.message, sizeof error.message, input->produced != 0 && !input->over ? "%s (after %llu bytes)" : "%s", input->error,
                   (unsigned long long)input->produced);
    return ui_error(name, &error);
}

static int refused_input(const char *name, const char *what) {
    struct vram_error error = {.status = VRAM_BAD_INPUT, .offset = VRAM_NO_OFFSET};
    (void)snprintf(error.message, sizeof error.message, "%s", what);
    return ui_error(name, &error);
}

static int refused_limit(const char *name, const char *packed, const char *most) {
    struct vram_error error = {.status = VRAM_LIMIT, .offset = VRAM_NO_OFFSET};
    (void)snprintf(error.message, sizeof error.message, "its %s need more than %s of memory; --max-unpacked SIZE allows more", packed,
                   most);
    return ui_error(name, &error);
}

// Returns the number of bytes to come; 0 if it is unknown before the end.
static uint64_t known_bytes(const struct input *input) {
    struct stat facts;
    const bool known = !is_packed(input) && input->page == NULL && fstat(fileno(input->file), &facts) == 0 && S_ISREG(facts.st_mode);
    return known ? (uint64_t)facts.st_size : 0;
}

static int read_plain(struct input *input, const char *name, struct vram_recording **recording) {
    struct vram_error error = {.status = VRAM_IO, .offset = VRAM_NO_OFFSET};
    const uint64_t most = most_memory(input);
    const struct vram_input source = {
        .read = input_read, .context = input, .name = NULL, .bytes = known_bytes(input), .most_memory_bytes = is_packed(input) ? most : 0};
    if (vram_recording_read(&source, recording, &error) == VRAM_OK) return CLI_OK;
    if (error.status == VRAM_LIMIT && input->error[0] == '\0' && strstr(error.message, "more memory than allowed") != NULL) {
        char size[UI_SIZE_CAPACITY], packed[UI_SIZE_CAPACITY];
        (void)ui_size(most, size);
        (void)ui_size(packed_bytes(input), packed);
        return refused_limit(name, packed, size);
    }
    return input->error[0] == '\0' ? ui_error(name, &error) : fail_with_message(input, name);
}

// Returns whether `wanted` names this recording of a page, by name or by number, from 1.
static bool is_meant(const char *wanted, const char *name, unsigned long number) {
    char *end;
    if (wanted == NULL || strcmp(wanted, name) == 0) return true;
    return wanted[0] >= '0' && wanted[0] <= '9' && strtoul(wanted, &end, 10) == number && *end == '\0';
}

// Reads one recording of the page. `wanted` is its name or number; NULL if there is only one.
static int read_embedded(struct input *outer, const char *name, const char *wanted, struct vram_recording **recording, uint64_t *bytes) {
    struct embedded *page = calloc(1, sizeof *page);
    struct input *inner = calloc(1, sizeof *inner);
    unsigned char *buffer = malloc(BUFFER_BYTES);
    char found[EMBEDDED_NAME];
    int code = CLI_BAD_INPUT;
    if (page == NULL || inner == NULL || buffer == NULL) {
        code = open_failed(name, "not enough host memory to read it");
    } else {
        *page = (struct embedded){.read = input_read, .context = outer};
        *inner = (struct input){.page = page, .outer = outer, .buffer = buffer};
        bool there = false;
        for (unsigned long number = 1; !there && embedded_next(page, found); number++) there = is_meant(wanted, found, number);
        if (outer->error[0] != '\0')
            code = fail_with_message(outer, name);
        else if (!there)
            code = refused_input(name, page->error != NULL ? page->error
                                       : wanted != NULL    ? "the page has no such recording"
                                                           : "the page contains no recording");
        else
            code = choose_codec(inner) ? read_plain(inner, name, recording) : fail_with_message(inner, name);
        if (code == CLI_OK && wanted == NULL && embedded_next(page, found)) {
            vram_recording_destroy(*recording);
            code = refused_input(name, outer->file == stdin ? "the page contains several recordings; to name one, read the page from a file"
                                                            : "the page contains several recordings; add #NAME or #NUMBER to name one");
        }
        *bytes = inner->produced;
        if (inner->codec != NULL) inner->codec->end(inner);
    }
    free(buffer);
    free(inner);
    free(page);
    return code;
}

// --- archives -----------------------------------------------------------------------------------------------------------------
static size_t read_at(void *context, uint64_t offset, void *buffer, size_t count) {
    FILE *file = context;
    if (offset > INT64_MAX || fseeko(file, (off_t)offset, SEEK_SET) != 0) return SIZE_MAX;
    return fread(buffer, 1, count, file);
}

static bool is_archive(const struct input *input) { return input->codec == NULL && zip_begins(input->buffer, input->filled); }

// Opens the archive. Returns false with the archive's error set.
static bool open_archive(const struct input *input, struct zip *zip) {
    *zip = (struct zip){.read_at = read_at, .context = input->file, .archive_bytes = packed_bytes(input)};
    return zip_open(zip);
}

// Returns whether a file in the archive may be the recording: by its name, or because it is the only file.
static bool is_candidate(const struct zip *zip, const struct zip_file *file) {
    size_t named = 0, files = 0;
    for (size_t i = 0; i < zip->count; i++) {
        const char *name = zip->files[i].name;
        named += input_is_recording_name(input_base_name(name));
        files += name[0] != '\0' && name[strlen(name) - 1] != '/';
    }
    if (named != 0) return input_is_recording_name(input_base_name(file->name));
    return files == 1 && file->name[0] != '\0' && file->name[strlen(file->name) - 1] != '/';
}

// Finds the wanted file. Returns NULL, with the reason, if there is none or more than one.
static const struct zip_file *find_meant(const struct zip *zip, const char *wanted, const char **reason) {
    const struct zip_file *found = NULL;
    unsigned long number = 0;
    for (size_t i = 0; i < zip->count; i++) {
        if (!is_candidate(zip, &zip->files[i]) || !is_meant(wanted, zip->files[i].name, ++number)) continue;
        if (found != NULL) {
            *reason = "the ZIP archive contains several recordings; add #NAME or #NUMBER to name one";
            return NULL;
        }
        found = &zip->files[i];
    }
    if (found == NULL) *reason = wanted != NULL ? "the ZIP archive has no such recording" : "the ZIP archive contains no recording";
    return found;
}

static int read_archive(struct input *outer, const char *name, const char *wanted, struct vram_recording **recording, uint64_t *bytes) {
    struct zip *zip = calloc(1, sizeof *zip);
    struct input *inner = calloc(1, sizeof *inner);
    unsigned char *buffer = malloc(BUFFER_BYTES);
    const char *reason = NULL;
    int code = CLI_BAD_INPUT;
    if (zip == NULL || inner == NULL || buffer == NULL) {
        code = open_failed(name, "not enough host memory to read it");
    } else if (fseeko(outer->file, 0, SEEK_END) != 0) {
        code = refused_input(name, "a ZIP archive can only be read from a file, because its list of files is at its end");
    } else {
        const bool opened = open_archive(outer, zip);
        const struct zip_file *file = opened ? find_meant(zip, wanted, &reason) : NULL;
        *inner = (struct input){.zip = zip, .outer = outer, .buffer = buffer};
        if (file == NULL || !zip_begin(zip, file))
            code = refused_input(name, zip->error != NULL ? zip->error : reason);
        else
            code = choose_codec(inner) ? read_plain(inner, name, recording) : fail_with_message(inner, name);
        *bytes = inner->produced;
        if (inner->codec != NULL) inner->codec->end(inner);
        zip_close(zip);
    }
    free(buffer);
    free(inner);
    free(zip);
    return code;
}

static void name_candidates(const struct input *input, void (*visit)(void *context, const char *name), void *context) {
    struct zip *zip = calloc(1, sizeof *zip);
    if (zip != NULL && open_archive(input, zip)) {
        for (size_t i = 0; i < zip->count; i++) {
            if (is_candidate(zip, &zip->files[i])) visit(context, zip->files[i].name);
        }
    }
    if (zip != NULL) zip_close(zip);
    free(zip);
}

static int read_recording(struct input *input, const char *name, const char *wanted, struct vram_recording **recording, uint64_t *bytes) {
    if (!choose_codec(input)) return fail_with_message(input, name);
    if (is_archive(input)) return read_archive(input, name, wanted, recording, bytes);
    if (is_page(input)) return read_embedded(input, name, wanted, recording, bytes);
    const int code = wanted != NULL ? refused_input(name, "#NAME works only with a page of `vram view` or a ZIP archive")
                                    : read_plain(input, name, recording);
    *bytes = input->produced;
    return code;
}

size_t input_file_length(const char *path) {
    struct stat facts;
    char file[4096];
    const size_t whole = strlen(path);
    if (stat(path, &facts) == 0) return whole;
    for (const char *at = strchr(path, '#'); at != NULL; at = strchr(at + 1, '#')) {
        const size_t length = (size_t)(at - path);
        if (length >= sizeof file) break;
        memcpy(file, path, length);
        file[length] = '\0';
        if (stat(file, &facts) == 0 && S_ISREG(facts.st_mode)) return length;
    }
    return whole;
}

int input_recording(const char *path, struct vram_recording **recording, struct input_facts *facts) {
    const bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path, *reason = NULL;
    const size_t length = input_file_length(path);
    struct input *input = calloc(1, sizeof *input);
    char *file = strndup(path, length);
    uint64_t bytes = 0;
    int code;
    if (input == NULL || file == NULL) {
        code = open_failed(name, "not enough host memory to read it");
    } else if ((input->file = standard ? stdin : open_file(file, &reason)) == NULL) {
        code = open_failed(name, reason);
    } else {
        input->buffer = malloc(BUFFER_BYTES);
        code = input->buffer == NULL ? open_failed(name, "not enough host memory to read it")
                                     : read_recording(input, name, path[length] == '#' ? path + length + 1 : NULL, recording, &bytes);
        if (input->codec != NULL) input->codec->end(input);
        free(input->buffer);
        if (!standard) fclose(input->file);
    }
    free(file);
    free(input);
    if (code == CLI_OK) *facts = (struct input_facts){.name = name, .bytes = bytes};
    return code;
}

bool input_names(const char *path, void (*visit)(void *context, const char *name), void *context) {
    struct input *input = calloc(1, sizeof *input);
    struct embedded *page = calloc(1, sizeof *page);
    const char *reason;
    char name[EMBEDDED_NAME];
    struct stat facts;
    // Reading a pipe here would empty it.
    bool found = stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
    if (found && input != NULL && page != NULL && (input->file = open_file(path, &reason)) != NULL) {
        *page = (struct embedded){.read = input_read, .context = input};
        input->buffer = malloc(BUFFER_BYTES);
        const bool known = input->buffer != NULL && choose_codec(input), archive = known && is_archive(input);
        found = archive || (known && is_page(input));
        if (archive) name_candidates(input, visit, context);
        while (found && !archive && embedded_next(page, name)) visit(context, name);
        if (input->codec != NULL) input->codec->end(input);
        free(input->buffer);
        fclose(input->file);
    } else {
        found = false;
    }
    free(page);
    free(input);
    return found;
}

// Removes `suffix` from the end of the name's first *length characters. Returns false if they do not end with it.
static bool cut_suffix(const char *name, size_t *length, const char *suffix) {
    const size_t count = strlen(suffix);
    if (*length <= count || memcmp(name + *length - count, suffix, count) != 0) return false;
    *length -= count;
    return true;
}

bool input_is_recording_name(const char *name) {
    static const char *const packed[] = {".gz", ".zst", ".xz"}, *const kinds[] = {".pickle", ".pkl", ".json", ".html", ".vram"};
    size_t length = strlen(name);
    bool found = false;
    if (name[0] == '.') return false;
    for (size_t i = 0; i < sizeof packed / sizeof packed[0] && !found; i++) found = cut_suffix(name, &length, packed[i]);
    found = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && !found; i++) found = cut_suffix(name, &length, kinds[i]);
    return found;
}

const char *input_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}

int input_skip_frames(struct vram_recording *recording) {
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    if (input_skip == NULL || vram_recording_skip_frames(recording, input_skip, &error) == VRAM_OK) return CLI_OK;
    ui_say("vram: --skip %s: %s", input_skip, error.message);
    return CLI_USAGE;
}

int input_named_recording(const char *path, struct vram_recording **recording, struct input_facts *facts) {
    const int code = input_recording(path, recording, facts);
    if (code != CLI_OK) return code;
    (void)!vram_recording_symbolize(*recording, NULL, NULL);
    if (input_skip_frames(*recording) == CLI_OK) return CLI_OK;
    vram_recording_destroy(*recording);
    *recording = NULL;
    return CLI_USAGE;
}
