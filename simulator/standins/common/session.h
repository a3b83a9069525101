// session.h: memory use of all processes of one `vram sim` on the simulated devices, for NVML, which reports devices, not processes.
//
// The data is a shared-memory file that `vram sim` creates and names in VRAM_SIM_SESSION, with one row per process that started the
// simulated driver. A process writes only its own row, without a lock. The row of a process that has ended in any way counts as empty and
// may be reused.
#ifndef VR_STANDINS_COMMON_SESSION_H
#define VR_STANDINS_COMMON_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VR_SESSION_MAGIC     UINT64_C(0x316e6f6973736573) // "session1"
#define VR_SESSION_PROCESSES 256                          // further processes are not seen
#define VR_SESSION_DEVICES   64

struct vr_session_row {
    _Atomic int64_t process; // process id; 0: free
    _Atomic uint64_t birth;  // start time in kernel ticks, to detect a reused id; 0: not yet written
    _Atomic uint64_t used_bytes[VR_SESSION_DEVICES];
};

struct vr_session_file {
    _Atomic uint64_t magic;
    _Atomic uint64_t joined; // rows from this index on were never taken
    struct vr_session_row rows[VR_SESSION_PROCESSES];
};

// Returns the file of this process's session, mapped until the process ends, or NULL. Any thread.
struct vr_session_file *vr_session(void);
// Takes a row for this process, zero except for its identity. Returns NULL if no row is free.
struct vr_session_row *vr_session_join(struct vr_session_file *session);
// Returns whether the row belongs to a living process.
bool vr_session_is_live(const struct vr_session_row *row);

#endif
