// realpath()

#define _XOPEN_SOURCE 700

#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "args.h"
#include "input.h"
#include "ui.h"

enum { BUFFER_BYTES = 1 << 17, ZSTD_LEVEL = 6, XZ_LEVEL = 4 };

// A compressor. begin() returns false if memory runs out. fill() takes all bytes, flushes the rest if `last`, and passes its output to
// emit().
struct packer {
    const char *suffix;
    bool (*begin)(struct output *output);
    bool (*fill)(struct output *output, const char *bytes, size_t length, bool last);
    void (*end)(struct output *output);
};

struct output {
    FILE *file;
    char *path;      // final path; NULL: written in place
    char *temporary; // current path
    const char *name;
    const struct packer *packer; // NULL: plain
    unsigned char *buffer;
    int error; // errno of the first failure
    union {
        z_stream gzip;
        lzma_stream xz;
        ZSTD_CStream *zstd;
    } state;
};

static bool fail_output(struct output *output, int error) {
    if (output->error == 0) output->error = error == 0 ? EIO : error;
    return false;
}

static bool emit_bytes(struct output *output, const void *bytes, size_t length) {
    return length == 0 || fwrite(bytes, 1, length, output->file) == length || fail_output(output, errno);
}

static bool begin_gzip(struct output *output) {
    return deflateInit2(&output->state.gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
}

static bool fill_gzip(struct output *output, const char *bytes, size_t length, bool last) {
    z_stream *stream = &output->state.gzip;
    int result;
    // zlib counts in unsigned int.
    for (const size_t most = 1u << 30; length > most; bytes += most, length -= most) {
        if (!fill_gzip(output, bytes, most, false)) return false;
    }
    stream->next_in = (unsigned char *)(uintptr_t)bytes;
    stream->avail_in = (uInt)length;
    do {
        stream->next_out = output->buffer;
        stream->avail_out = BUFFER_BYTES;
        result = deflate(stream, last ? Z_FINISH : Z_NO_FLUSH);
        if (!emit_bytes(output, output->buffer, BUFFER_BYTES - stream->avail_out)) return false;
    } while (last ? result != Z_STREAM_END : stream->avail_in != 0);
    return true;
}

static void end_gzip(struct output *output) { (void)deflateEnd(&output->state.gzip); }

static bool begin_xz(struct output *output) { return lzma_easy_encoder(&output->state.xz, XZ_LEVEL, LZMA_CHECK_CRC64) == LZMA_OK; }

static bool fill_xz(struct output *output, const char *bytes, size_t length, bool last) {
    lzma_stream *stream = &output->state.xz;
    lzma_ret result;
    stream->next_in = (const unsigned char *)bytes;
    stream->avail_in = length;
    do {
        stream->next_out = output->buffer;
        stream->avail_out = BUFFER_BYTES;
        result = lzma_code(stream, last ? LZMA_FINISH : LZMA_RUN);
        if (result != LZMA_OK && result != LZMA_STREAM_END) return fail_output(output, ENOMEM);
        if (!emit_bytes(output, output->buffer, BUFFER_BYTES - stream->avail_out)) return false;
    } while (last ? result != LZMA_STREAM_END : stream->avail_in != 0);
    return true;
}

static void end_xz(struct output *output) { lzma_end(&output->state.xz); }

static bool begin_zstd(struct output *output) {
    output->state.zstd = ZSTD_createCStream();
    return output->state.zstd != NULL && !ZSTD_isError(ZSTD_initCStream(output->state.zstd, ZSTD_LEVEL));
}

static bool fill_zstd(struct output *output, const char *bytes, size_t length, bool last) {
    ZSTD_inBuffer in = {bytes, length, 0};
    size_t left;
    do {
        ZSTD_outBuffer out = {output->buffer, BUFFER_BYTES, 0};
        left = ZSTD_compressStream2(output->state.zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left)) return fail_output(output, ENOMEM);
        if (!emit_bytes(output, output->buffer, out.pos)) return false;
    } while (last ? left != 0 : in.pos != in.size);
    return true;
}

static void end_zstd(struct output *output) { (void)ZSTD_freeCStream(output->state.zstd); }

static const struct packer packers[] = {
    {".gz", begin_gzip, fill_gzip, end_gzip},
    {".xz", begin_xz, fill_xz, end_xz},
    {".zst", begin_zstd, fill_zstd, end_zstd},
};

static const struct packer *packer_of(const char *path) {
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof packers / sizeof packers[0]; i++) {
        size_t suffix = strlen(packers[i].suffix);
        if (length > suffix && strcmp(path + length - suffix, packers[i].suffix) == 0) return &packers[i];
    }
    return NULL;
}

size_t output_plain_length(const char *path) {
    const struct packer *packer = packer_of(path);
    return strlen(path) - (packer == NULL ? 0 : strlen(packer->suffix));
}

bool output_is_input(const char *output, const char *input) {
    struct stat a, b;
    char *file = strndup(input, input_file_length(input));
    const bool there = file != NULL && stat(output, &a) == 0 && (strcmp(file, "-") == 0 ? fstat(STDIN_FILENO, &b) : stat(file, &b)) == 0;
    free(file);
    return there && S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Opens a new file with a random name in the folder of output->path. Only this user may access it; if it replaces this user's file, it gets
// that file's permissions.
static bool open_temporary(struct output *output) {
    static const char ending[] = ".XXXXXX";
    const size_t length = strlen(output->path);
    struct stat facts;
    output->temporary = malloc(length + sizeof ending);
    if (output->temporary == NULL) return fail_output(output, ENOMEM);
    memcpy(output->temporary, output->path, length);
    memcpy(output->temporary + length, ending, sizeof ending);
    const int file = mkstemp(output->temporary);
    if (file < 0) {
        free(output->temporary);
        output->temporary = NULL;
        return fail_output(output, errno);
    }
    if (lstat(output->path, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid()) (void)fchmod(file, facts.st_mode & 0777);
    output->file = fdopen(file, "wb");
    return output->file != NULL || fail_output(output, errno);
}

// Returns the descriptor of this process that a path denotes; -1 if it names a file. Opening or replacing it by name would lose the
// contents of a log that a stream appends to.
static int descriptor_of(const char *path) {
    int number, end = 0;
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0) return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0) return STDERR_FILENO;
    return sscanf(path, "/dev/fd/%5d%n", &number, &end) == 1 && path[end] == '\0' ? number : -1;
}

static bool open_descriptor(struct output *output, int descriptor) {
    if (descriptor == STDOUT_FILENO) {
        output->file = stdout;
        return true;
    }
    const int again = dup(descriptor);
    output->file = again < 0 ? NULL : fdopen(again, "wb");
    return output->file != NULL || fail_output(output, errno);
}

// Returns whether the path is a link made by another user, except root. Such a link is not followed: anyone who can write to the folder may
// have planted it.
static bool is_foreign_link(const char *path) {
    struct stat facts;
    return lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode) && facts.st_uid != geteuid() && facts.st_uid != 0;
}

static bool open_path(struct output *output, const char *path) {
    struct stat facts;
    const bool exists = stat(path, &facts) == 0;
    const int descriptor = descriptor_of(path);
    if (descriptor >= 0) return open_descriptor(output, descriptor);
    if (is_foreign_link(path)) return fail_output(output, ELOOP);
    if (exists && S_ISDIR(facts.st_mode)) return fail_output(output, EISDIR);
    if (exists && !S_ISREG(facts.st_mode)) {
        const int file = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
        output->file = file < 0 ? NULL : fdopen(file, "wb");
        return output->file != NULL || fail_output(output, errno);
    }
    // Keep this user's own link and replace its target.
    output->path = exists ? realpath(path, NULL) : strdup(path);
    return output->path == NULL ? fail_output(output, errno) : open_temporary(output);
}

static void release_output(struct output *output) {
    if (output->packer != NULL) output->packer->end(output);
    free(output->path);
    free(output->temporary);
    free(output->buffer);
    free(output);
}

static void complain_of_output(const struct output *output) {
    // ui_finish() reports failures of standard output.
    if (output->file == stdout && ferror(stdout)) return;
    ui_say("vram: %s: cannot write: %s", output->name, strerror(output->error));
}

struct output *output_open(const char *path) {
    struct output *output = calloc(1, sizeof *output);
    if (output == NULL) {
        ui_say("vram: %s: cannot write: not enough host memory", path);
        return NULL;
    }
    output->name = strcmp(path, "-") == 0 ? "standard output" : path;
    const struct packer *packer = packer_of(path);
    if (packer != NULL) output->buffer = malloc(BUFFER_BYTES);
    bool good = open_path(output, path) && (packer == NULL || output->buffer != NULL || fail_output(output, ENOMEM));
    if (good && packer != NULL) {
        good = packer->begin(output) || fail_output(output, ENOMEM);
        output->packer = packer;
    }
    if (good) return output;
    (void)output_close(output, false);
    return NULL;
}

bool output_write(void *user, const char *bytes, size_t length) {
    struct output *output = user;
    if (output->error != 0) return false;
    return output->packer == NULL ? emit_bytes(output, bytes, length) : output->packer->fill(output, bytes, length, false);
}

int output_close(struct output *output, bool keep) {
    if (output == NULL) return CLI_OK;
    if (keep && output->error == 0 && output->packer != NULL) (void)output->packer->fill(output, NULL, 0, true);
    if (output->file != NULL && (output->file == stdout ? fflush(stdout) : fclose(output->file)) != 0) (void)fail_output(output, errno);
    const bool replaces = keep && output->error == 0;
    if (replaces && output->temporary != NULL && rename(output->temporary, output->path) != 0) (void)fail_output(output, errno);
    if (output->temporary != NULL && (!replaces || output->error != 0)) (void)unlink(output->temporary);
    if (output->error != 0) complain_of_output(output);
    const int code = output->error == 0 ? CLI_OK : CLI_BAD_INPUT;
    release_output(output);
    return code;
}

int output_end(struct output *output, enum vram_status status, const char *name, const struct vram_error *error) {
    const int code = status == VRAM_OK || status == VRAM_IO ? CLI_OK : ui_error(name, error);
    const int closed = output_close(output, status == VRAM_OK);
    if (code != CLI_OK) return code;
    return closed == CLI_OK && status != VRAM_OK ? CLI_BAD_INPUT : closed;
}

bool output_is_folder(const char *path) {
    struct stat facts;
    const size_t length = strlen(path);
    return (length != 0 && path[length - 1] == '/') || (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode));
}

bool output_folder(const char *path) {
    char *part = strdup(path);
    bool good = part != NULL;
    for (char *slash = part; good && (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        good = mkdir(part, 0777) == 0 || errno == EEXIST;
        *slash = '/';
    }
    if (!good) ui_say("vram: %s: cannot create its folder: %s", path, strerror(part == NULL ? ENOMEM : errno));
    free(part);
    return good;
}

// Cuts a path to the folder that has it.
static void cut_to_parent(char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') path[--length] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        (void)strcpy(path, ".");
    else
        slash[slash == path] = '\0';
}

// Returns whether an entry can be made in a folder. In /proc that fails even for users whom access() promises it.
static bool takes_entries(const char *folder) {
    static const char name[] = "/.vram-can-write";
    char *path = malloc(strlen(folder) + sizeof name);
    if (path == NULL) return false;
    (void)strcpy(path, folder);
    (void)strcat(path, name);
    const bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
    const int error = errno;
    if (made) (void)rmdir(path);
    free(path);
    errno = error == ENOENT ? EACCES : error; // the folder exists
    return made;
}

static bool is_writable_folder(const char *path) {
    struct stat facts;
    if (stat(path, &facts) != 0) return false;
    if (S_ISDIR(facts.st_mode)) return access(path, W_OK | X_OK) == 0 && takes_entries(path);
    errno = ENOTDIR;
    return false;
}

bool output_can_write(const char *path, bool folder) {
    struct stat facts;
    if (strcmp(path, "-") == 0 || (folder && is_writable_folder(path))) return true;
    const bool exists = stat(path, &facts) == 0;
    if (exists && !folder && !S_ISREG(facts.st_mode)) return access(path, W_OK) == 0;
    if (folder ? exists || errno != ENOENT : !exists && errno != ENOENT) return false;
    char *parent = malloc(strlen(path) + 2); // for "."
    if (parent == NULL) return false;
    (void)strcpy(parent, path);
    do cut_to_parent(parent);
    while (folder && !is_writable_folder(parent) && errno == ENOENT);
    const bool good = is_writable_folder(parent);
    const int error = errno;
    free(parent);
    errno = error;
    return good;
}

FILE *output_append(const char *path) { return fopen(path, "ae"); }

void answers_open(struct answers *answers, bool json, bool is_array, const char *between) {
    *answers = (struct answers){.json = json, .is_array = json && is_array, .between = between};
    if (answers->is_array) printf("[\n");
}

void answers_close(struct answers *answers) {
    if (answers->is_array)
        printf("\n]\n");
    else if (answers->json && answers->begun != 0)
        printf("\n");
}

void answers_expect(struct answers *answers) { answers->due = true; }

void answers_begin(struct answers *answers) {
    if (!answers->due) return;
    answers->due = false;
    if (answers->begun++ != 0) printf("%s", answers->json ? ",\n" : answers->between);
}

bool answers_write(void *user, const char *bytes, size_t length) {
    struct answers *answers = user;
    if (length != 0) answers_begin(answers);
    return ui_write(NULL, bytes, length);
}

struct vr_json *answer_json_begin(struct answer_json *answer) {
    *answer = (struct answer_json){.text = {.bytes = NULL}};
    vr_json_init(&answer->json, &answer->text, true);
    return &answer->json;
}

void answer_json_decimal(struct vr_json *json, const char *key, double value, int digits) {
    char text[64];
    (void)snprintf(text, sizeof text, "%.*f", digits, value);
    vr_json_double(json, key, strtod(text, NULL));
}

int answer_json_end(struct answer_json *answer, struct answers *answers) {
    const bool good = vr_text_status(&answer->text) == VRAM_OK;
    if (answers != NULL && good) (void)answers_write(answers, answer->text.bytes, answer->text.length);
    if (answers == NULL && good) printf("%s\n", vr_text_string(&answer->text));
    if (!good) ui_say("vram: not enough host memory for the answer");
    vr_text_release(&answer->text);
    return good ? CLI_OK : CLI_BAD_INPUT;
}
