// Keeps recordings of a run.
#include "fit_keep.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "fit_kinds.h"
#include "output.h"
#include "ui.h"

static int copy_recording(const struct fit_process *process, const char *path) {
    char bytes[65536];
    FILE *file = fopen(process->path, "rb");
    struct output *output = file == NULL ? NULL : output_open(path);
    bool good = output != NULL;
    size_t got;
    if (file == NULL) ui_say("vram fit: cannot read the recording of rank %" PRIu64 ": %s", process->rank, strerror(errno));
    while (good && (got = fread(bytes, 1, sizeof bytes, file)) > 0) good = output_write(output, bytes, got);
    if (file != NULL) (void)fclose(file);
    return output == NULL ? CLI_BAD_INPUT : output_close(output, good);
}

// Returns how many processes before this one have its rank.
static size_t earlier_of_rank(const struct fit_run *run, const struct fit_process *process) {
    size_t count = 0;
    for (const struct fit_process *one = run->processes; one < process; one++) count += one->rank == process->rank;
    return count;
}

static int keep_all(const struct fit_run *run, const char *folder) {
    char path[4200], number[24] = "";
    for (const struct fit_process *one = run->processes; one < run->processes + run->process_count; one++) {
        const size_t earlier = earlier_of_rank(run, one);
        if (earlier > 0) (void)snprintf(number, sizeof number, "_%zu", earlier + 1);
        const int length = snprintf(path, sizeof path, "%s/rank-%" PRIu64 "%s%s", folder, one->rank, earlier > 0 ? number : "",
                                    one->whole_program ? ".vram" : ".pickle");
        if (length < 0 || (size_t)length >= sizeof path) return ui_usage("fit", "vram fit: --output: the path is too long");
        if (!output_folder(path)) return CLI_BAD_INPUT;
        const int code = copy_recording(one, path);
        if (code != CLI_OK) return code;
    }
    return CLI_OK;
}

int fit_keep(const struct fit_answer *answer, const char *output) {
    if (!output_is_folder(output)) return copy_recording(answer->verdict->highest->process, output);
    const int code = keep_all(answer->run, output);
    return code == CLI_OK ? fit_kinds_keep(answer, output) : code;
}
