#include "dataset.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "input_files.h"
#include "output.h"
#include "ui.h"
#include "vram/export.h"

static bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

// Parses a number of at most 18 digits at *text and advances past it.
static bool number_at(const char **text, const char *end, uint64_t *number) {
    const char *at = *text;
    uint64_t value = 0;
    while (at < end && is_digit(*at)) value = value * 10 + (uint64_t)(*at++ - '0') % 10;
    const bool good = at != *text && at - *text <= 18;
    *text = at;
    if (good) *number = value;
    return good;
}

// Finds the first "rank" in the text, in upper or lower case. Returns NULL if absent.
static const char *find_word(const char *text, const char *end) {
    for (; end - text > 4; text++) {
        size_t i = 0;
        while (i < 4 && (text[i] | 0x20) == "rank"[i]) i++;
        if (i == 4) return text;
    }
    return NULL;
}

bool rank_of_path(const char *path, uint64_t *rank) {
    const char *name = input_base_name(path), *end = strchr(name, '.');
    if (end == NULL || find_word(name, end) == NULL) {
        // In "job.rank_12.json" the rank looks like part of the extension.
        const char *whole = name + strlen(name);
        if (find_word(name, whole) != NULL || end == NULL) end = whole;
    }
    for (const char *at = name; (at = find_word(at, end)) != NULL;) {
        at += 4;
        while (at < end && strchr("_-=.", *at) != NULL) at++;
        if (number_at(&at, end, rank)) return true;
    }
    uint64_t only = 0;
    int numbers = 0;
    for (const char *at = name; at < end;) {
        if (!is_digit(*at))
            at++;
        else if (number_at(&at, end, &only))
            numbers++;
        else
            return false;
    }
    if (numbers == 1) *rank = only;
    return numbers == 1;
}

enum { PATH_BYTES = 4096 };

static const struct table {
    const char *name;
    enum vram_export_table table;
    bool by_device; // one file per device
} tables[] = {{"events", VRAM_TABLE_EVENTS, true},
              {"peaks", VRAM_TABLE_PEAKS, true},
              {"sites", VRAM_TABLE_SITES, true},
              {"stacks", VRAM_TABLE_STACKS, false}};

// The output so far.
struct progress {
    const struct dataset *dataset;
    uint64_t recordings, files, events;
    char **keys; // rank and name of each recording
    size_t key_count;
};

static bool is_key_byte(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_';
}

// Appends text as part of a path. Writes leading dots, and bytes other than letters, digits, '_', '-' and '.', as %XX.
static void append_safe(char *path, size_t *length, const char *text, size_t text_length) {
    for (size_t i = 0; i < text_length && *length + 4 < PATH_BYTES; i++) {
        const unsigned char byte = (unsigned char)text[i];
        const bool safe = is_key_byte((char)byte) || byte == '-' || (byte == '.' && i != 0);
        *length += (size_t)snprintf(path + *length, PATH_BYTES - *length, safe ? "%c" : "%%%02X", byte);
    }
}

static void append_plain(char *path, size_t *length, const char *text) {
    const size_t room = PATH_BYTES - 1 - *length, wanted = strlen(text), copied = wanted < room ? wanted : room;
    memcpy(path + *length, text, copied);
    *length += copied;
    path[*length] = '\0';
}

bool dataset_labels_are_good(const struct dataset *dataset) {
    static const char *const own[] = {"job", "rank", "device"};
    for (size_t i = 0; i < dataset->labels.count; i++) {
        const char *label = dataset->labels.values[i], *equals = strchr(label, '=');
        size_t length = 0;
        while (is_key_byte(label[length])) length++;
        bool good = equals != NULL && length != 0 && label + length == equals && equals[1] != '\0';
        for (size_t o = 0; good && o < sizeof own / sizeof *own; o++) good = strlen(own[o]) != length || memcmp(own[o], label, length) != 0;
        for (size_t other = 0; good && other < i; other++) good = strncmp(dataset->labels.values[other], label, length + 1) != 0;
        if (!good) {
            ui_say("vram: --label %s: expected KEY=VALUE with a new key of letters, digits and underscores", label);
            return false;
        }
    }
    return true;
}

// Builds the path of one file. Returns false if it is too long.
static bool path_of(const struct dataset *dataset, const struct table *table, uint64_t rank, int64_t device, const char *name, char *path) {
    size_t length = 0;
    append_plain(path, &length, dataset->folder);
    append_plain(path, &length, "/");
    append_plain(path, &length, table->name);
    append_plain(path, &length, "/job=");
    const char *job = dataset->job == NULL ? "job" : dataset->job;
    append_safe(path, &length, job, strlen(job));
    for (size_t i = 0; i < dataset->labels.count; i++) {
        const char *label = dataset->labels.values[i], *equals = strchr(label, '=');
        append_plain(path, &length, "/");
        append_safe(path, &length, label, (size_t)(equals - label));
        append_plain(path, &length, "=");
        append_safe(path, &length, equals + 1, strlen(equals + 1));
    }
    char number[64];
    snprintf(number, sizeof number, "/rank=%" PRIu64, rank);
    append_plain(path, &length, number);
    snprintf(number, sizeof number, "/device=%" PRId64, device);
    if (device >= 0) append_plain(path, &length, number);
    append_plain(path, &length, "/");
    append_safe(path, &length, name, strlen(name));
    append_plain(path, &length, ".arrow");
    return length + 1 < PATH_BYTES - 4;
}

static int write_table(const struct vram_recording *recording, const char *name, const char *path, const struct table *table,
                       const uint32_t *device) {
    struct output *output = output_folder(path) ? output_open(path) : NULL;
    if (output == NULL) return CLI_BAD_INPUT;
    const struct vram_export_options options = {.table = table->table, .device = device};
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const enum vram_status status = vram_recording_export(recording, VRAM_EXPORT_ARROW, &options, output_write, output, &error);
    return output_end(output, status, name, &error);
}

static bool has_device(const struct vram_recording *recording, uint32_t device) {
    if (vram_recording_event_count(recording, device) != 0) return true;
    struct vram_recorded_segment segment;
    for (uint64_t i = 0; vram_recording_segment(recording, i, &segment); i++) {
        if (segment.device == device) return true;
    }
    return false;
}

static int write_tables(const struct vram_recording *recording, uint64_t rank, const char *name, struct progress *progress) {
    const uint32_t devices = vram_recording_device_count(recording);
    char path[PATH_BYTES];
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        for (uint32_t device = 0; device < (tables[t].by_device ? devices : 1); device++) {
            if (tables[t].by_device && !has_device(recording, device)) continue;
            if (!path_of(progress->dataset, &tables[t], rank, tables[t].by_device ? (int64_t)device : -1, name, path)) {
                ui_say("vram: %s: the path of its table is too long", name);
                return CLI_BAD_INPUT;
            }
            const int code = write_table(recording, name, path, &tables[t], tables[t].by_device ? &device : NULL);
            if (code != CLI_OK) return code;
            progress->files++;
        }
    }
    progress->events += vram_recording_event_count(recording, VRAM_ALL_DEVICES);
    return CLI_OK;
}

// Registers a recording's rank and name. Returns false, after a line on standard error, if they are taken or host memory ran out.
static bool is_new(struct progress *progress, uint64_t rank, const char *name) {
    const size_t length = strlen(name) + 32;
    char *key = malloc(length);
    char **keys = realloc(progress->keys, (progress->key_count + 1) * sizeof *keys);
    if (keys != NULL) progress->keys = keys;
    if (key == NULL || keys == NULL) {
        free(key);
        ui_say("vram: not enough host memory");
        return false;
    }
    snprintf(key, length, "%" PRIu64 "/%s", rank, name);
    for (size_t i = 0; i < progress->key_count; i++) {
        if (strcmp(keys[i], key) != 0) continue;
        ui_say("vram: %s: a recording of this name and rank %" PRIu64 " exists already; rename one, or write them as separate jobs", name,
               rank);
        free(key);
        return false;
    }
    keys[progress->key_count++] = key;
    return true;
}

static int add_recording(const struct input_opened *opened, void *context) {
    struct progress *progress = context;
    uint64_t rank;
    if (!rank_of_path(opened->path, &rank)) rank = progress->recordings;
    const char *name = input_base_name(opened->path);
    if (!is_new(progress, rank, name)) return CLI_BAD_INPUT;
    const int code = write_tables(opened->recording, rank, name, progress);
    progress->recordings += code == CLI_OK;
    return code;
}

int dataset_write(char **operands, int count, const struct dataset *dataset) {
    struct progress progress = {.dataset = dataset};
    const struct input_work work = {.answer = add_recording, .context = &progress, .between = ""};
    const int code = run_command(&work, operands, count);
    for (size_t i = 0; i < progress.key_count; i++) free(progress.keys[i]);
    free(progress.keys);
    if (progress.recordings != 0) {
        printf("%s: %" PRIu64 " recordings, %" PRIu64 " events in %" PRIu64 " files: events, peaks, sites and stacks\n", dataset->folder,
               progress.recordings, progress.events, progress.files);
    }
    return code;
}
