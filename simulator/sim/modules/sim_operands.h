// sim_operands.h: the memory that a launch uses, as far as the kernel's name, types and arguments tell, and its report to the checker.
#ifndef VR_SIM_MODULES_SIM_OPERANDS_H
#define VR_SIM_MODULES_SIM_OPERANDS_H

#include "sim/modules/sim_launch.h"

// The only argument of the kernel that stands for a call of a library on top of CUDA: the call's name, and the memory that it uses.
// simulator/standins/common/common.h has the same struct for the libraries.
#define VR_SIM_LIBRARY_KERNEL   "standin_work"
#define VR_SIM_LIBRARY_OPERANDS 16
#define VR_SIM_LIBRARY_OPEN     4
struct vr_sim_library_call {
    char name[40]; // "": unknown
    uint64_t count;
    struct {
        uint64_t address, size_bytes, effect; // effect: enum vr_check_effect, plus VR_SIM_LIBRARY_OPEN if the size is only the least
    } operands[VR_SIM_LIBRARY_OPERANDS];
};

// Returns what a launch uses for certain, in an array of the simulator that the next call changes. Addresses in arguments whose meaning is
// unknown are left out.
const struct vr_sim_accesses *vr_sim_launch_accesses(struct vr_sim *sim, const struct vr_sim_launch *launch);

// Report a launch on a stream, or a step of the launch in progress, to sim->checking, which must be set. work NULL: the step does nothing.
void vr_sim_operands_check(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_sim_launch *launch);
void vr_sim_operands_check_step(struct vr_sim *sim, const struct vr_sim_work *work, const size_t *after, size_t after_count);

#endif
