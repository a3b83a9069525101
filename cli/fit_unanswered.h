// fit_unanswered.h: finds calls of NCCL that another rank never answers: a send without a receive, a receive without a send, and a
// collective that one rank does not call; and ranks that wait for each other (fit_circle.h). On the simulated device the program
// continues; on GPUs it would wait forever.
#ifndef CLI_FIT_UNANSWERED_H
#define CLI_FIT_UNANSWERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fit_process;
struct fit_run;
struct sim_counts;
struct vr_rank_calls_file;
struct vr_rank_calls_row;

// The first such call.
struct fit_unanswered {
    bool any;
    int64_t time_us;
    char what[900]; // "rank 0 waits in ncclSend of 256 float32 for rank 1, which never receives them"
    char site[600]; // where the program makes it; "": not known
};

// Compares the ranks' calls. If the run was stopped between steps, the calls of its last step are left out, because the other ranks may
// not have come so far. Returns whether there is such a call, described in run->unanswered.
bool fit_unanswered_find(struct fit_run *run, const struct sim_counts *calls);
// Returns whether a row of the file, which the program writes, has valid members.
bool fit_calls_sound(const struct vr_rank_calls_row *row);
// Returns the process that made a row's calls, or NULL if it left no recording. row may be NULL.
const struct fit_process *fit_calls_process(const struct fit_run *run, const struct vr_rank_calls_row *row);
// Writes the place of a call: its innermost frame in the program; "" if that is not known.
void fit_calls_site(const struct vr_rank_calls_file *file, uint32_t place, char *site, size_t capacity);
// Writes a sentence.
void fit_unanswered_text(const struct fit_unanswered *unanswered, char *text, size_t capacity);

#endif
