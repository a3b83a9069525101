// sim_missing.c: the reading half of standins/common/missing.h.
#define _GNU_SOURCE // mkostemp()
#include "sim_missing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "args.h"
#include "program.h"
#include "../standins/common/missing.h"
#include "ui.h"

#define PATH_CAPACITY 4096

// The file of the counts, mapped; its path is for the program's environment. NULL with errno.
static struct vr_missing_file *make_file(char path[PATH_CAPACITY]) {
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == '\0') folder = "/tmp";
    if (snprintf(path, PATH_CAPACITY, "%s/vram-sim-XXXXXX", folder) >= PATH_CAPACITY) return NULL;
    const int descriptor = mkostemp(path, O_CLOEXEC);
    if (descriptor < 0) return NULL;
    struct vr_missing_file *file = NULL;
    if (ftruncate(descriptor, sizeof *file) == 0) {
        void *mapped = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        if (mapped != MAP_FAILED) file = mapped;
    }
    if (file == NULL) (void)unlink(path);
    (void)close(descriptor);
    if (file != NULL) atomic_store(&file->magic, VR_MISSING_MAGIC);
    return file;
}

// A copy of a row: the program may still write to the file, and a text from there is ended here.
struct wanted {
    uint64_t count;
    char function[96], library[32], module[240];
};

static int by_name(const void *a, const void *b) {
    const struct wanted *one = a, *other = b;
    int order = strcmp(one->library, other->library);
    if (order == 0) order = strcmp(one->function, other->function);
    return order != 0 ? order : strcmp(one->module, other->module);
}

static int by_count(const void *a, const void *b) {
    const struct wanted *one = a, *other = b;
    if (one->count != other->count) return one->count < other->count ? 1 : -1;
    return by_name(a, b);
}

static void end_text(char *into, const char *from, size_t capacity) {
    memcpy(into, from, capacity);
    into[capacity - 1] = '\0';
}

// The rows that are whole, equal ones added up. Returns how many.
static size_t collect(const struct vr_missing_file *file, struct wanted *wanted) {
    const uint64_t used = atomic_load(&file->used);
    size_t count = 0, kept = 0;
    for (uint64_t i = 0; i < used && i < VR_MISSING_ROWS; i++) {
        const struct vr_missing_row *row = &file->rows[i];
        if (atomic_load(&row->state) != VR_MISSING_READY) continue;
        wanted[count].count = atomic_load(&row->count);
        end_text(wanted[count].function, row->function, sizeof row->function);
        end_text(wanted[count].library, row->library, sizeof row->library);
        end_text(wanted[count].module, row->module, sizeof row->module);
        count++;
    }
    qsort(wanted, count, sizeof *wanted, by_name);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && by_name(&wanted[kept - 1], &wanted[i]) == 0)
            wanted[kept - 1].count += wanted[i].count;
        else
            wanted[kept++] = wanted[i];
    }
    qsort(wanted, kept, sizeof *wanted, by_count);
    return kept;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static void report(const struct vr_missing_file *file) {
    struct wanted *wanted = malloc(VR_MISSING_ROWS * sizeof *wanted);
    if (wanted == NULL) return;
    const size_t count = collect(file, wanted);
    if (count == 0) ui_say("vram sim: nothing was wanted that is not simulated");
    if (count > 0) ui_say("vram sim: what was wanted and is not simulated (calls, function, its library, who called):");
    for (size_t i = 0; i < count; i++)
        ui_say("%10" PRIu64 "  %-40s %-14s %s", wanted[i].count, wanted[i].function, wanted[i].library, base_name(wanted[i].module));
    free(wanted);
}

int sim_missing_run(char **program) {
    char path[PATH_CAPACITY];
    struct vr_missing_file *file = make_file(path);
    if (file == NULL || setenv("VRAM_SIM_MISSING", path, 1) != 0) {
        ui_say("vram sim: --missing: no temporary file could be made: %s", strerror(errno));
        return CLI_BAD_INPUT;
    }
    bool started = false;
    const int code = program_run("sim", program, &started);
    if (started) report(file);
    (void)unlink(path);
    (void)munmap(file, sizeof *file);
    return code;
}
