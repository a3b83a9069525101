// Limits of the system, and what of this project is at hand.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "beside.h"
#include "doctor.h"
#include "page.h"
#include "vram/accounts.h"
#include "vram/oom.h"

// The first line of a small file of the system, without its end. False when it cannot be read.
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
    doctor_explain(row, "cudaHostAlloc does not count against it, network cards' registrations do: ulimit -l");
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
                           "pinned host memory counts against it; the process is killed beyond");
        return;
    }
}

static void look_at_overcommit(struct doctor *doctor) {
    char line[16];
    if (!read_line("/proc/sys/vm/overcommit_memory", line, sizeof line)) return;
    const bool strict = strcmp(line, "2") == 0;
    struct doctor_row *row = doctor_add(doctor, "system", "overcommit", strict ? DOCTOR_NOTE : DOCTOR_OK, "%s", line);
    if (strict) doctor_explain(row, "address space counts as memory: large reservations of CUDA and of this library may fail");
}

static void look_at_profiling(struct doctor *doctor) {
    char line[16];
    if (!read_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof line)) return;
    const bool open = strcmp(line, "0") == 0;
    struct doctor_row *row = doctor_add(doctor, "system", "ptrace scope", open ? DOCTOR_OK : DOCTOR_NOTE, "%s", line);
    if (!open)
        doctor_explain(row, "blocks are shared with other processes through a socket (vram_export_send), not through their descriptors");
}

// Whether it is there and starts; which devices it knows is asked where a device is named.
static void look_at_nvml(struct doctor *doctor) {
    struct vram_error error = {.status = VRAM_OK};
    const bool there = vram_processes_available(&error) == VRAM_OK;
    struct doctor_row *row = doctor_add(doctor, "system", "NVML", there ? DOCTOR_OK : DOCTOR_OFF, there ? "yes" : "no");
    doctor_explain(row, "%s", there ? "an out of memory names the other processes on the device" : error.message);
}

static void look_at_parts(struct doctor *doctor) {
    size_t bytes = 0;
    const bool page = page_text(&bytes) != NULL;
    struct doctor_row *row =
        doctor_add(doctor, "vram", "viewer", page ? DOCTOR_OK : DOCTOR_OFF, page ? "%zu KiB" : "left out", bytes / 1024);
    if (!page) doctor_explain(row, "the command was built without the page: make viewer installs what that needs, and builds it");
    char path[4096];
    const bool preload = beside_preload(path, sizeof path);
    row = doctor_add(doctor, "vram", "libvram_preload.so", preload ? DOCTOR_OK : DOCTOR_OFF, "%s", preload ? path : "not found");
    if (!preload) doctor_explain(row, "vram run cannot record: name the file in VRAM_PRELOAD");
    const bool documents = beside_documents(path, sizeof path);
    row = doctor_add(doctor, "vram", "documents", documents ? DOCTOR_OK : DOCTOR_OFF, documents ? "%s/docs" : "not found", path);
    if (!documents) doctor_explain(row, "what help calls docs/... comes with the Debian package, make install and the sources");
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
