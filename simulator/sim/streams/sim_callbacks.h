// sim_callbacks.h: functions of the host in streams, and results that the host computes.
#ifndef VR_SIM_STREAMS_SIM_CALLBACKS_H
#define VR_SIM_STREAMS_SIM_CALLBACKS_H

#include "sim/streams/sim_streams.h"

// ---- Host functions of streams, called in order on a thread of their own (option host_thread), which may not call the driver.
// What comes after one in its stream must find it done: bytes that would move before are moved by that thread, too, and streams and events
// know the number of the last entry that they come after. Entries are numbered from 1 and done in that order, so that a number says all.
// Without the option there are no entries, and every function is called at once, in the thread of the call.

// Work of a stream, or the function of cuStreamAddCallback.
struct vr_sim_callback {
    struct vr_sim_work work;
    vr_cu_stream_callback *stream_function; // NULL: the work
    uint64_t stream;
    struct vr_sim_reader reader; // the call's that left it to the thread
};

// Room for that many entries more. OUT_OF_MEMORY.
vr_cu_result vr_sim_callbacks_reserve(struct vr_sim *sim, size_t more);
// Does work of a stream, or leaves it to the thread; there is room for it. A host function's turn has come when this returns: the clock
// stands at the end of what is before it. OUT_OF_MEMORY as vr_sim_work_do() says it.
vr_cu_result vr_sim_work_run(struct vr_sim *sim, struct vr_sim_stream *stream, const struct vr_sim_callback *callback);
// A function of no stream.
void vr_sim_callback_call(struct vr_sim *sim, vr_cu_host_function *function, void *argument);
VR_INLINE bool vr_sim_callback_done(const struct vr_sim *sim, uint64_t number) { return number <= sim->callbacks.done; }
// Waits for real until an entry is done; the lock is given up meanwhile, so that nothing borrowed stays valid. `grace`: only a little
// while, for questions: short functions then give the same answers in every run.
void vr_sim_callback_wait(struct vr_sim *sim, uint64_t number);
void vr_sim_callback_grace(struct vr_sim *sim, uint64_t number);
// Is the calling thread one that may not call the driver?
VR_INLINE bool vr_sim_is_callback_thread(const struct vr_sim *sim) {
    return VR_UNLIKELY(sim->callbacks.running) && vr_os_thread_id() == sim->callbacks.thread_id;
}
// Waits for all and ends the thread. Called without the lock.
void vr_sim_callbacks_end(struct vr_sim *sim);

// ---- An operation that is computed on the host knows beforehand how many elements its kernel will have counted. It says so, and the
// copies to the host of one number, made by its thread, give the numbers one after the other.

// The calling thread's; NULL without the host's memory for it. Only that thread reads and writes it. Borrowed until the next thread calls.
struct vr_sim_results *vr_sim_results_here(struct vr_sim *sim);

// The next copies of one number by the calling thread give these; at most VR_SIM_ANSWERS_MOST are kept.
void vr_sim_answers_say(struct vr_sim *sim, const int64_t *numbers, unsigned count, enum vr_sim_level level);

// From now on the thread's kernels leave a range as it is; VR_SIM_SHIELDS_MOST at most are kept. cut: the last ones go, so many stay.
void vr_sim_shields_add(struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
void vr_sim_shields_cut(struct vr_sim *sim, uint32_t count);
bool vr_sim_is_shielded(struct vr_sim *sim, uint64_t address);
// Whether the calling thread is in an operation whose results are computed: it has shields.
bool vr_sim_computes(struct vr_sim *sim);

// What kernels that are captured, and not computed, will write: noted from the first question on. Without the host's memory it is lost.
void vr_sim_captured_note(struct vr_sim *sim, uint64_t address, uint64_t size_bytes);
// Takes the oldest ones, at most so many: how many there are. A size of UINT64_MAX: not known. `most` 0: all are dropped.
size_t vr_sim_captured_take(struct vr_sim *sim, uint64_t *addresses, uint64_t *sizes, size_t most);

// ---- Results of kernels that the program's process computed on the host (adapters/fit/vram_values.py): elements in device memory with a
// level each, which are looked at before an operation and put behind it.

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
