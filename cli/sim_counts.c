#define _GNU_SOURCE // mkostemp()

#include "sim_counts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../simulator/standins/common/missing.h"
#include "run_environment.h"
#include "ui.h"

static bool make_file(struct sim_counts *counts, size_t size_bytes, uint64_t magic) {
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] == '\0') folder = "/tmp";
    if (snprintf(counts->path, sizeof counts->path, "%s/vram-sim-XXXXXX", folder) >= (int)sizeof counts->path) return false;
    const int descriptor = mkostemp(counts->path, O_CLOEXEC);
    if (descriptor < 0) return false;
    const bool begun =
        ftruncate(descriptor, (off_t)size_bytes) == 0 && pwrite(descriptor, &magic, sizeof magic, 0) == (ssize_t)sizeof magic;
    void *mapped = begun ? mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) : MAP_FAILED;
    if (mapped == MAP_FAILED) {
        (void)close(descriptor);
        (void)unlink(counts->path);
        return false;
    }
    counts->file = mapped;
    counts->descriptor = descriptor;
    counts->size_bytes = size_bytes;
    return true;
}

bool sim_counts_make(struct sim_counts *counts, const char *option, const char *variable, size_t size_bytes, uint64_t magic) {
    if (make_file(counts, size_bytes, magic) && setenv(variable, counts->path, 1) == 0) return true;
    ui_say("vram sim: --%s: cannot create a temporary file: %s", option, strerror(errno));
    sim_counts_end(counts);
    return false;
}

// Copies the file's contents, with zeros if the program truncated it. The caller frees the copy. Returns NULL if memory runs out. Reads the
// file, not the mapping, because access beyond a truncated end would fault.
static void *sim_counts_read(const struct sim_counts *counts) {
    char *bytes = calloc(1, counts->size_bytes);
    if (bytes == NULL) return NULL;
    for (size_t done = 0; done < counts->size_bytes;) {
        const ssize_t got = pread(counts->descriptor, bytes + done, counts->size_bytes - done, (off_t)done);
        if (got <= 0) break;
        done += (size_t)got;
    }
    return bytes;
}

void sim_counts_end(struct sim_counts *counts) {
    if (counts->file == NULL) return;
    (void)unlink(counts->path);
    (void)munmap(counts->file, counts->size_bytes);
    (void)close(counts->descriptor);
    counts->file = NULL;
}

// Reads the records of simulator/standins/common/missing.h.

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

// Collects the complete rows, adding up equal ones. Returns their number.
static size_t collect_missing(const struct vr_missing_file *file, bool sizes, struct sim_wanted *wanted) {
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
    const size_t count = rows == NULL || file == NULL ? 0 : collect_missing(file, sizes, rows);
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
    if (wanted != NULL && count == 0) ui_say("vram sim: every function the program called is simulated");
    if (count > 0) ui_say("vram sim: functions called that are not simulated (calls, function, library, caller):");
    for (size_t i = 0; i < count; i++)
        ui_say("%10" PRIu64 "  %-40s %-14s %s", wanted[i].count, wanted[i].function, wanted[i].library, base_name(wanted[i].module));
    free(wanted);
}

// The reader of simulator/standins/common/reads.h.

static void add_read_count(struct sim_read_place *place, const struct vr_reads_count *count) {
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

// Collects the complete rows, adding up those of one place. Returns their number.
static size_t collect_reads(const struct vr_reads_file *file, struct sim_read_place *places) {
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
        add_read_count(place, &row->count);
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
    say_bytes(place->unwritten_bytes, "that no copy or fill wrote");
    say_bytes(place->passed_bytes, "that were written and then passed to a kernel");
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
    count = collect_reads(file, rows);
    rows[count] = (struct sim_read_place){.text = "at other places\n"};
    add_read_count(&rows[count], &file->elsewhere);
    free(file);
    return count + (rows[count].calls > 0);
}

void sim_reads_report(const struct sim_counts *counts) {
    struct sim_read_place *places;
    const size_t count = sim_reads_list(counts, &places);
    if (places != NULL && count == 0) ui_say("vram sim: every read returned what a GPU would have returned");
    if (count > 0) ui_say("vram sim: reads that differ from those on a GPU, by place (innermost frame first):");
    for (size_t i = 0; i < count; i++) say_place(&places[i]);
    free(places);
}

bool sim_reads_begin(struct sim_counts *counts) {
    char stacks[4096];
    // Without it, places are modules and offsets.
    if (find_stacks_library(stacks, sizeof stacks)) (void)setenv("VRAM_SIM_STACKS", stacks, 0);
    return sim_counts_make(counts, "reads", "VRAM_SIM_READS", sizeof(struct vr_reads_file), VR_READS_MAGIC);
}

// The reader of simulator/standins/common/rank_calls.h.

bool sim_calls_begin(struct sim_counts *counts) {
    return sim_counts_make(counts, "calls", "VRAM_SIM_CALLS", sizeof(struct vr_rank_calls_file), VR_RANK_CALLS_MAGIC);
}

struct vr_rank_calls_file *sim_calls_read(const struct sim_counts *counts) {
    return sim_counts_read(counts);
}
