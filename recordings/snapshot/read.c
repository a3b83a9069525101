// Detects a file's format by its first bytes, and implements the public read functions.
#include <stdio.h>

#include "model/recording.h"
#include "snapshot/formats.h"
#include "snapshot/input.h"

enum format { FORMAT_PICKLE, FORMAT_JSON, FORMAT_HTML, FORMAT_VRAM, FORMAT_RMM, FORMAT_KINETO, FORMAT_TIMELINE };

enum { TELLING_BYTES = 128 }; // enough to distinguish kinds of JSON

static const struct {
    const char *bytes;
    const char *what;
} foreign[] = {
    {"\x28\xb5\x2f\xfd", "compressed with zstd; unpack it first"},
    {"\x1f\x8b", "compressed with gzip; unpack it first"},
    {"\xfd\x37zXZ", "compressed with xz; unpack it first"},
    {"BZh", "compressed with bzip2; unpack it first"},
    {"PK\x03\x04", "a ZIP archive; unpack it first"},
    {"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"},
    {"\x93NUMPY", "a NumPy array; save the snapshot itself with pickle or json"},
    {"version https://git-lfs.", "a Git LFS pointer to one; fetch it with `git lfs pull`"},
    {"\xff\xfe", "text in UTF-16; save it as UTF-8"},
    {"\xfe\xff", "text in UTF-16; save it as UTF-8"},
    {"\x7f"
     "ELF",
     "a program"},
    {"SQLite format 3", "an SQLite database, such as Nsight Systems exports; record the program with `vram run` or PyTorch's history"},
};

#define PPROF_MAGIC "\x0a\x04\x08" // the first sample type, of two small numbers

// Recognizes files of other tools that look like a recording by their first byte.
static const char *other_kind(const struct vr_input *input) {
    const char *text = (const char *)input->next;
    const size_t length = vr_input_at_hand(input) < TELLING_BYTES ? vr_input_at_hand(input) : TELLING_BYTES;
    static const char rmm[] = "RMM LOG BEGIN";
    if (length > sizeof PPROF_MAGIC && memcmp(text, PPROF_MAGIC, sizeof PPROF_MAGIC - 1) == 0)
        return "a pprof profile, such as JAX's memory.prof, which has no history; record the program with `vram run`";
    for (size_t i = 0; i + sizeof rmm - 1 <= length; i++) {
        if (memcmp(text + i, rmm, sizeof rmm - 1) == 0)
            return "RMM's debug log, which has only failures; log allocations with rmm.enable_logging() or "
                   "rmm::mr::logging_resource_adaptor (a CSV table) and read that log";
    }
    return NULL;
}

// Recognizes the log of a job that ran out of memory. Such a log is text and no recording.
static bool is_oom_log(const struct vr_input *input) {
    static const char *const words[] = {"CUDA out of memory", "OutOfMemoryError", "HIP out of memory", "RESOURCE_EXHAUSTED"};
    const char *text = (const char *)input->next;
    const size_t length = vr_input_at_hand(input);
    for (size_t w = 0; w < VR_COUNT_OF(words); w++) {
        const size_t long_as = strlen(words[w]);
        for (size_t i = 0; i + long_as <= length; i++) {
            if (text[i] == words[w][0] && memcmp(text + i, words[w], long_as) == 0) return true;
        }
    }
    return false;
}

static enum vram_status refuse_format(const struct vr_input *input, struct vram_error *error) {
    if (vr_input_at_hand(input) == 0) return vr_fail(error, VRAM_BAD_INPUT, vr_input_offset(input), "the file is empty");
    for (size_t i = 0; i < VR_COUNT_OF(foreign); i++) {
        size_t length = strlen(foreign[i].bytes);
        if (vr_input_at_hand(input) < length || memcmp(input->next, foreign[i].bytes, length) != 0) continue;
        return vr_fail(error, VRAM_BAD_INPUT, vr_input_offset(input), "not a recording but %s", foreign[i].what);
    }
    if (is_oom_log(input))
        return vr_fail(error, VRAM_BAD_INPUT, vr_input_offset(input),
                       "not a recording but the log of a program that ran out of memory; to find out why, record it with VRAM_ON_OOM=dump "
                       "or torch.cuda.memory._record_memory_history()");
    return vr_fail(error, VRAM_BAD_INPUT, vr_input_offset(input),
                   "not a recording: unrecognized format (first byte 0x%02x); expected pickle, JSON, HTML, .vram or an RMM log",
                   *input->next);
}

// Recognizes pickles of protocols 0 and 1, which have no header: a dictionary or list begins, and its memo index follows.
static bool is_old_pickle(const struct vr_input *input) {
    static const char beginnings[][3] = {"(d", "(l", "}q", "]q"};
    for (size_t i = 0; i < VR_COUNT_OF(beginnings) && vr_input_at_hand(input) > 2; i++) {
        if (memcmp(input->next, beginnings[i], 2) == 0) return true;
    }
    return false;
}

// Detects the format, skipping a byte order mark and white space.
static enum vram_status find_format(struct vr_input *input, enum format *format, struct vram_error *error) {
    VR_TRY(vr_input_fill(input, 8));
    if (vr_input_at_hand(input) >= VR_VRAMFILE_MAGIC_LENGTH && memcmp(input->next, VR_VRAMFILE_MAGIC, VR_VRAMFILE_MAGIC_LENGTH) == 0) {
        *format = FORMAT_VRAM;
        return VRAM_OK;
    }
    VR_TRY(vr_input_fill(input, TELLING_BYTES));
    const char *other = other_kind(input);
    if (other != NULL) return vr_fail(error, VRAM_BAD_INPUT, vr_input_offset(input), "not a recording but %s", other);
    if (vr_input_at_hand(input) >= 3 && memcmp(input->next, "\xef\xbb\xbf", 3) == 0) input->next += 3;
    while (vr_input_at_hand(input) != 0 && strchr(" \t\r\n", *input->next) != NULL && *input->next != '\0') {
        input->next++;
        VR_TRY(vr_input_fill(input, 1));
    }
    VR_TRY(vr_input_fill(input, TELLING_BYTES));
    if (vr_input_at_hand(input) >= VR_RMM_MAGIC_LENGTH && memcmp(input->next, VR_RMM_MAGIC, VR_RMM_MAGIC_LENGTH) == 0) {
        *format = FORMAT_RMM;
        return VRAM_OK;
    }
    if (vr_kineto_begins(input->next, vr_input_at_hand(input))) {
        *format = FORMAT_KINETO;
        return VRAM_OK;
    }
    if (vr_timeline_begins(input->next, vr_input_at_hand(input))) {
        *format = FORMAT_TIMELINE;
        return VRAM_OK;
    }
    if (is_old_pickle(input)) {
        *format = FORMAT_PICKLE;
        return VRAM_OK;
    }
    switch (vr_input_at_hand(input) == 0 ? 0 : *input->next) {
    case 0x80: *format = FORMAT_PICKLE; return VRAM_OK;
    case '{':
    case '[': *format = FORMAT_JSON; return VRAM_OK;
    case '<': *format = FORMAT_HTML; return VRAM_OK;
    default: return refuse_format(input, error);
    }
}

static enum vram_status read_model(struct vr_input *input, enum format format, struct vr_model *model, struct vram_error *error) {
    struct vr_machine machine;
    if (format == FORMAT_VRAM) return vr_vramfile_read(input, model, error);
    if (format == FORMAT_RMM) return vr_rmm_read(input, model, error);
    if (format == FORMAT_KINETO) return vr_kineto_read(input, model, error);
    if (format == FORMAT_TIMELINE) return vr_timeline_read(input, model, error);
    VR_TRY(vr_machine_init(&machine, error, VR_BUDGET_BASE));
    vr_input_set_budget(input, &machine.builder.budget);
    enum vram_status status = format == FORMAT_PICKLE ? vr_pickle_read(input, &machine) : vr_json_read(input, &machine);
    vr_input_set_budget(input, NULL);
    if (status == VRAM_OK) {
        status = vr_finish(&machine, model);
        if (status != VRAM_OK) vr_machine_locate(&machine, status, VRAM_NO_OFFSET);
    }
    vr_machine_release(&machine);
    return status;
}

static enum vram_status read_page(struct vr_input *page, const char *name, struct vr_model *model, struct vram_error *error) {
    struct vr_html html;
    struct vram_input from;
    struct vr_input inner;
    enum format format = FORMAT_PICKLE;
    VR_TRY(vr_html_open(&html, page, name, &from, error));
    VR_TRY(vr_input_on_input(&inner, &from));
    enum vram_status status = find_format(&inner, &format, error);
    if (status == VRAM_OK && format == FORMAT_HTML) {
        status = vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET, "the HTML page contains another HTML page instead of a recording");
    }
    if (status == VRAM_OK) status = read_model(&inner, format, model, error);
    if (status == VRAM_IO && html.damaged) {
        status = vr_fail(error, VRAM_BAD_INPUT, vr_input_offset(page), "the recording in the HTML page is not valid base64");
    }
    vr_input_release(&inner);
    return status;
}

// Completes the message: the file, the problem, and the offset.
static void complete_error(struct vram_error *error, enum vram_status status, const char *name) {
    char message[sizeof error->message];
    if (error->status != status) {
        (void)vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
    }
    memcpy(message, error->message, sizeof message);
    const char *prefix = name == NULL ? "" : name, *colon = name == NULL ? "" : ": ";
    if (error->offset == VRAM_NO_OFFSET)
        (void)vr_fail(error, status, error->offset, "%s%s%s", prefix, colon, message);
    else
        (void)vr_fail(error, status, error->offset, "%s%s%s (at byte %llu)", prefix, colon, message, (unsigned long long)error->offset);
}

static enum vram_status read_input(struct vr_input *input, const char *name, struct vram_recording **recording, struct vram_error *error) {
    struct vram_error own = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    struct vr_model model = {0};
    enum format format = FORMAT_PICKLE;
    enum vram_status status = find_format(input, &format, &own);
    if (status == VRAM_OK) {
        status = format == FORMAT_HTML ? read_page(input, name, &model, &own) : read_model(input, format, &model, &own);
    }
    if (status == VRAM_OK) status = vr_recording_create(&model, recording);
    if (status == VRAM_OK) return VRAM_OK;
    vr_model_release(&model);
    complete_error(&own, status, name);
    if (error != NULL) *error = own;
    return status;
}

enum vram_status vram_recording_read(const struct vram_input *from, struct vram_recording **recording, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, from && from->read && recording);
    struct vr_input input;
    enum vram_status status = vr_input_on_input(&input, from);
    if (status != VRAM_OK) return vr_fail(error, status, VRAM_NO_OFFSET, "%s", vram_status_text(status));
    status = read_input(&input, from->name, recording, error);
    vr_input_release(&input);
    return status;
}

enum vram_status vram_recording_read_memory(const void *data, size_t size, const char *name, struct vram_recording **recording,
                                            struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, recording && (data || size == 0));
    struct vr_input input;
    vr_input_on_memory(&input, data, size);
    return read_input(&input, name, recording, error);
}

static size_t read_stream(void *context, void *buffer, size_t capacity) {
    size_t got = fread(buffer, 1, capacity, context);
    return got == 0 && ferror((FILE *)context) ? SIZE_MAX : got;
}

enum vram_status vram_recording_read_file(const char *path, struct vram_recording **recording, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, path && recording);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return vr_fail(error, VRAM_IO, VRAM_NO_OFFSET, "%s: cannot open the file", path);
    (void)setvbuf(file, NULL, _IONBF, 0);
    struct vram_input from = {.read = read_stream, .context = file, .name = path};
    enum vram_status status = vram_recording_read(&from, recording, error);
    (void)fclose(file);
    return status;
}
