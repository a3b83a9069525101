// Fills the rows of vram doctor, one area after another.

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "run_environment.h"
#include "doctor.h"
#include "ui.h"
#include "view_page.h"
#include "vram/accounts.h"
#include "vram/oom.h"

const char *doctor_state_name(enum doctor_state state) {
    static const char *const names[] = {"ok", "note", "off", "wrong"};
    return names[state];
}

struct doctor_row *doctor_add(struct doctor *doctor, const char *area, const char *name, enum doctor_state state, const char *format, ...) {
    if (doctor->count == DOCTOR_ROWS) return NULL;
    struct doctor_row *row = &doctor->rows[doctor->count++];
    *row = (struct doctor_row){.area = area, .state = state};
    snprintf(row->name, sizeof row->name, "%s", name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(row->value, sizeof row->value, format, arguments);
    va_end(arguments);
    return row;
}

void doctor_explain(struct doctor_row *row, const char *format, ...) {
    if (row == NULL) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(row->text, sizeof row->text, format, arguments);
    va_end(arguments);
}

// The driver and its devices.

enum { FIRST_HIP_VERSION = 10000000 }; // HIP's version numbers start here, above CUDA's

static void add_ability(struct doctor *doctor, const char *area, const char *name, bool can, const char *with, const char *without) {
    struct doctor_row *row = doctor_add(doctor, area, name, can ? DOCTOR_OK : DOCTOR_OFF, "%s", can ? "yes" : "no");
    doctor_explain(row, "%s", can ? with : without);
}

static void look_at_device(struct doctor *doctor, struct vram_driver *driver, uint32_t device) {
    static const char *const areas[] = {"device 0", "device 1", "device 2", "device 3", "device 4", "device 5", "device 6", "device 7"};
    const char *area = device < sizeof areas / sizeof areas[0] ? areas[device] : "further devices";
    struct vram_device_facts facts;
    struct vram_error error = {.status = VRAM_OK};
    char total[UI_SIZE_CAPACITY], available[UI_SIZE_CAPACITY];
    if (vram_driver_device_facts(driver, device, &facts, &error) != VRAM_OK) {
        doctor_explain(doctor_add(doctor, area, "name", DOCTOR_WRONG, "unknown"), "%s", error.message);
        return;
    }
    doctor_add(doctor, area, "name", DOCTOR_OK, "%s, compute capability %d.%d, %d multiprocessors", facts.name, facts.compute_major,
               facts.compute_minor, facts.multiprocessors);
    doctor_add(doctor, area, "memory", DOCTOR_OK, "%s, %s free%s", ui_size(facts.total_bytes, total), ui_size(facts.free_bytes, available),
               facts.integrated ? "; shared with the host" : "");
    add_ability(doctor, area, "virtual memory", facts.virtual_memory, "expandable_segments:True is supported",
                "expandable_segments is ignored: segments stay whole");
    if (facts.virtual_memory) doctor_add(doctor, area, "page size", DOCTOR_OK, "%s", ui_size(facts.granularity_bytes, total));
    add_ability(doctor, area, "memory pools", facts.memory_pools, "backend:cudaMallocAsync is supported",
                "backend:cudaMallocAsync is not supported");
    add_ability(doctor, area, "file handles", facts.file_handles, "pages can be shared with processes on this machine",
                "only plain segments can be shared with other processes");
    add_ability(doctor, area, "fabric handles", facts.fabric_handles,
                "the driver can share pages across machines; vram does not use this yet", "pages cannot be shared across machines");
    add_ability(doctor, area, "host register", facts.host_register, "pinned_use_cuda_host_register is supported",
                "pinned_use_cuda_host_register is not supported");
    add_ability(doctor, area, "managed memory", facts.managed, "", "");
    doctor->virtual_memory = doctor->virtual_memory && facts.virtual_memory;
    doctor->memory_pools = doctor->memory_pools && facts.memory_pools;
    doctor->host_register = doctor->host_register && facts.host_register;
    doctor->file_handles = doctor->file_handles && facts.file_handles;
}

static void look_at_peers(struct doctor *doctor, struct vram_driver *driver, uint32_t count) {
    unsigned pairs = 0, reachable = 0;
    for (uint32_t a = 0; a < count; a++) {
        for (uint32_t b = 0; b < count; b++) {
            bool can = false;
            if (a == b || vram_driver_can_access_peer(driver, a, b, &can) != VRAM_OK) continue;
            pairs++;
            reachable += can;
        }
    }
    if (pairs == 0) return;
    struct doctor_row *row =
        doctor_add(doctor, "driver", "peer access", reachable == pairs ? DOCTOR_OK : DOCTOR_NOTE, "%u of %u pairs", reachable, pairs);
    if (reachable != pairs) doctor_explain(row, "devices without peer access cannot use each other's blocks directly");
}

void doctor_look_at_driver(struct doctor *doctor, struct vram_driver *driver, const struct vram_error *error) {
    uint32_t count = 0;
    int32_t version = 0;
    if (driver == NULL) {
        doctor->no_driver = true;
        struct doctor_row *row = doctor_add(doctor, "driver", "CUDA driver", DOCTOR_OFF, "none");
        doctor_explain(row,
                       "%s. Recordings can be read, replayed and viewed anyway, and programs run on the simulated driver "
                       "(vram doctor --sim shows it)",
                       error->message);
        return;
    }
    if (vram_driver_version(driver, &version) != VRAM_OK || vram_driver_devices(driver, &count) != VRAM_OK) {
        doctor_explain(doctor_add(doctor, "driver", "CUDA driver", DOCTOR_WRONG, "it does not respond"), "its calls fail");
        return;
    }
    if (version >= FIRST_HIP_VERSION)
        doctor_add(doctor, "driver", "HIP runtime", DOCTOR_OK, "HIP %d.%d", version / 10000000, version % 10000000 / 100000);
    else
        doctor_add(doctor, "driver", "CUDA driver", DOCTOR_OK, "for CUDA %d.%d", version / 1000, version % 1000 / 10);
    doctor_add(doctor, "driver", "devices", count == 0 ? DOCTOR_WRONG : DOCTOR_OK, "%u", count);
    doctor->device_count = count;
    doctor->virtual_memory = doctor->memory_pools = doctor->host_register = doctor->file_handles = count != 0;
    look_at_peers(doctor, driver, count);
    for (uint32_t device = 0; device < count; device++) look_at_device(doctor, driver, device);
}

// Which settings are in force, where they come from, and what prevents them from working.

// The sources of an option string. The first one set wins.
static const char *const conf_names[] = {"VRAM_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};

// Explains options that the devices do not support.
static void explain_need(const struct doctor *doctor, struct doctor_row *row, const struct vram_option *option) {
    if (row == NULL || doctor->device_count == 0) return;
    const bool off = (strcmp(option->key, "expandable_segments") == 0 && !doctor->virtual_memory) ||
                     (strcmp(option->key, "backend") == 0 && strcmp(option->value, "native") != 0 && !doctor->memory_pools) ||
                     (strcmp(option->key, "pinned_use_cuda_host_register") == 0 && !doctor->host_register);
    if (!off) return;
    row->state = DOCTOR_WRONG;
    doctor_explain(row, "not in force: not supported by a device or its driver");
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
            doctor_explain(row, "not read: %s takes precedence", in_force);
            continue;
        }
        in_force = conf_names[i];
        if (vram_options_list(value, add_option, doctor, &error) == VRAM_OK) continue;
        row->state = DOCTOR_WRONG;
        doctor_explain(row, "%s", error.message);
    }
    if (in_force == NULL)
        doctor_explain(doctor_add(doctor, "settings", conf_names[0], DOCTOR_OK, "not set"),
                       "%s and %s are not set either: all options have their defaults", conf_names[1], conf_names[2]);
}

static void look_at_variables(struct doctor *doctor) {
    static const struct {
        const char *name, *text;
    } variables[] = {
        {"VRAM_HISTORY", "history recording by vram's allocators"},
        {"VRAM_ON_OOM", "action when memory runs out"},
        {"VRAM_PROMETHEUS", "statistics are written for Prometheus"},
        {"VRAM_NO_CACHING", "1: every request goes directly to the driver"},
        {"PYTORCH_NO_CUDA_MEMORY_CACHING", "1: every request goes directly to the driver"},
        {"VRAM_LIBCUDA", "driver to load instead of libcuda.so.1"},
        {"VRAM_LIBHIP", "AMD runtime to load instead of libamdhip64.so.7"},
        {"VRAM_SIM", "settings of the simulated libcuda.so.1"},
        {"CUBLAS_WORKSPACE_CONFIG", "sizes of cuBLAS's workspaces"},
        {"CUDA_VISIBLE_DEVICES", "hides devices from the driver"},
        {"CUDA_DEVICE_MAX_CONNECTIONS", "read by the driver"},
        {"CUDA_MODULE_LOADING", "EAGER makes the driver load every kernel at once, which takes memory"},
        {"TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC", "0: pages of expandable segments cannot be shared"},
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

// Limits of the system, and which parts of vram are installed.

// Reads the first line of a small system file, without its newline. Returns false if the file cannot be read.
static bool read_line(const char *path, char *line, size_t capacity) {
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    const bool read = fgets(line, (int)capacity, file) != NULL;
    fclose(file);
    if (read) line[strcspn(line, "\n")] = '\0';
    return read;
}

static void look_at_locked_memory(struct doctor *doctor) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
    if (limit.rlim_cur == RLIM_INFINITY) {
        doctor_add(doctor, "system", "locked memory", DOCTOR_OK, "unlimited");
        return;
    }
    struct doctor_row *row =
        doctor_add(doctor, "system", "locked memory", DOCTOR_NOTE, "%llu KiB", (unsigned long long)limit.rlim_cur / 1024);
    doctor_explain(row, "cudaHostAlloc does not count against it, registrations of network cards do (ulimit -l)");
}

static void look_at_container(struct doctor *doctor) {
    static const char *const paths[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    char line[64];
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (!read_line(paths[i], line, sizeof line)) continue;
        char *end;
        const unsigned long long bytes = strtoull(line, &end, 10);
        if (end == line || bytes >= 1ull << 60)
            doctor_add(doctor, "system", "memory of the container", DOCTOR_OK, "unlimited");
        else
            doctor_explain(doctor_add(doctor, "system", "memory of the container", DOCTOR_NOTE, "%.1f GiB", (double)bytes / (1 << 30)),
                           "pinned host memory counts against it; a process that exceeds it is killed");
        return;
    }
}

static void look_at_overcommit(struct doctor *doctor) {
    char line[16];
    if (!read_line("/proc/sys/vm/overcommit_memory", line, sizeof line)) return;
    const bool strict = strcmp(line, "2") == 0;
    struct doctor_row *row = doctor_add(doctor, "system", "overcommit", strict ? DOCTOR_NOTE : DOCTOR_OK, "%s", line);
    if (strict) doctor_explain(row, "address space counts as memory: large reservations by CUDA and vram may fail");
}

static void look_at_profiling(struct doctor *doctor) {
    char line[16];
    if (!read_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof line)) return;
    const bool open = strcmp(line, "0") == 0;
    struct doctor_row *row = doctor_add(doctor, "system", "ptrace scope", open ? DOCTOR_OK : DOCTOR_NOTE, "%s", line);
    if (!open)
        doctor_explain(row, "blocks can be shared with other processes through a socket (vram_export_send), but not by file descriptor");
}

// Checks that NVML is installed and starts. Its devices are queried only when a device is named.
static void look_at_nvml(struct doctor *doctor) {
    struct vram_error error = {.status = VRAM_OK};
    const bool there = vram_processes_available(&error) == VRAM_OK;
    struct doctor_row *row = doctor_add(doctor, "system", "NVML", there ? DOCTOR_OK : DOCTOR_OFF, there ? "yes" : "no");
    doctor_explain(row, "%s", there ? "the report of an out-of-memory error names the other processes on the device" : error.message);
}

static void look_at_parts(struct doctor *doctor) {
    size_t bytes = 0;
    const bool page = page_text(&bytes) != NULL;
    struct doctor_row *row =
        doctor_add(doctor, "vram", "viewer", page ? DOCTOR_OK : DOCTOR_OFF, page ? "%zu KiB" : "left out", bytes / 1024);
    if (!page) doctor_explain(row, "this command was built without the viewer's page; `make viewer` installs what it needs and builds it");
    char path[4096];
    const bool preload = find_preload_library(path, sizeof path);
    row = doctor_add(doctor, "vram", "libvram_preload.so", preload ? DOCTOR_OK : DOCTOR_OFF, "%s", preload ? path : "not found");
    if (!preload) doctor_explain(row, "vram run cannot record; set VRAM_PRELOAD to the file's path");
    const bool documents = find_documents_folder(path, sizeof path);
    row = doctor_add(doctor, "vram", "documents", documents ? DOCTOR_OK : DOCTOR_OFF, documents ? "%s/docs" : "not found", path);
    if (!documents) doctor_explain(row, "the documents (docs/...) come with the Debian package, make install and the sources");
    const char *others = getenv("LD_PRELOAD");
    if (others != NULL && others[0] != '\0')
        doctor_explain(doctor_add(doctor, "vram", "LD_PRELOAD", DOCTOR_NOTE, "%s", others), "vram run adds to it");
}

void doctor_look_at_system(struct doctor *doctor) {
    look_at_locked_memory(doctor);
    look_at_container(doctor);
    look_at_overcommit(doctor);
    look_at_profiling(doctor);
    look_at_nvml(doctor);
    look_at_parts(doctor);
}
