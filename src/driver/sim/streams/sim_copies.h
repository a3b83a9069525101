// sim_copies.h: copies and sets on their way into streams and graphs.
#ifndef VR_DRIVER_SIM_STREAMS_SIM_COPIES_H
#define VR_DRIVER_SIM_STREAMS_SIM_COPIES_H

#include "driver/sim/graphs/sim_graphs.h"

// Copies and sets whose device the stream says: INVALID_VALUE where the memory is not the device's to use. (sim_copy.c)
vr_cu_result vr_sim_submit_bytes(struct vr_sim *sim, struct vr_sim_stream *queue, struct vr_sim_work *work);
// A copy of rows and planes as work; its device is not set. INVALID_VALUE, INVALID_HANDLE for no array. (sim_copy_shape.c)
vr_cu_result vr_sim_shaped_work(const struct vr_sim *sim, const struct vr_cu_memcpy3d *copy, struct vr_sim_work *work);

#endif
