// sim_results.h: results of kernels that the program's process computed on the host (adapters/fit/vram_values.py): elements in
// device memory with a level each, which are looked at before an operation and put behind it.
#ifndef VR_SIM_STREAMS_SIM_RESULTS_H
#define VR_SIM_STREAMS_SIM_RESULTS_H

#include "sim/streams/sim_answers.h"

#define VR_SIM_UNTOUCHED VR_SIM_LEVELS // in place of an element's level: it is no result

// May results be put after the work of a stream of a device? INVALID_CONTEXT: the device is not in use. NOT_SUPPORTED: nothing is kept of
// what is written. STREAM_CAPTURE_UNSUPPORTED: the stream captures. Waits for the host functions that the stream has; the lock is given up
// meanwhile.
vr_cu_result vr_sim_results_after(struct vr_sim *sim, uint32_t device, uint64_t stream);
// The bytes of elements at an address and a level for each. INVALID_VALUE where no device reaches that,
// NOT_SUPPORTED where nothing is kept.
vr_cu_result vr_sim_results_look(struct vr_sim *sim, uint64_t address, uint64_t elements, uint32_t element_bytes, void *bytes,
                                 uint8_t *levels);
// Puts elements; `levels` has one of each, or is NULL: all are known.
vr_cu_result vr_sim_results_put(struct vr_sim *sim, uint64_t address, uint64_t elements, uint32_t element_bytes, const void *bytes,
                                const uint8_t *levels);
// The bytes are not known any more.
vr_cu_result vr_sim_results_forget(struct vr_sim *sim, uint64_t address, uint64_t size_bytes);

#endif
