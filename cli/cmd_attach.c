// vram attach: inspects, pauses and copies the recording of a running program.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "recorded_processes.h"
#include "output.h"
#include "ui.h"
#include "watch.h"
#include "vram/export.h"

int cmd_attach(int argc, char **argv);

static int refuse_process(int pid, const char *why) {
    ui_say("vram: process %d: %s", pid, why);
    return CLI_BAD_INPUT;
}

static int print_status(const struct recorded *recorded) {
    struct control_state state;
    const char *why = NULL;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    struct watch *watch = NULL;
    uint64_t events = 0;
    if (watch_open(recorded->path, &watch, &error) != VRAM_OK) return ui_error(NULL, &error);
    if (watch_update(watch, &events, &error) != VRAM_OK) {
        watch_close(watch);
        return ui_error(recorded->path, &error);
    }
    ui_put(stdout, recorded->program);
    printf(" (%d)\n  recording  ", recorded->pid);
    ui_put(stdout, recorded->path);
    printf("\n  events     %" PRIu64 "\n", events);
    if (control_of(recorded->pid, NULL, &state, &why)) {
        printf("  state      %s", state.paused ? "paused" : "recording");
        if (state.left_out != 0) printf(", %" PRIu64 " allocation%s left out", state.left_out, state.left_out == 1 ? "" : "s");
        printf("\n");
    } else
        printf("  state      recording; it cannot be paused: %s\n", why);
    watch_close(watch);
    return CLI_OK;
}

static int pause_or_go_on(const struct recorded *recorded, bool pause) {
    struct control_state state;
    const char *why = NULL;
    if (!control_of(recorded->pid, &pause, &state, &why)) return refuse_process(recorded->pid, why);
    ui_put(stdout, recorded->program);
    printf(" (%d): %s\n", recorded->pid, pause ? "paused" : "recording");
    return CLI_OK;
}

// Writes the current recording as a complete, closed file.
static int dump_recording(const struct recorded *recorded, const char *path) {
    if (path == NULL) return ui_usage("attach", "vram: dump needs -o FILE");
    struct vram_recording *recording = NULL;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    if (vram_recording_read_file(recorded->path, &recording, &error) != VRAM_OK) return ui_error(recorded->path, &error);
    struct output *output = output_open(path);
    int code = CLI_BAD_INPUT;
    if (output != NULL) {
        const enum vram_status status = vram_recording_write(recording, VRAM_FORMAT_VRAM, output_write, output, &error);
        code = output_end(output, status, path, &error);
    }
    vram_recording_destroy(recording);
    return code;
}

int cmd_attach(int argc, char **argv) {
    const char *path = NULL;
    const struct args_option options[] = {
        {.name = "output",
         .letter = 'o',
         .kind = ARGS_STRING,
         .value = "FILE",
         .help = "the file that dump writes (.vram; also .gz, .zst, .xz)",
         .target = &path},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "attach",
        .usage = "[options] PID [status|stop|start|dump]",
        .summary = "Inspects a running program that is being recorded: shows its state (status) or copies its recording (dump -o FILE).\n"
                   "For programs under `vram run` it also pauses the recording (stop) and resumes it (start). Frees are always recorded;\n"
                   "allocations made during a pause are left out, and the recording says how many.",
        .examples = "  vram attach 4711\n"
                    "  vram attach 4711 stop\n"
                    "  vram attach 4711 dump -o now.vram\n",
        .options = options,
        .min_operands = 1,
        .max_operands = 2,
        .operand = "a process (PID)",
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    char *end;
    const long pid = strtol(argv[1], &end, 10);
    const char *what = count == 2 ? argv[2] : "status";
    struct recorded recorded;
    if (*end != '\0' || pid <= 0) return ui_usage("attach", "vram: invalid PID '%s'", argv[1]);
    if (!recorded_find((int)pid, &recorded)) return refuse_process((int)pid, "it is not being recorded, or you lack permission");
    if (strcmp(what, "status") == 0) return print_status(&recorded);
    if (strcmp(what, "stop") == 0) return pause_or_go_on(&recorded, true);
    if (strcmp(what, "start") == 0) return pause_or_go_on(&recorded, false);
    if (strcmp(what, "dump") == 0) return dump_recording(&recorded, path);
    return ui_usage("attach", "vram: unknown action '%s'; expected status, stop, start or dump", what);
}
