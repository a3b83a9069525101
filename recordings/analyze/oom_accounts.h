// accounts.h: who held what lies outside of what was recorded, at an out-of-memory event.
#ifndef VR_ANALYZE_OOM_ACCOUNTS_H
#define VR_ANALYZE_OOM_ACCOUNTS_H

#include "analyze/arena.h"
#include "analyze/device_view.h"
#include "vram/report.h"

// What the recorded program held of the device. Where segments are not recorded, what is allocated is what is held.
VR_INLINE uint64_t vr_oom_held(const struct vram_report_oom *oom, bool driver_level) {
    return driver_level ? oom->allocated_bytes + oom->pending_bytes + oom->driver_pool_bytes : oom->reserved_bytes;
}

// The accounts that the recording has for this event of the view's device (formats/recording.md, `vram_accounts_<slot>`), shared out
// over oom->outside_bytes. *accounts is NULL where it has none. is_last: it is the last such event of the device. NO_HOST_MEMORY.
enum vram_status vr_accounts_find(const struct vr_view *view, const struct vram_report_oom *oom, bool is_last, bool driver_level,
                                  struct vr_arena *arena, const struct vram_report_accounts **accounts);

// Whether a setting of this key is none of an allocator, but what vram wrote down of a process and its device: that is shown where it
// belongs.
bool vr_is_fact(const char *key);

#endif
