// sim_counts.h: reads the counts that stand-ins keep in shared memory: functions the program did not get, and reads of memory never
// written.
#ifndef CLI_SIM_COUNTS_H
#define CLI_SIM_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../simulator/standins/common/rank_calls.h"
#include "../simulator/standins/common/reads.h"

// A file in shared memory that stand-ins fill while the program runs. A zeroed struct has no file.
struct sim_counts {
    void *file; // mapped, begins with its magic number; for checks while the program runs, since reports read a copy
    int descriptor;
    size_t size_bytes;
    char path[4096];
};

// Creates a file that is zero after its magic number, and names it in an environment variable for the program. Returns false, after a line
// on standard error that names `option`.
bool sim_counts_make(struct sim_counts *counts, const char *option, const char *variable, size_t size_bytes, uint64_t magic);
void sim_counts_end(struct sim_counts *counts);

// A function that was called and is not simulated, or a library's size that was used and is not known.
struct sim_wanted {
    uint64_t count;
    uint64_t bytes; // of a size: its assumed maximum; 0 if unknown
    char function[96], library[32], module[240];
};

// Makes the next program and its children count missing functions. Returns false after a line on standard error.
bool sim_missing_begin(struct sim_counts *counts);
// Prints the missing functions on standard error.
void sim_missing_report(const struct sim_counts *counts);

// Lists the functions, or the sizes (in `function`, by their names in simulator/standins/common/size_names.def), most frequent first.
// Returns their number. The caller frees *wanted, which is NULL if memory runs out.
size_t sim_missing_list(const struct sim_counts *counts, bool sizes, struct sim_wanted **wanted);

// Reads, at one place of the program, of device memory that does not contain what a GPU would have written.
struct sim_read_place {
    uint64_t calls, unwritten_bytes, passed_bytes, not_kept_bytes;
    char operation[sizeof((struct vr_reads_row *)0)->operation]; // of PyTorch; "" if unknown
    char text[sizeof((struct vr_reads_row *)0)->place];          // its innermost frames, one per line
};

// Makes the next program and its children count such reads. Returns false after a line on standard error.
bool sim_reads_begin(struct sim_counts *counts);
// Prints the places on standard error.
void sim_reads_report(const struct sim_counts *counts);

// Lists the places, most reads first. Returns their number. The caller frees *places, which is NULL if memory runs out.
size_t sim_reads_list(const struct sim_counts *counts, struct sim_read_place **places);

// Makes the next program and its children record their calls of NCCL. Returns false after a line on standard error.
bool sim_calls_begin(struct sim_counts *counts);
// Returns a copy of the records, which the caller frees; NULL if memory runs out.
struct vr_rank_calls_file *sim_calls_read(const struct sim_counts *counts);

#endif
