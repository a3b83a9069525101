#include "host/host_background.h"
#include "host/host_fences.h"
#include "host/host_source.h"

// As PyTorch's thread; while nothing waits ours sleeps until there is something.
enum { PAUSE_NS = 100000 };

static void look(void *argument) {
    struct vram_host *host = argument;
    vr_host_lock(host);
    while (!host->ending) {
        const bool nothing = host->waiting == 0 || !host->options.pinned_use_background_threads;
        if (!nothing) {
            vr_host_unlock(host);
            // What fails here stays pending, and is told to whoever empties the cache.
            (void)vr_host_poll(host, VR_HOST_POLL_NOW);
            (void)vr_host_give_back(host);
            vr_host_lock(host);
        }
        if (!host->ending) vr_signal_wait(&host->work, &host->mutex, nothing ? UINT64_MAX : PAUSE_NS);
    }
    vr_host_unlock(host);
}

bool vr_host_background_serves(const struct vram_host *host) { return host->running && host->options.pinned_use_background_threads; }

void vr_host_background_wake(struct vram_host *host) {
    if (host->running) vr_signal_raise(&host->work);
}

void vr_host_background_start(struct vram_host *host) {
    vr_mutex_lock(&host->setup);
    vr_host_lock(host);
    const bool wanted = host->options.pinned_use_background_threads && !host->running;
    vr_host_unlock(host);
    const bool started = wanted && vr_thread_start(&host->thread, look, host) == VRAM_OK;
    vr_host_lock(host);
    if (started) host->running = true;
    vr_host_unlock(host);
    vr_mutex_unlock(&host->setup);
}

void vr_host_background_end(struct vram_host *host) {
    vr_host_lock(host);
    const bool running = host->running;
    host->ending = true;
    vr_signal_raise(&host->work);
    vr_host_unlock(host);
    if (running) vr_thread_join(&host->thread);
    host->running = false;
}
