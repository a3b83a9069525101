// sim_checking.h: reports work, waits and memory to the checker (check/check.h). All functions require that sim->checking is set; callers
// test that, so that a run without a checker pays one predictable branch.
#ifndef VR_SIM_STREAMS_SIM_CHECKING_H
#define VR_SIM_STREAMS_SIM_CHECKING_H

#include "sim/streams/sim_streams.h"

// Returns the running call as a place. `work` is what the call does.
VR_INLINE struct vr_check_place vr_sim_checking_place(const struct vr_sim *sim, const char *work) {
    return (struct vr_check_place){.stack = sim->stack, .work = work};
}

void vr_sim_checking_open(struct vr_sim *sim, const struct vr_sim_stream *stream);
// Reports that the host knows of the completion of an event.
VR_INLINE void vr_sim_checking_host_wait(struct vr_sim *sim, const struct vr_sim_event *event) {
    if (event->recorded) vr_check_host_wait(sim->checking->check, event->point);
    if (event->key != 0) vr_check_host_wait_shared(sim->checking->check, event->key);
}

#define VR_SIM_WORK_ACCESSES 2
// Gets the memory that a copy or a set uses. Returns the number of accesses; 0 for other work.
size_t vr_sim_work_accesses(const struct vr_sim_work *work, struct vr_check_access accesses[VR_SIM_WORK_ACCESSES]);
// Returns what the work is called in findings.
const char *vr_sim_work_name(const struct vr_sim *sim, const struct vr_sim_work *work);
// Reports why a copy or a set was refused.
void vr_sim_checking_refused(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_sim_work *work);
// Reports work of a stream that is not a kernel of a module.
void vr_sim_checking_work(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_sim_work *work);

#endif
