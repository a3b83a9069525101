// fit_circle.h: finds ranks whose calls of NCCL wait for each other: rank 0 receives from rank 1 before it sends to it, and rank 1 does the
// same; or rank 0 calls a collective of one group and then one of another, and rank 1 in the opposite order.
//
// A call waits for the earlier calls of its stream, and it ends only after calls of other ranks have begun. All calls of all ranks are let
// begin and end by these two rules. What can never begin is a hang.
//
// The rules hold for certain, so some hangs are not found:
// - Calls on different streams are not ordered here, even if events order them. In older versions of PyTorch, each group has its own.
// - A send ends at once unless it exceeds NCCL's buffers. NCCL's documentation only says that a send may block, so ranks that send to each
//   other before they receive hang or not, depending on size and connection.
// - A root that broadcasts or scatters, and a rank that gives to a reduction or gather, end at once.
// - Captured calls, and those on the per-thread default stream, wait for no earlier call. Ranks that do not run have always begun.
// - Only the first 262,144 calls of all ranks are looked at.
#ifndef CLI_FIT_CIRCLE_H
#define CLI_FIT_CIRCLE_H

struct fit_run;
struct vr_rank_calls_file;

// Describes the first such ranks in run->unanswered, unless an earlier call is there that is never answered.
void fit_circle_find(struct fit_run *run, const struct vr_rank_calls_file *file);

#endif
