// Which settings are in force, where they come from, and what keeps them from working.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

// Where an option string comes from: the first that is set.
static const char *const conf_names[] = {"VRAM_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};

// Options that need something of the devices.
static void explain_need(const struct doctor *doctor, struct doctor_row *row, const struct vram_option *option) {
    if (row == NULL || doctor->device_count == 0) return;
    const bool off = (strcmp(option->key, "expandable_segments") == 0 && !doctor->virtual_memory) ||
                     (strcmp(option->key, "backend") == 0 && strcmp(option->value, "native") != 0 && !doctor->memory_pools) ||
                     (strcmp(option->key, "pinned_use_cuda_host_register") == 0 && !doctor->host_register);
    if (!off) return;
    row->state = DOCTOR_WRONG;
    doctor_explain(row, "not in force: a device or its driver cannot do it");
}

static bool add_option(const struct vram_option *option, void *user) {
    struct doctor *doctor = user;
    if (option->is_default) return true;
    struct doctor_row *row =
        doctor_add(doctor, "settings", option->key, DOCTOR_OK, "%s (default %s)", option->value, option->default_value);
    doctor_explain(row, "%s", option->summary);
    explain_need(doctor, row, option);
    return true;
}

static void look_at_conf(struct doctor *doctor) {
    const char *in_force = NULL;
    for (size_t i = 0; i < sizeof conf_names / sizeof conf_names[0]; i++) {
        const char *value = getenv(conf_names[i]);
        if (value == NULL) continue;
        struct vram_error error = {.status = VRAM_OK};
        struct doctor_row *row = doctor_add(doctor, "settings", conf_names[i], DOCTOR_OK, "%s", value);
        if (in_force != NULL) {
            row->state = DOCTOR_NOTE;
            doctor_explain(row, "not read by vram: %s comes first", in_force);
            continue;
        }
        in_force = conf_names[i];
        if (vram_options_list(value, add_option, doctor, &error) == VRAM_OK) continue;
        row->state = DOCTOR_WRONG;
        doctor_explain(row, "%s", error.message);
    }
    if (in_force == NULL)
        doctor_explain(doctor_add(doctor, "settings", conf_names[0], DOCTOR_OK, "not set"),
                       "nor %s nor %s: all options have their defaults", conf_names[1], conf_names[2]);
}

static void look_at_variables(struct doctor *doctor) {
    static const struct {
        const char *name, *text;
    } variables[] = {
        {"VRAM_HISTORY", "allocators of this library record their history"},
        {"VRAM_ON_OOM", "what happens when memory runs out"},
        {"VRAM_PROMETHEUS", "statistics are written for Prometheus"},
        {"VRAM_NO_CACHING", "1: every request goes straight to the driver"},
        {"PYTORCH_NO_CUDA_MEMORY_CACHING", "1: every request goes straight to the driver"},
        {"VRAM_LIBCUDA", "the driver that is loaded instead of libcuda.so.1"},
        {"VRAM_LIBHIP", "AMD's runtime that is loaded instead of libamdhip64.so.7"},
        {"VRAM_SIM", "settings of the simulated libcuda.so.1"},
        {"CUBLAS_WORKSPACE_CONFIG", "how large cuBLAS's workspaces are"},
        {"CUDA_VISIBLE_DEVICES", "hides devices from the driver"},
        {"CUDA_DEVICE_MAX_CONNECTIONS", "read by the driver"},
        {"CUDA_MODULE_LOADING", "EAGER makes the driver load every kernel at once, which takes memory"},
        {"TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC", "0: pages of expandable segments are not made for sharing"},
    };
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        const char *value = getenv(variables[i].name);
        if (value != NULL)
            doctor_explain(doctor_add(doctor, "settings", variables[i].name, DOCTOR_NOTE, "%s", value), "%s", variables[i].text);
    }
}

void doctor_look_at_settings(struct doctor *doctor) {
    look_at_conf(doctor);
    look_at_variables(doctor);
}
