// fit_run.h: one run of a program on a simulated device, recorded, for `vram fit`, and the files around it.
#ifndef CLI_FIT_RUN_H
#define CLI_FIT_RUN_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fit_failure.h"
#include "fit_serving.h"
#include "sim_counts.h"
#include "sim_settings.h"

// One run of a program on a simulated device, recorded, for `vram fit`.

struct vram_recording;

// What a run is to be.
struct fit_plan {
    struct sim_settings sim; // of which `models` names one device
    char **program;          // ends with NULL
    const char *steps;       // "auto", or a number
    const char *until;       // a regular expression that a line of its output is looked for; NULL: none
    uint64_t most_seconds;   // 0: any
    bool quiet;              // its output is shown when it fails only
    bool dummy_weights;      // weights are made up from configurations
};

// Why a run ended. X(constant, JSON name)
#define FIT_ENDINGS(X)                                                                                                                     \
    X(FIT_ENDED, end)               /* the program came to its end */                                                                      \
    X(FIT_REPEATS, repeats)         /* its steps repeat */                                                                                 \
    X(FIT_CALLS, calls)             /* its calls of models repeat */                                                                       \
    X(FIT_READY, ready)             /* it is a server, and serves */                                                                       \
    X(FIT_SERVED, served)           /* it served without a new peak */                                                                     \
    X(FIT_STANDS, stands)           /* its steps differ, its peak stands */                                                                \
    X(FIT_STEPS, steps)             /* as many steps as were asked for */                                                                  \
    X(FIT_UNTIL, until)             /* what was looked for is in its output */                                                             \
    X(FIT_TIME, time)               /* the time was over */                                                                                \
    X(FIT_OUT_OF_MEMORY, oom)       /* it failed, after memory had run out */                                                              \
    X(FIT_INTERRUPTED, interrupted) /* it was asked to end, from outside */                                                                \
    X(FIT_FAILED, failed)           /* it failed */

enum fit_ending {
#define FIT_ENDING(constant, name) constant,
    FIT_ENDINGS(FIT_ENDING)
#undef FIT_ENDING
        FIT_ENDING_COUNT
};
extern const char *const fit_ending_names[FIT_ENDING_COUNT];

// A process that had device memory.
struct fit_process {
    char *path;         // its recording
    int64_t id;         // of the system
    uint64_t rank;      // 0 where it is none of several
    uint64_t steps;     // that were seen to end
    char torch[32];     // the version of PyTorch; "": it was recorded at the driver
    char ended[16];     // "steps", "asked" or "exit"
    bool whole_program; // recorded at the driver: what libraries asked for, not an allocator
    struct fit_served served;
    struct fit_host host;
    struct fit_failure failure; // where an exception ended it
};

// What one process had on one device.
struct fit_holding {
    const struct fit_process *process;
    uint32_t device;          // as the recording numbers it
    uint32_t ordinal;         // as the simulator does
    uint64_t allocated_bytes; // the most in blocks at once
    uint64_t reserved_bytes;  // the most held by the allocator at once; of whole programs what was allocated
    uint64_t outside_bytes;   // the most that the device had in addition: context, libraries
    uint64_t ooms, retries;
};

struct fit_run {
    enum fit_ending ending;
    int exit_code;         // of the program
    double seconds;        // that it took
    uint64_t steps;        // of the process that ended the most
    uint64_t memory_bytes; // of the devices, where it was not the model's; else 0
    int signal;            // that asked it to end from outside; 0: none
    uint64_t least_bytes;  // that a rank had reserved by the end of a step; 0: no step ended
    bool began;            // a process with PyTorch used a device
    bool no_kernels;       // a PyTorch has none for the device
    char kernels[512];     // for which devices it has, as torch.cuda.get_arch_list(): "sm_75 sm_80 compute_90"; "": not known
    char folder[4096];     // of the recordings; "" when there is none any more
    struct fit_process *processes;
    size_t process_count;
    struct fit_holding *holdings; // by rank, then process and device
    size_t holding_count;
    struct sim_read_place *reads; // of what kernels would have computed; most first
    size_t read_count;
    struct sim_wanted *missing; // calls that are not simulated
    size_t missing_count;
    struct sim_wanted *sizes; // that libraries were taken to need, and that nobody knows
    size_t size_count;
};

// Runs the program to its end and reads what was recorded. CLI_OK, also when it failed; else after a line on standard error.
int fit_run(const struct fit_plan *plan, struct fit_run *run);
// Removes the recordings, too.
void fit_run_release(struct fit_run *run);
// The recording of a process; the exit code, after a line on standard error where it cannot be read.
int fit_run_recording(const struct fit_process *process, struct vram_recording **recording);

// GGUF files whose tensors are not there: the header says how large the file is, the rest is a hole.

struct fit_gguf {
    uint64_t data_begin;   // where the first tensor begins
    uint64_t file_bytes;   // of the whole file
    uint64_t tensor_bytes; // of all tensors
    uint64_t tensor_count;
};

// Reads a file's header. False with what is wrong in `wrong`; *gguf is untouched then.
bool fit_gguf_read(const char *path, struct fit_gguf *gguf, char *wrong, size_t capacity);

// A program's arguments, of which those that name GGUF files name copies with a hole for the tensors, made in `folder`, and their other
// parts with them. Ends with NULL; to be given to fit_gguf_release(). NULL after a line on standard error.
char **fit_gguf_replace(char **program, const char *folder);
void fit_gguf_release(char **program);

// What the processes of a run left: recordings, and facts about them (adapters/fit/vram_fit.py, adapters/preload).

// Makes a folder of this user's alone and puts its path into run->folder. False with errno.
bool fit_folder_make(struct fit_run *run);
// The next file whose name ends so; *entries is NULL before the first, and after the last, when it returns false.
bool fit_folder_next(const struct fit_run *run, const char *end, DIR **entries, char *name, size_t capacity);
// Fills the processes and holdings. The exit code.
int fit_folder_read(struct fit_run *run);
// Removes what is in the folder, and it.
void fit_folder_remove(struct fit_run *run);

#endif
