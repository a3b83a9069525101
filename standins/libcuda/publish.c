// publish.c: what this process has on the devices, for the other processes of its `vram sim` (common/session.h).
#include <pthread.h>

#include "../common/session.h"
#include "libcuda.h"

// A child that was forked has its parent's row in its memory: it says nothing there.
static void forget_row(void) {
    struct vr_sim *sim = vr_libcuda_sim();
    if (sim != NULL) sim->published = NULL;
}

void vr_libcuda_publish(struct vr_sim *sim) {
    struct vr_session_row *row = vr_session_join(vr_session());
    if (row == NULL) return;
    (void)pthread_atfork(NULL, NULL, forget_row);
    vr_mutex_lock(&sim->lock);
    sim->published = row->used_bytes;
    vr_sim_publish(sim);
    vr_mutex_unlock(&sim->lock);
}
