#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "dataset.h"
#include "formats.h"
#include "input.h"
#include "output.h"
#include "ui.h"
#include "vram/export.h"
#include "vram/recording.h"

enum {
    FRAME_BYTES = 40, // keys, quotes and line number of a frame in JSON
    ROW_BYTES = 160,  // an event, a block or a segment without its stack
    MUCH = 10,        // times the input: warn before writing
    TOO_MUCH = 1000   // times the input: refuse; recordings of real programs reach 150 times
};
#define MUCH_FROM     ((uint64_t)64 << 20)
#define TOO_MUCH_FROM ((uint64_t)1 << 30)

// Adds and saturates at UINT64_MAX instead of wrapping.
static uint64_t add_saturated(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

static uint64_t stack_size(const struct vram_recording *recording, uint32_t stack) {
    uint64_t count = 0, sum = 0;
    const uint32_t *frames = vram_recording_stack(recording, stack, &count);
    struct vram_frame frame;
    for (uint64_t i = 0; i < count; i++) {
        if (vram_recording_frame(recording, frames[i], &frame))
            sum = add_saturated(sum, FRAME_BYTES + strlen(frame.name) + strlen(frame.filename));
    }
    return sum;
}

static uint64_t *stack_sizes(const struct vram_recording *recording) {
    const uint32_t count = vram_recording_stack_count(recording);
    uint64_t *sizes = calloc((size_t)count + 1, sizeof *sizes);
    for (uint32_t stack = 0; stack < count && sizes != NULL; stack++) sizes[stack] = stack_size(recording, stack);
    return sizes;
}

static uint64_t events_size(const struct vram_recording *recording, const uint64_t *sizes) {
    struct vram_recorded_event event;
    uint64_t sum = 0;
    for (uint32_t device = 0; device < vram_recording_device_count(recording); device++) {
        for (uint64_t i = 0; vram_recording_event(recording, device, i, &event); i++)
            sum = add_saturated(sum, ROW_BYTES + sizes[event.stack]);
    }
    return sum;
}

// Estimates the bytes of JSON, or of a table of the events only. Returns 0 if memory runs out.
static uint64_t text_size(const struct vram_recording *recording, bool events_alone) {
    uint64_t *sizes = stack_sizes(recording);
    if (sizes == NULL) return 0;
    uint64_t sum = events_size(recording, sizes);
    struct vram_recorded_segment segment;
    struct vram_recorded_block block;
    for (uint64_t i = 0; !events_alone && vram_recording_segment(recording, i, &segment); i++)
        sum = add_saturated(sum, 2 * ROW_BYTES + sizes[segment.stack]);
    for (uint64_t i = 0; !events_alone && vram_recording_block(recording, i, &block); i++)
        sum = add_saturated(sum, ROW_BYTES + sizes[block.stack]);
    free(sizes);
    return sum;
}

// Decides whether to write about `text_bytes` of text from an input of `input_bytes`. Warns on standard error if that is large, and
// explains the refusal if it is too large: in a 1 MB file many events can share one stack, which makes 20 GB of JSON.
static bool text_size_is_good(const char *name, const char *format, uint64_t input_bytes, uint64_t text_bytes) {
    char size[UI_SIZE_CAPACITY];
    const uint64_t times = text_bytes / (input_bytes == 0 ? 1 : input_bytes);
    (void)ui_size(text_bytes, size);
    if (times >= TOO_MUCH && text_bytes >= TOO_MUCH_FROM) {
        ui_say("vram: %s: as %s it would be about %s, %" PRIu64
               " times the input, because each event repeats its stack; pickle and vram store each stack once",
               name, format, size, times);
        return false;
    }
    if (times >= MUCH && text_bytes >= MUCH_FROM)
        ui_say("vram: %s: as %s it will be about %s, %" PRIu64 " times the input", name, format, size, times);
    return true;
}

// Writes one of the library's export formats for other tools.
static enum vram_status export_as(const struct vram_recording *recording, enum vram_export_format format,
                                  const struct convert_options *options, vram_write write, void *user, struct vram_error *error) {
    const struct vram_export_options wanted = {.measure = (enum vram_export_measure)options->measure,
                                               .table = (enum vram_export_table)options->table};
    return vram_recording_export(recording, format, &wanted, write, user, error);
}

#define EXPORT(name, format)                                                                                                               \
    enum vram_status convert_##name(const struct vram_recording *recording, const struct convert_options *options, vram_write write,       \
                                    void *user, struct vram_error *error) {                                                                \
        return export_as(recording, format, options, write, user, error);                                                                  \
    }
EXPORT(csv, VRAM_EXPORT_RMM)
EXPORT(events, VRAM_EXPORT_EVENTS)
EXPORT(perfetto, VRAM_EXPORT_PERFETTO)
EXPORT(folded, VRAM_EXPORT_FOLDED)
EXPORT(pprof, VRAM_EXPORT_PPROF)
EXPORT(arrow, VRAM_EXPORT_ARROW)
#undef EXPORT

// vram convert: writes a recording in another format.

int cmd_convert(int argc, char **argv);

static const struct format {
    const char *name;
    const char *extensions; // separated by spaces
    bool is_text;
    convert_function *write;
    const char *help;
} formats[] = {
#define FORMAT(name, extensions, is_text, function, help) {#name, extensions, is_text, function, help},
#include "formats.def"
#undef FORMAT
    {NULL, NULL, false, NULL, NULL},
};

enum vram_status convert_pickle(const struct vram_recording *recording, const struct convert_options *options, vram_write write, void *user,
                                struct vram_error *error) {
    (void)options;
    return vram_recording_write(recording, VRAM_FORMAT_PICKLE, write, user, error);
}

enum vram_status convert_json(const struct vram_recording *recording, const struct convert_options *options, vram_write write, void *user,
                              struct vram_error *error) {
    return vram_recording_write(recording, options->pretty ? VRAM_FORMAT_JSON_ROWS : VRAM_FORMAT_JSON, write, user, error);
}

enum vram_status convert_vram(const struct vram_recording *recording, const struct convert_options *options, vram_write write, void *user,
                              struct vram_error *error) {
    (void)options;
    return vram_recording_write(recording, VRAM_FORMAT_VRAM, write, user, error);
}

// Returns the length of the longest extension of the format that ends the name; 0 if none does.
static size_t extension_length(const struct format *format, const char *name, size_t length) {
    size_t longest = 0;
    for (const char *next = format->extensions; *next != '\0'; next += strspn(next, " ")) {
        const size_t word = strcspn(next, " ");
        const bool fits = word < length && name[length - word - 1] == '.' && memcmp(name + length - word, next, word) == 0;
        if (fits && word > longest) longest = word;
        next += word;
    }
    return longest;
}

// Finds the format by the name's extension, ignoring .gz and the like. Returns NULL if the extension is unknown.
static const struct format *format_of_path(const char *path) {
    const size_t length = output_plain_length(path);
    const struct format *found = NULL;
    size_t longest = 0;
    for (const struct format *format = formats; format->name != NULL; format++) {
        const size_t extension = extension_length(format, path, length);
        if (extension > longest) longest = extension, found = format;
    }
    return found;
}

static const struct format *format_of_name(const char *name) {
    for (const struct format *format = formats; format->name != NULL; format++) {
        if (strcmp(format->name, name) == 0) return format;
    }
    return NULL;
}

static void list_formats(void) {
    fprintf(stderr, "The formats are");
    for (const struct format *format = formats; format->name != NULL; format++) {
        fprintf(stderr, "%s %s", format == formats ? "" : format[1].name == NULL ? " and" : ",", format->name);
    }
    fprintf(stderr, ".\n");
}

static const struct format *choose_format(const char *name, const char *path) {
    const struct format *format = name != NULL ? format_of_name(name) : format_of_path(path);
    if (format != NULL) return format;
    if (name != NULL) {
        const char *nearest = args_nearest(name, &formats[0].name, sizeof formats[0]);
        ui_say(nearest == NULL ? "vram: unknown format '%s'" : "vram: unknown format '%s'; did you mean '%s'?", name, nearest);
    } else if (strcmp(path, "-") == 0) {
        ui_say("vram: cannot infer the format of standard output; use --to");
    } else {
        ui_say("vram: cannot infer a format from '%s'; use --to", path);
    }
    list_formats();
    return NULL;
}

static int write_recording(const struct vram_recording *recording, const struct format *format, const struct convert_options *options,
                           const char *path) {
    struct output *output = output_open(path);
    if (output == NULL) return CLI_BAD_INPUT;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const enum vram_status status = format->write(recording, options, output_write, output, &error);
    if (status == VRAM_OK && *error.message != '\0') ui_say("vram: %s: %s", options->name, error.message);
    return output_end(output, status, options->name, &error);
}

// Checks the estimated size of formats that write out each row's stack.
static bool size_is_good(const struct vram_recording *recording, const struct format *format, const struct input_facts *facts) {
    const bool is_json = format->write == convert_json;
    if (!is_json && format->write != convert_events) return true;
    return text_size_is_good(facts->name, format->name, facts->bytes, text_size(recording, !is_json));
}

static int convert_file(const char *input, const struct format *format, struct convert_options *options) {
    const char *path = options->path;
    struct vram_recording *recording;
    struct input_facts facts;
    if (strcmp(path, "-") == 0 && isatty(STDOUT_FILENO) && !format->is_text) {
        ui_say("vram: %s cannot be written to a terminal; name a file with -o", format->name);
        return CLI_USAGE;
    }
    if (output_is_input(path, input)) {
        ui_say("vram: %s: the output would replace the input", path);
        return CLI_USAGE;
    }
    int code = input_recording(input, &recording, &facts);
    if (code != CLI_OK) return code;
    options->name = facts.name;
    code = size_is_good(recording, format, &facts) ? write_recording(recording, format, options, path) : CLI_BAD_INPUT;
    vram_recording_destroy(recording);
    return code;
}

int cmd_convert(int argc, char **argv) {
    static const char names_apart[] =
#define FORMAT(name, extensions, is_text, function, help) "|" #name
#include "formats.def"
#undef FORMAT
        ;
    const char *path = NULL, *name = NULL;
    struct dataset dataset = {.job = NULL};
    struct convert_options settings = {.pretty = false};
    static const char *const measures[] = {"peak", "end", "allocated", NULL};
    static const char *const names[] = {"events", "stacks", "peaks", "sites", NULL};
    const struct args_option options[] = {
        {.name = "output",
         .letter = 'o',
         .kind = ARGS_STRING,
         .value = "OUT",
         .help = "the file to write, - for standard output; its extension sets the format (.gz, .zst and .xz compress)",
         .target = &path},
        {.name = "to", .kind = ARGS_STRING, .value = names_apart + 1, .help = "the format, whatever the extension is", .target = &name},
        {.name = "pretty",
         .kind = ARGS_FLAG,
         .help = "JSON with one line per segment, block, event and annotation",
         .target = &settings.pretty},
        {.name = "measure",
         .kind = ARGS_CHOICE,
         .value = "peak|end|allocated",
         .help = "what folded stacks count: live bytes at the peak (default), live bytes at the end, or all allocations",
         .target = &settings.measure,
         .choices = measures},
        {.name = "table",
         .kind = ARGS_CHOICE,
         .value = "events|stacks|peaks|sites",
         .help = "the table of an Arrow file (default events)",
         .target = &settings.table,
         .choices = names},
        {.name = "job",
         .kind = ARGS_STRING,
         .value = "NAME",
         .help = "name of the recordings' job, in a folder of tables",
         .target = &dataset.job},
        {.name = "label",
         .kind = ARGS_STRINGS,
         .value = "KEY=VALUE",
         .help = "more labels of the job, such as commit=4c1f; may be repeated",
         .target = &dataset.labels},
        INPUT_OPTION,
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "convert",
        .usage = "FILE... -o OUT [options]",
        .summary = "Writes a recording in another format. Pickle, JSON and vram keep every key and value of the input. OUT is\nreplaced "
                   "only when the output is complete, and never if it is the input.\nFormats (and their extensions):"
#define FORMAT(name, extensions, is_text, function, help) "\n  " #name " (" extensions "): " help
#include "formats.def"
#undef FORMAT
        ,
        .examples = "  vram convert snapshot.pickle -o snapshot.json\n"
                    "  vram convert page.html -o snapshot.pickle.zst\n"
                    "  vram convert snapshot.pickle -o all.sqlite\n"
                    "  vram convert --to arrow --job 17 --label commit=4c1f job/ -o tables/\n"
                    "  ssh host cat snapshot.pickle | vram convert - -o - --to json | jq '.segments | length'\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = ARGS_RECORDING,
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (path == NULL && name == NULL) return ui_usage("convert", "vram: -o OUT or --to FORMAT is required");
    if (path == NULL) path = "-";
    dataset.folder = path;
    // A folder as output means one dataset of many recordings.
    if (name != NULL && strcmp(name, "arrow") == 0 && output_is_folder(path)) {
        return dataset_labels_are_good(&dataset) ? dataset_write(argv + 1, count, &dataset) : CLI_USAGE;
    }
    if (count > 1)
        return ui_usage("convert", "vram: unexpected argument '%s': write several recordings to a folder (--to arrow -o OUT/)", argv[2]);
    if (dataset.job != NULL || dataset.labels.count != 0) {
        return ui_usage("convert", "vram: --job and --label need a folder (--to arrow -o OUT/)");
    }
    const struct format *format = choose_format(name, path);
    settings.path = path;
    return format == NULL ? CLI_USAGE : convert_file(argv[1], format, &settings);
}
