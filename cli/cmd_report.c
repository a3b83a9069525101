// vram report: what a recording says.
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "input.h"
#include "input_files.h"
#include "ui.h"
#include "vram/report.h"
#include "vram/symbols.h"

int cmd_report(int argc, char **argv);

struct settings {
    bool json;
    uint64_t top;
};

// Reads, reports and prints one file.
static int report_file(const char *path, const char *before, void *context) {
    const struct settings *settings = context;
    struct vram_recording *recording;
    struct input_facts facts;
    const int code = input_recording(path, &recording, &facts);
    if (code != CLI_OK) return code;

    struct vram_report *report;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    // Machine code gets the names that this machine knows; without memory for them it stays as it is.
    (void)!vram_recording_symbolize(recording, NULL, NULL);
    const struct vram_report_options options = {.top = settings->top > 10000 ? 10000 : (unsigned)settings->top};
    enum vram_status status = vram_report_create(recording, &options, &report, &error);
    vram_recording_destroy(recording);
    if (status != VRAM_OK) return ui_error(facts.name, &error);

    const char *slash = strrchr(facts.name, '/');
    const struct vram_report_source source = {.file = settings->json && slash != NULL ? slash + 1 : facts.name, .bytes = facts.bytes};
    const struct vram_style style = ui_style();
    printf("%s", before);
    status = settings->json ? vram_report_json(report, &source, ui_write, NULL) : vram_report_text(report, &source, &style, ui_write, NULL);
    vram_report_destroy(report);
    // What went wrong with standard output is said once, at the end.
    return status == VRAM_OK ? CLI_OK : CLI_BAD_INPUT;
}

int cmd_report(int argc, char **argv) {
    struct settings settings = {.top = 10};
    const struct args_option options[] = {
        {.name = "json",
         .kind = ARGS_FLAG,
         .help = "one JSON object (several files: an array); keys in docs/json.md",
         .target = &settings.json},
        {.name = "top",
         .letter = 'n',
         .kind = ARGS_COUNT,
         .value = "N",
         .help = "rows of the lists of call sites (default 10)",
         .target = &settings.top},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "report",
        .usage = "[options] FILE|FOLDER...",
        .summary = "Says what a recording of GPU memory holds: how high memory went and when, where the reserved bytes are,\n"
                   "which call sites held the peak, why it ran out of memory, and what the recording does not tell.\n"
                   "Sizes of allocations are what the program asked for, so peaks lie below torch.cuda.max_memory_allocated(),\n"
                   "which counts whole blocks.",
        .examples = "  vram report snapshot.pickle\n"
                    "  vram report --top 30 snapshot.pickle.zst\n"
                    "  ssh node cat snapshot.pickle | vram report -\n"
                    "  vram report --json job/ | jq '.[].devices[].allocated.peak_bytes'\n",
        .options = options,
        .min_operands = 1,
        .max_operands = -1,
        .operand = "a recording (FILE, or - for standard input)",
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    if (settings.top == 0) settings.top = 1;
    return input_each(argv + 1, count, settings.json, "\n\n", report_file, &settings);
}
