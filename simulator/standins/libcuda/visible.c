// Devices that this process sees, and its memory use as other processes see it.
#include <pthread.h>
#include <stdlib.h>

#include "../common/session.h"
#include "libcuda.h"
#include "vram/sim.h"

// ---- CUDA_VISIBLE_DEVICES: numbers and prefixes of UUIDs, separated by commas. As in NVIDIA's driver, the first invalid entry ends the
// list, and a repeated device hides all.

// Returns the device that [text, text + length) names, or UINT32_MAX.
static uint32_t device_named(const char *text, size_t length, uint32_t count) {
    char uuid[41];
    if (length >= 4 && memcmp(text, "GPU-", 4) == 0 && length < sizeof uuid) {
        uint32_t found = UINT32_MAX;
        for (uint32_t i = 0; i < count; i++) {
            vr_sim_card_uuid_text(i, uuid);
            if (memcmp(uuid, text, length) != 0) continue;
            if (found != UINT32_MAX) return UINT32_MAX; // the prefix is ambiguous
            found = i;
        }
        return found;
    }
    uint32_t number = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || number > VRAM_SIM_MOST_DEVICES) return UINT32_MAX;
        number = number * 10 + (uint32_t)(text[i] - '0');
    }
    return length > 0 && number < count ? number : UINT32_MAX;
}

bool vr_libcuda_see(const char *text, struct vram_sim_options *options) {
    struct vram_sim_options complete = *options;
    if (text == NULL) return true;
    if (!vr_sim_options_complete(&complete)) return true; // the simulator refuses them
    uint64_t listed = 0;
    uint32_t count = 0;
    for (;;) {
        text += strspn(text, " \t");
        size_t length = strcspn(text, ",");
        const char *next = text[length] == ',' ? text + length + 1 : NULL;
        while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t')) length--;
        const uint32_t device = device_named(text, length, complete.device_count);
        if (device == UINT32_MAX) break;
        if ((listed >> device & 1) != 0) return false;
        listed |= (uint64_t)1 << device;
        options->visible[count++] = (uint8_t)device;
        if (next == NULL) break;
        text = next;
    }
    options->visible_count = count;
    return count > 0;
}

// ---- Memory use of this process, for the other processes of its `vram sim`, and theirs (common/session.h).

static struct vr_session_file *session;
static const struct vr_session_row *own;

// Sums up the use of other processes. `sure` skips ended ones, which costs a look into /proc for each row.
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

// In a forked child: stop publishing and ignore other processes, because the parent's row and memory are the child's too.
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
