// sim_callbacks.h: host functions of streams, called in order on a thread of their own (option host_thread), which may not call the driver.
//
// What comes after one in its stream must find it done: bytes that would move before are moved by that thread, too, and streams and
// events know the number of the last entry that they come after. Entries are numbered from 1 and done in that order, so that a number says
// all. Without the option there are no entries, and every function is called at once, in the thread of the call.
#ifndef VR_SIM_STREAMS_SIM_CALLBACKS_H
#define VR_SIM_STREAMS_SIM_CALLBACKS_H

#include "sim/streams/sim_streams.h"

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

#endif
