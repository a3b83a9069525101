// vram doctor: shows what this machine can do, which settings are in force, and why a feature is off.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "args.h"
#include "run_environment.h"
#include "doctor.h"
#include "sim_settings.h"
#include "ui.h"
#include "vram/sim.h"

int cmd_doctor(int argc, char **argv);

// --- JSON -------------------------------------------------------------------------------------------------------------------
static int print_json(const struct doctor *doctor) {
    struct answer_json answer;
    struct vr_json *json = answer_json_begin(&answer);
    vr_json_object(json, NULL);
    vr_json_string(json, "version", vram_version());
    vr_json_array(json, "checks");
    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_row *row = &doctor->rows[i];
        vr_json_object(json, NULL);
        vr_json_string(json, "area", row->area);
        vr_json_string(json, "name", row->name);
        vr_json_string(json, "state", doctor_state_name(row->state));
        vr_json_string(json, "value", row->value);
        vr_json_string(json, "text", row->text);
        vr_json_object_end(json);
    }
    vr_json_array_end(json);
    vr_json_object_end(json);
    return answer_json_end(&answer, NULL);
}

// --- text ------------------------------------------------------------------------------------------------------------------------
static const char *mark_of(const struct vram_style *style, enum doctor_state state) {
    static const char *const plain[] = {"  ", " *", " -", " !"};
    static const char *const drawn[] = {" \xe2\x9c\x93", " \xe2\x80\xa2", " \xe2\x80\x93", " \xe2\x9c\x97"};
    return style->unicode ? drawn[state] : plain[state];
}

static void print_coloured(const struct vram_style *style, const char *code, const char *text) {
    if (style->colour)
        printf("\x1b[%sm%s\x1b[0m", code, text);
    else
        printf("%s", text);
}

static void print_row(const struct vram_style *style, const struct doctor_row *row) {
    static const char *const colours[] = {"32", "33", "2", "31"};
    enum { NAME = 26 };
    print_coloured(style, colours[row->state], mark_of(style, row->state));
    printf(" %-*s ", NAME, row->name);
    ui_wrap(stdout, row->value, NAME + 4, style->columns);
    printf("\n");
    if (row->text[0] == '\0') return;
    printf("%*s", NAME + 4, "");
    if (style->colour) printf("\x1b[2m");
    ui_wrap(stdout, row->text, NAME + 4, style->columns);
    if (style->colour) printf("\x1b[0m");
    printf("\n");
}

static int print_text(const struct doctor *doctor) {
    const struct vram_style style = ui_style();
    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_row *row = &doctor->rows[i];
        if (i == 0 || strcmp(doctor->rows[i - 1].area, row->area) != 0) {
            if (i != 0) printf("\n");
            print_coloured(&style, "1", row->area);
            printf("\n");
        }
        print_row(&style, row);
    }
    return CLI_OK;
}

// Returns the CUDA version that the shared simulator reports: the newest in which a driver API name is known.
static int newest_driver(void) {
    static const int versions[] = {
#define X(exported, base, first, last, result, parameters) last,
#include "../simulator/standins/facts/cuda.def"
#undef X
    };
    int newest = 0;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) newest = versions[i] > newest ? versions[i] : newest;
    return newest;
}

// Makes the driver that a program gets under `vram sim` without further options.
static enum vram_status make_sim(struct vram_driver **driver) {
    char more[64], values[256], wrong[256];
    (void)snprintf(more, sizeof more, "backed=1,driver=%d", newest_driver());
    const struct sim_settings settings = {.devices = SIM_UNSET, .memory_bytes = SIM_UNSET, .more = more};
    struct vram_sim_options options = {0};
    if (!sim_settings_text(&settings, values, sizeof values, wrong, sizeof wrong)) return VRAM_INVALID_ARGUMENT;
    const enum vram_status status = vram_sim_parse(values, &options, NULL);
    return status == VRAM_OK ? vram_sim_create(&options, driver) : status;
}

// Uses the NVML in the simulator's folder, unless the user names another.
static void put_sim_nvml(void) {
    char folder[4096], path[4200];
    if (getenv("VRAM_NVML") != NULL || !find_simcuda_folder(folder, sizeof folder)) return;
    (void)snprintf(path, sizeof path, "%s/libnvidia-ml.so.1", folder);
    (void)setenv("VRAM_NVML", path, 1);
}

int cmd_doctor(int argc, char **argv) {
    bool json = false, sim = false;
    const struct args_option options[] = {
        {.name = "sim", .kind = ARGS_FLAG, .help = "examine the simulated driver instead of the machine's", .target = &sim},
        {.name = "json", .kind = ARGS_FLAG, .help = "one JSON object; keys in docs/reference/json.md", .target = &json},
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "doctor",
        .usage = "[options]",
        .summary = "Shows what this driver, its devices and the system support, which settings are in force and where they come\nfrom, and "
                   "why a feature is off. Exit code 1 if something is wrong, 4 without a CUDA driver.",
        .examples = "  vram doctor\n"
                    "  PYTORCH_CUDA_ALLOC_CONF=expandable_segment:True vram doctor\n"
                    "  vram doctor --json | jq '.checks[] | select(.state == \"wrong\")'\n",
        .options = options,
        .min_operands = 0,
        .max_operands = 0,
        .operand = "nothing",
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    struct doctor *doctor = calloc(1, sizeof *doctor);
    if (doctor == NULL) return CLI_BAD_INPUT;
    struct vram_driver *driver = NULL;
    struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
    const enum vram_status status = sim ? make_sim(&driver) : vram_driver_system(&driver, &error);
    doctor_look_at_driver(doctor, status == VRAM_OK ? driver : NULL, &error);
    doctor_look_at_settings(doctor);
    if (sim) put_sim_nvml();
    doctor_look_at_system(doctor);
    vram_driver_destroy(driver);
    for (size_t i = 0; i < doctor->count; i++) doctor->wrong = doctor->wrong || doctor->rows[i].state == DOCTOR_WRONG;
    code = (json ? print_json : print_text)(doctor);
    if (code == CLI_OK) code = doctor->no_driver ? CLI_DEVICE : doctor->wrong ? CLI_FINDING : CLI_OK;
    free(doctor);
    return code;
}
