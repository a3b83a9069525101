// sim_reads.c: the reading half of simulator/standins/common/reads.h.
#include "sim_reads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "beside.h"
#include "ui.h"

static void add(struct sim_read_place *place, const struct vr_reads_count *count) {
    place->calls += atomic_load(&count->calls);
    place->unwritten_bytes += atomic_load(&count->unwritten_bytes);
    place->passed_bytes += atomic_load(&count->passed_bytes);
    place->not_kept_bytes += atomic_load(&count->not_kept_bytes);
}

static int by_calls(const void *a, const void *b) {
    const struct sim_read_place *one = a, *other = b;
    if (one->calls != other->calls) return one->calls < other->calls ? 1 : -1;
    return strcmp(one->text, other->text);
}

// The rows that are whole, those of one place added up. Returns how many.
static size_t collect(const struct vr_reads_file *file, struct sim_read_place *places) {
    const uint64_t used = atomic_load(&file->used);
    size_t kept = 0;
    for (uint64_t i = 0; i < used && i < VR_READS_ROWS; i++) {
        const struct vr_reads_row *row = &file->rows[i];
        if (atomic_load(&row->state) != VR_READS_READY) continue;
        struct sim_read_place *place = &places[kept];
        *place = (struct sim_read_place){.calls = 0};
        memcpy(place->text, row->place, sizeof place->text - 1);
        memcpy(place->operation, row->operation, sizeof place->operation - 1);
        for (size_t j = 0; j < kept; j++)
            if (strcmp(places[j].text, place->text) == 0) place = &places[j];
        kept += place == &places[kept];
        add(place, &row->count);
    }
    qsort(places, kept, sizeof *places, by_calls);
    return kept;
}

static void say_bytes(uint64_t bytes, const char *what) {
    if (bytes > 0) ui_say("    %" PRIu64 " B %s", bytes, what);
}

static void say_place(const struct sim_read_place *place) {
    ui_say("  %" PRIu64 "%s%s%s", place->calls, place->calls == 1 ? " read" : " reads",
           place->operation[0] == '\0' ? "" : " of aten::", place->operation);
    say_bytes(place->unwritten_bytes, "that no copy and no fill wrote");
    say_bytes(place->passed_bytes, "that were written, and then given to a kernel to write");
    say_bytes(place->not_kept_bytes, "of large copies from the host, which bytes=none does not keep");
    for (const char *line = place->text; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        ui_say("      %.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

size_t sim_reads_list(const struct sim_counts *counts, struct sim_read_place **places) {
    struct vr_reads_file *file = sim_counts_read(counts);
    struct sim_read_place *rows = calloc(VR_READS_ROWS + 1, sizeof *rows);
    size_t count = 0;
    *places = rows;
    if (rows == NULL || file == NULL) {
        free(file);
        return 0;
    }
    count = collect(file, rows);
    rows[count] = (struct sim_read_place){.text = "at further places\n"};
    add(&rows[count], &file->elsewhere);
    free(file);
    return count + (rows[count].calls > 0);
}

void sim_reads_report(const struct sim_counts *counts) {
    struct sim_read_place *places;
    const size_t count = sim_reads_list(counts, &places);
    if (places != NULL && count == 0) ui_say("vram sim: no read gave anything but what a GPU would have given");
    if (count > 0) ui_say("vram sim: reads that do not give what a GPU would have given, by place (innermost frame first):");
    for (size_t i = 0; i < count; i++) say_place(&places[i]);
    free(places);
}

bool sim_reads_begin(struct sim_counts *counts) {
    char stacks[4096];
    // Without it, places are modules and offsets.
    if (beside_stacks(stacks, sizeof stacks)) (void)setenv("VRAM_SIM_STACKS", stacks, 0);
    return sim_counts_make(counts, "reads", "VRAM_SIM_READS", sizeof(struct vr_reads_file), VR_READS_MAGIC);
}
