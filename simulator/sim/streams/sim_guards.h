// sim_guards.h: memory of the host that a copy or kernel still uses, guarded against the host. A page that it will write cannot be
// accessed, one that it will read cannot be written, until the host has waited for the work. The caller decides what the process does at a
// fault.
//
// Only pages of cuMemHostAlloc and cuMemAllocManaged are guarded: those of registered memory may hold other objects of the program. All
// functions require sim->checking and the lock.
#ifndef VR_SIM_STREAMS_SIM_GUARDS_H
#define VR_SIM_STREAMS_SIM_GUARDS_H

#include "sim/streams/sim_streams.h"

// Guard the memory of a copy, or of a kernel's operands, that was just put into the stream.
void vr_sim_guards_add(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_sim_work *work);
void vr_sim_guards_add_accesses(struct vr_sim *sim, const struct vr_sim_stream *stream, const struct vr_check_access *accesses,
                                size_t count);
// Ends the guards of copies that the host has waited for.
void vr_sim_guards_refresh(struct vr_sim *sim);
// Ends all guards of the pages of a range, for its free or after a fault.
void vr_sim_guards_end(struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
// Opens the pages of the work's memory for the simulator itself, and guards them again.
void vr_sim_guards_open(struct vr_sim *sim, const struct vr_sim_work *work);
void vr_sim_guards_close(struct vr_sim *sim, const struct vr_sim_work *work);
// Guards all pages again, of which some were opened.
void vr_sim_guards_close_all(struct vr_sim *sim);
// Handles a fault at an address. Returns false if no guard caused it. Otherwise reports the access if it is a mistake, opens the page, and
// returns true.
bool vr_sim_guards_fault(struct vr_sim *sim, uint64_t address, bool write, struct vr_check_place place);

#endif
