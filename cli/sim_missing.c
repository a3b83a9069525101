// sim_missing.c: the reading half of simulator/standins/common/missing.h.
#include "sim_missing.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../simulator/standins/common/missing.h"
#include "ui.h"

static int by_name(const void *a, const void *b) {
    const struct sim_wanted *one = a, *other = b;
    int order = strcmp(one->library, other->library);
    if (order == 0) order = strcmp(one->function, other->function);
    return order != 0 ? order : strcmp(one->module, other->module);
}

static int by_count(const void *a, const void *b) {
    const struct sim_wanted *one = a, *other = b;
    if (one->count != other->count) return one->count < other->count ? 1 : -1;
    return by_name(a, b);
}

static void end_text(char *into, const char *from, size_t capacity) {
    memcpy(into, from, capacity);
    into[capacity - 1] = '\0';
}

// The rows that are whole, equal ones added up. Returns how many.
static size_t collect(const struct vr_missing_file *file, bool sizes, struct sim_wanted *wanted) {
    const uint64_t used = atomic_load(&file->used);
    size_t count = 0, kept = 0;
    for (uint64_t i = 0; i < used && i < VR_MISSING_ROWS; i++) {
        const struct vr_missing_row *row = &file->rows[i];
        if (atomic_load(&row->state) != VR_MISSING_READY || (strncmp(row->library, VR_MISSING_SIZE, sizeof row->library) == 0) != sizes)
            continue;
        wanted[count].count = atomic_load(&row->count);
        wanted[count].bytes = atomic_load(&row->bytes);
        end_text(wanted[count].function, row->function, sizeof row->function);
        end_text(wanted[count].library, row->library, sizeof row->library);
        end_text(wanted[count].module, row->module, sizeof row->module);
        count++;
    }
    qsort(wanted, count, sizeof *wanted, by_name);
    for (size_t i = 0; i < count; i++) {
        struct sim_wanted *last = kept > 0 && by_name(&wanted[kept - 1], &wanted[i]) == 0 ? &wanted[kept - 1] : NULL;
        if (last == NULL) {
            wanted[kept++] = wanted[i];
            continue;
        }
        last->count += wanted[i].count;
        if (wanted[i].bytes > last->bytes) last->bytes = wanted[i].bytes;
    }
    qsort(wanted, kept, sizeof *wanted, by_count);
    return kept;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

size_t sim_missing_list(const struct sim_counts *counts, bool sizes, struct sim_wanted **wanted) {
    struct sim_wanted *rows = calloc(VR_MISSING_ROWS, sizeof *rows);
    struct vr_missing_file *file = sim_counts_read(counts);
    const size_t count = rows == NULL || file == NULL ? 0 : collect(file, sizes, rows);
    free(file);
    *wanted = rows;
    return count;
}

bool sim_missing_begin(struct sim_counts *counts) {
    return sim_counts_make(counts, "missing", "VRAM_SIM_MISSING", sizeof(struct vr_missing_file), VR_MISSING_MAGIC);
}

void sim_missing_report(const struct sim_counts *counts) {
    struct sim_wanted *wanted;
    const size_t count = sim_missing_list(counts, false, &wanted);
    if (wanted != NULL && count == 0) ui_say("vram sim: nothing was wanted that is not simulated");
    if (count > 0) ui_say("vram sim: what was wanted and is not simulated (calls, function, its library, who called):");
    for (size_t i = 0; i < count; i++)
        ui_say("%10" PRIu64 "  %-40s %-14s %s", wanted[i].count, wanted[i].function, wanted[i].library, base_name(wanted[i].module));
    free(wanted);
}
