// session.h: what the processes of one `vram sim` have on the simulated devices, for whoever asks about a device rather than a process:
// NVML.
//
// A file in shared memory, which `vram sim` makes and names in the variable VRAM_SIM_SESSION, with a row per process that has started the
// simulated driver. A process writes to its own row only, without a lock. The row of a process that is gone, however it went, counts for
// nothing and is taken by the next.
#ifndef VR_STANDINS_COMMON_SESSION_H
#define VR_STANDINS_COMMON_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VR_SESSION_MAGIC     UINT64_C(0x316e6f6973736573) // "session1"
#define VR_SESSION_PROCESSES 256                          // those beyond are not seen
#define VR_SESSION_DEVICES   64

struct vr_session_row {
    _Atomic int64_t process; // its id; 0: free
    _Atomic uint64_t birth;  // when it started, in the kernel's ticks, so that an id used again is found out; 0: not written yet
    _Atomic uint64_t used_bytes[VR_SESSION_DEVICES];
};

struct vr_session_file {
    _Atomic uint64_t magic;
    _Atomic uint64_t joined; // no row from here on was ever taken
    struct vr_session_row rows[VR_SESSION_PROCESSES];
};

// The file of this process's session, mapped until the process ends; NULL when there is none. Any thread.
struct vr_session_file *vr_session(void);
// A row for this process, all zero but for who it is; NULL when there is none left.
struct vr_session_row *vr_session_join(struct vr_session_file *session);
// Is a row that of a living process?
bool vr_session_is_live(const struct vr_session_row *row);

#endif
