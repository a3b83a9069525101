#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "input.h"
#include "ui.h"

#define BUFFER_BYTES ((size_t)256 << 10)
// xz -9 needs 65 MiB; more is no honest recording.
#define XZ_MEMORY_BYTES ((uint64_t)256 << 20)

struct input;

// How one compression is undone. fill() writes at most capacity bytes to `to` and returns how many, 0 at the end, SIZE_MAX on damage.
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
    const struct codec *codec; // NULL: plain
    unsigned char *buffer;     // of the file
    size_t at, filled;
    bool at_end;  // of the file
    bool between; // at a boundary of compressed members, where the file may end
    uint64_t produced;
    char error[256]; // "" while all is well
    union {
        z_stream gzip;
        lzma_stream xz;
        ZSTD_DStream *zstd;
    } state;
};

static size_t fail(struct input *input, const char *what) {
    (void)snprintf(input->error, sizeof input->error, "%s", what);
    return SIZE_MAX;
}

static size_t damaged(struct input *input, const char *reason) {
    (void)snprintf(input->error, sizeof input->error, "the %s data is damaged: %s", input->codec->name, reason);
    return SIZE_MAX;
}

// More bytes in the buffer. False at the end of the file or on an error (then input->error says so).
static bool refill(struct input *input) {
    if (input->at_end || input->error[0] != '\0') return false;
    input->at = 0;
    input->filled = fread(input->buffer, 1, BUFFER_BYTES, input->file);
    if (input->filled < BUFFER_BYTES && ferror(input->file)) (void)fail(input, strerror(errno));
    input->at_end = input->filled < BUFFER_BYTES;
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
        if (input->at == input->filled && !refill(input)) {
            if (input->error[0] != '\0') return SIZE_MAX;
            return input->between ? 0 : damaged(input, "it ends too early");
        }
        if (input->between && inflateReset(stream) != Z_OK) return damaged(input, "it cannot be restarted");
        input->between = false;
        stream->next_in = input->buffer + input->at;
        stream->avail_in = (uInt)(input->filled - input->at);
        const int result = inflate(stream, Z_NO_FLUSH);
        input->at = input->filled - stream->avail_in;
        if (result == Z_STREAM_END) {
            input->between = true;
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return damaged(input, stream->msg != NULL ? stream->msg : "it cannot be inflated");
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
        if (input->at == input->filled && !refill(input) && input->error[0] != '\0') return SIZE_MAX;
        const bool over = input->at == input->filled && input->at_end;
        stream->next_in = input->buffer + input->at;
        stream->avail_in = input->filled - input->at;
        const lzma_ret result = lzma_code(stream, over ? LZMA_FINISH : LZMA_RUN);
        input->at = input->filled - stream->avail_in;
        if (result == LZMA_STREAM_END) break;
        if (result == LZMA_MEMLIMIT_ERROR) return damaged(input, "it needs more than 256 MiB to unpack");
        if (result == LZMA_BUF_ERROR) return damaged(input, "it ends too early");
        if (result != LZMA_OK) return damaged(input, "it cannot be unpacked");
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
        if (input->at == input->filled && !refill(input)) {
            if (input->error[0] != '\0') return SIZE_MAX;
            return input->between ? 0 : damaged(input, "it ends too early");
        }
        ZSTD_inBuffer in = {input->buffer, input->filled, input->at};
        const size_t result = ZSTD_decompressStream(input->state.zstd, &out, &in);
        input->at = in.pos;
        if (ZSTD_isError(result)) return damaged(input, ZSTD_getErrorName(result));
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
    if (input->at == input->filled && !refill(input)) return input->error[0] == '\0' ? 0 : SIZE_MAX;
    const size_t part = input->filled - input->at < capacity ? input->filled - input->at : capacity;
    memcpy(to, input->buffer + input->at, part);
    input->at += part;
    return part;
}

// struct vram_input's read().
static size_t input_read(void *context, void *buffer, size_t capacity) {
    struct input *input = context;
    const size_t count = input->codec == NULL ? fill_plain(input, buffer, capacity) : input->codec->fill(input, buffer, capacity);
    if (count != SIZE_MAX) input->produced += count;
    return count;
}

// Looks at the first bytes. False when the decompressor cannot start.
static bool choose_codec(struct input *input) {
    (void)refill(input);
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        if (input->filled < codecs[i].magic_length || memcmp(input->buffer, codecs[i].magic, codecs[i].magic_length) != 0) continue;
        input->codec = &codecs[i];
        if (codecs[i].begin(input)) return true;
        input->codec = NULL;
        (void)fail(input, "no host memory to unpack it");
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
        *reason = "is a directory, a recording is a file";
        return NULL;
    }
    return file;
}

static int read_recording(struct input *input, const char *name, struct vram_recording **recording) {
    struct vram_error error = {.status = VRAM_IO, .offset = VRAM_NO_OFFSET};
    const struct vram_input source = {.read = input_read, .context = input, .name = NULL};
    if (choose_codec(input)) {
        if (vram_recording_read(&source, recording, &error) == VRAM_OK) return CLI_OK;
    }
    if (input->error[0] == '\0') return ui_error(name, &error);
    const bool started = input->produced != 0;
    error = (struct vram_error){.status = VRAM_IO, .offset = input->produced};
    (void)snprintf(error.message, sizeof error.message, started ? "%s (after %llu bytes)" : "%s", input->error,
                   (unsigned long long)input->produced);
    return ui_error(name, &error);
}

int input_recording(const char *path, struct vram_recording **recording, struct input_facts *facts) {
    const bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    const char *reason = NULL;
    struct input input = {.file = standard ? stdin : open_file(path, &reason)};
    if (input.file == NULL) return open_failed(name, reason);
    input.buffer = malloc(BUFFER_BYTES);
    const int code = input.buffer == NULL ? open_failed(name, "no host memory to read it") : read_recording(&input, name, recording);
    if (input.codec != NULL) input.codec->end(&input);
    free(input.buffer);
    if (!standard) fclose(input.file);
    if (code == CLI_OK) *facts = (struct input_facts){.name = name, .bytes = input.produced};
    return code;
}

const char *input_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL || slash[1] == '\0' ? path : slash + 1;
}
