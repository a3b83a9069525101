// fit_run.h: runs a program on a simulated device and records it for `vram fit`, and manages the files of the run.
#ifndef CLI_FIT_RUN_H
#define CLI_FIT_RUN_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fit_doubt.h"
#include "fit_failure.h"
#include "fit_joining.h"
#include "fit_played.h"
#include "fit_route.h"
#include "fit_serving.h"
#include "fit_unanswered.h"
#include "sim_counts.h"
#include "sim_settings.h"

struct vram_recording;
struct fit_requests;

// The settings of a run.
struct fit_plan {
    struct sim_settings sim;             // `models` names one device
    char **program;                      // ends with NULL
    const char *steps;                   // "auto", or a number
    const char *until;                   // a regular expression; a matching line of output ends the run; NULL: none
    const char *printed;                 // a regular expression whose group is a number in the output; NULL: none
    uint64_t most_seconds;               // 0: no limit
    bool quiet;                          // shows the program's output only if it fails
    bool silent;                         // shows it never
    bool dummy_weights;                  // generates dummy weights from configurations
    const struct fit_requests *requests; // to play against the model server; NULL: none
    bool keeps_plan;                     // the engine writes a plan for its next start
    bool has_devices;                    // their number was given
    bool folds;                          // only some of its ranks run
};

// The reason for the end of a run. X(constant, JSON name, sentence)
#define FIT_ENDINGS(X)                                                                                                                     \
    X(FIT_ENDED, end, "the program ended")                                                                                                 \
    X(FIT_REPEATS, repeats, "stopped: three steps in a row are alike")                                                                     \
    X(FIT_CALLS, calls, "stopped: model calls repeat, or 100 calls set no new peak")                                                       \
    X(FIT_READY, ready, "stopped: the server responds")                                                                                    \
    X(FIT_SERVED, served, "stopped: it served 100 steps without a new peak")                                                               \
    X(FIT_PLAYED, played, "stopped: all requests were played")                                                                             \
    X(FIT_PLATEAU, plateau, "stopped: steps differ but their peaks are equal, or 100 steps set no new peak")                               \
    X(FIT_STEPS, steps, "stopped after the requested steps")                                                                               \
    X(FIT_UNTIL, until, "stopped: its output matched --until")                                                                             \
    X(FIT_TIME, time, "stopped: the time of --for had passed")                                                                             \
    X(FIT_OUT_OF_MEMORY, oom, "the program failed, out of memory")                                                                         \
    X(FIT_INTERRUPTED, interrupted, "the program was interrupted")                                                                         \
    X(FIT_REFUSED, refused, "the program cannot run with some of its ranks only")                                                          \
    X(FIT_HANGS, hangs, "on GPUs a rank would wait forever for another")                                                                   \
    X(FIT_ABSENT, absent, "stopped: the ranks of the job wait for one that ended before it joined them")                                   \
    X(FIT_FAILED, failed, "the program failed")

enum fit_ending {
#define FIT_ENDING(constant, name, sentence) constant,
    FIT_ENDINGS(FIT_ENDING)
#undef FIT_ENDING
        FIT_ENDING_COUNT
};
extern const char *const fit_ending_names[FIT_ENDING_COUNT], *const fit_ending_sentences[FIT_ENDING_COUNT];

// A process that used device memory.
struct fit_process {
    char *path;           // its recording
    int64_t id;           // process id
    uint64_t rank;        // 0 if it is the only one
    uint64_t steps;       // completed steps
    int64_t stepped_us;   // when its last step but one had ended; 0: it did not have two
    int64_t last_step_us; // when its last step had ended; 0: it had none
    int64_t begun_us;     // when it began to use a device
    int64_t ended_us;     // when its recording ended; 0: not known
    char torch[32];       // version of PyTorch; "" if recorded at driver level
    char ended[16];       // "steps", "asked" or "exit"
    bool whole_program;   // recorded at driver level: requests of libraries, not of an allocator
    struct fit_served served;
    struct fit_routed routed;
    struct fit_host host;
    struct fit_failure failure; // if an exception ended it
    char free_read[512];        // call site that read how much memory is free; "": none
};

// A process with a context on a device on which it allocated nothing.
struct fit_context {
    const struct fit_process *process;
    uint32_t ordinal;       // of the device in the simulator
    uint64_t outside_bytes; // context and libraries
};

// One process's memory on one device.
struct fit_holding {
    const struct fit_process *process;
    uint32_t device;          // number in the recording
    uint32_t ordinal;         // number in the simulator
    uint64_t allocated_bytes; // most in blocks at once
    uint64_t reserved_bytes;  // most reserved by the allocator at once; if whole_program, the allocated bytes
    uint64_t outside_bytes;   // most of the device in addition: context, libraries
    uint64_t ooms, retries;
};

struct fit_run {
    enum fit_ending ending;
    int exit_code;         // of the program
    double seconds;        // duration
    uint64_t steps;        // of the process that completed the most
    uint64_t memory_bytes; // of the devices if set; 0: the model's own
    bool has_printed;
    double printed;       // the last number that the output had for plan->printed
    int signal;           // the signal sent from outside to end the program; 0: none
    uint64_t least_bytes; // most bytes that a rank had reserved when a step ended; 0: no step ended
    bool began;           // a process with PyTorch used a device
    bool no_kernels;      // PyTorch has no kernels for the device
    char kernels[512];    // devices it has kernels for, as torch.cuda.get_arch_list(): "sm_75 sm_80 compute_90"; "" if unknown
    bool left;            // a rank ended without an error before it used a device
    uint64_t left_rank;
    struct fit_absent absent;
    struct fit_behind behind;
    struct fit_launchers_word launchers_word;
    char last_line[300]; // of its output, without a launcher's report
    char refused[600];   // why it cannot run with some of its ranks only; "" if it can
    char folder[4096];   // of the recordings; "" once removed
    struct fit_process *processes;
    size_t process_count;
    struct fit_holding *holdings; // by rank, then process and device
    size_t holding_count;
    struct fit_context *contexts;
    size_t context_count;
    uint64_t more_devices;        // to try with --devices, because more ranks than devices ran; 0: none
    bool joined;                  // these ranks joined a job; else they were only spawned
    struct sim_read_place *reads; // reads of what kernels would have computed; most frequent first
    size_t read_count;
    struct sim_wanted *missing; // calls that are not simulated
    size_t missing_count;
    struct sim_wanted *sizes; // assumed needs of libraries that have no source
    size_t size_count;
    struct fit_played played; // the requests that were played
    struct fit_unanswered unanswered;
};

// Runs the program to its end and reads the recordings. Returns CLI_OK even if the program failed; otherwise an exit code after a line on
// standard error.
int fit_run(const struct fit_plan *plan, struct fit_run *run);
// Releases the run and removes its recordings.
void fit_run_release(struct fit_run *run);
// Reads the recording of a process. Returns an exit code, after a line on standard error if it cannot be read.
int fit_run_recording(const struct fit_process *process, struct vram_recording **recording);

// The header of a GGUF file. Copies of the file have a hole instead of its tensors.

struct fit_gguf {
    uint64_t data_begin;   // offset of the first tensor
    uint64_t file_bytes;   // of the whole file
    uint64_t tensor_bytes; // of all tensors
    uint64_t tensor_count;
};

// Reads a file's header. Returns false, with the reason in `wrong` and *gguf unchanged, if it is invalid.
bool fit_gguf_read(const char *path, struct fit_gguf *gguf, char *wrong, size_t capacity);

// Returns the program's arguments, with GGUF files replaced by sparse copies in `folder`; their other parts are copied as well. Ends with
// NULL. Release with fit_gguf_release(). Returns NULL after a line on standard error.
char **fit_gguf_replace(char **program, const char *folder);
void fit_gguf_release(char **program);

// Makes a folder that only this user can access and stores its path in run->folder. Returns false with errno set.
bool fit_folder_make(struct fit_run *run);
// Finds the next file whose name ends with `end`. *entries is NULL before the first call, and again after the last, which returns false.
bool fit_folder_next(const struct fit_run *run, const char *end, DIR **entries, char *name, size_t capacity);
// Fills the processes and holdings from the recordings and facts in the folder (adapters/fit/vram_fit.py, adapters/preload). Returns an
// exit code.
int fit_folder_read(struct fit_run *run);
// Removes the folder and its contents.
void fit_folder_remove(struct fit_run *run);

#endif
