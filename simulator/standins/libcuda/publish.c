// publish.c: what this process has on the devices, for the other processes of its `vram sim`, and what they have (common/session.h).
#include <pthread.h>

#include "../common/session.h"
#include "libcuda.h"

static struct vr_session_file *session;
static const struct vr_session_row *own;

// A row of a process that is gone costs a look into /proc to be found out, so that is done where it matters only.
static uint64_t used_by_others(uint32_t ordinal, bool sure) {
    const uint64_t joined = atomic_load_explicit(&session->joined, memory_order_acquire);
    uint64_t used = 0;
    for (uint64_t i = 0; i < joined && i < VR_SESSION_PROCESSES; i++) {
        const struct vr_session_row *row = &session->rows[i];
        const uint64_t bytes = row == own ? 0 : atomic_load_explicit(&row->used_bytes[ordinal], memory_order_relaxed);
        if (bytes != 0 && (!sure || vr_session_is_live(row)) && !vr_add_u64(used, bytes, &used)) return UINT64_MAX;
    }
    return used;
}

// A child that was forked has its parent's row and its parent's memory in its own: it says nothing, and is alone with what it has.
static void forget_others(void) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim == NULL) return;
    sim->published = NULL;
    for (uint32_t i = 0; i < sim->options.device_count; i++) sim->devices[i].others = NULL;
}

void vr_libcuda_publish(struct vr_sim *sim) {
    session = vr_session();
    struct vr_session_row *row = vr_session_join(session);
    if (row == NULL) return;
    own = row;
    (void)pthread_atfork(NULL, NULL, forget_others);
    vr_mutex_lock(&sim->lock);
    sim->published = row->used_bytes;
    for (uint32_t i = 0; i < sim->options.device_count; i++) sim->devices[i].others = used_by_others;
    vr_sim_publish(sim);
    vr_mutex_unlock(&sim->lock);
}
