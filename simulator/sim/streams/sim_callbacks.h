// sim_callbacks.h: host functions in streams, and kernel results that are computed on the host.
#ifndef VR_SIM_STREAMS_SIM_CALLBACKS_H
#define VR_SIM_STREAMS_SIM_CALLBACKS_H

#include "sim/streams/sim_streams.h"

// ---- Host functions of streams. With the option host_thread, a separate thread calls them in order; they must not call the driver. Later
// work in the stream must find them done. Copies and sets that follow a function that has not run are therefore also left to that thread,
// and streams and events store the number of the last entry they come after. Entries are numbered from 1 and run in that order, so one
// number is enough. Without the option there are no entries, and every function is called at once in the thread of the call.

// An entry: work of a stream, or a function of cuStreamAddCallback.
struct vr_sim_callback {
    struct vr_sim_work work;
    vr_cu_stream_callback *stream_function; // NULL: do `work`
    uint64_t stream;
    struct vr_sim_reader reader; // of the call that posted the entry
};

// Reserves room for `more` entries. OUT_OF_MEMORY.
vr_cu_result vr_sim_callbacks_reserve(struct vr_sim *sim, size_t more);
// Does work of a stream or posts it to the thread, for which room was reserved. A posted host function is due at once: the clock has moved
// to the end of the work before it. OUT_OF_MEMORY from vr_sim_work_do().
vr_cu_result vr_sim_work_run(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_callback *callback);
// Calls a host function that belongs to no stream.
void vr_sim_callback_call(struct vr_sim *sim, vr_cu_host_function *function, void *argument);
VR_INLINE bool vr_sim_callback_done(const struct vr_sim *sim, uint64_t number) { return number <= sim->callbacks.done; }
// Waits in real time until an entry is done. Releases the lock meanwhile, so borrowed pointers become invalid. `grace` waits at most 20 ms:
// queries use it so that short functions give the same answers in every run.
void vr_sim_callback_wait(struct vr_sim *sim, uint64_t number);
void vr_sim_callback_grace(struct vr_sim *sim, uint64_t number);
// Returns whether the calling thread is the one that runs host functions and must not call the driver.
VR_INLINE bool vr_sim_is_callback_thread(const struct vr_sim *sim) {
    return VR_UNLIKELY(sim->callbacks.running) && vr_os_thread_id() == sim->callbacks.thread_id;
}
// Waits for all entries and ends the thread. Called without the lock.
void vr_sim_callbacks_end(struct vr_sim *sim);

// ---- Results of counting kernels. An operation computed on the host knows in advance how many elements its kernel counts. It stores the
// numbers, and the next copies of a single number to the host by its thread return them in order.

// Returns the calling thread's results, or NULL if the host is out of memory. Only that thread accesses them. Borrowed until the next
// thread calls.
struct vr_sim_results *vr_sim_results_here(struct vr_sim *sim);

// Sets the results of the calling thread's next copies of one number. At most VR_SIM_ANSWERS_MOST are kept.
void vr_sim_answers_say(struct vr_sim *sim, const int64_t *numbers, unsigned count, enum vr_sim_level level);

// Protects a range from the thread's kernels; at most VR_SIM_SHIELDS_MOST ranges are kept. cut: drops all but the first `count` ranges.
void vr_sim_shields_add(struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
void vr_sim_shields_cut(struct vr_sim *sim, uint32_t count);
bool vr_sim_is_shielded(struct vr_sim *sim, uint64_t address);
// Returns whether the calling thread is inside an operation that is computed on the host. A thread is inside one while it has shields.
bool vr_sim_computes(struct vr_sim *sim);

// Notes an output of a captured kernel that is not computed. Recorded only after the first vr_sim_captured_take(). Dropped if the host is
// out of memory.
void vr_sim_captured_note(struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
// Removes the oldest notes, at most `most`, and returns their number. Size UINT64_MAX: unknown. most == 0 drops all.
size_t vr_sim_captured_take(struct vr_sim *sim, uint64_t *addresses, uint64_t *sizes, size_t most);

// ---- Results of kernels that the program's process computed on the host (adapters/fit/vram_values.py): elements in device memory with a
// level each, read before an operation and written after it.

#define VR_SIM_UNTOUCHED VR_SIM_LEVELS // as an element's level: not a result, leave it unchanged

// Checks that results can be stored after the work of a stream, and waits for the stream's host functions, releasing the lock meanwhile.
// INVALID_CONTEXT if the device is not in use; NOT_SUPPORTED if contents are not kept; STREAM_CAPTURE_UNSUPPORTED if the stream captures.
vr_cu_result vr_sim_results_after(struct vr_sim *sim, uint32_t device, uint64_t stream);
// Reads elements at an address and a level for each. INVALID_VALUE if no device can access the range, NOT_SUPPORTED if contents are not
// kept.
vr_cu_result vr_sim_results_look(struct vr_sim *sim, uint64_t address, uint64_t elements, uint32_t element_bytes, void *bytes,
                                 uint8_t *levels);
// Writes elements. `levels` has one level per element, or is NULL if all are known.
vr_cu_result vr_sim_results_put(struct vr_sim *sim, uint64_t address, uint64_t elements, uint32_t element_bytes, const void *bytes,
                                const uint8_t *levels);
// Marks the bytes as unknown.
vr_cu_result vr_sim_results_forget(struct vr_sim *sim, uint64_t address, uint64_t size_bytes);

#endif
