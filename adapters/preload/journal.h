// journal.h: the recording of this process. It is created at the first event, and each event is in the file at once. Call everything here
// except pl_journal_stack() with the session's lock held.
#ifndef PL_JOURNAL_H
#define PL_JOURNAL_H

#include "config.h"
#include "preload.h"
#include "vram/accounts.h"
#include "vram/log.h"
#include "vram/oom.h"

// An event. The journal adds the time, the thread, and the recording's ids of stack, caller and kind.
struct pl_entry {
    enum vram_log_action action;
    uint32_t device;
    uint64_t address;
    uint64_t size_bytes;
    uint64_t stream;
    uint64_t pool;
    int kind;           // enum pl_kind; -1: no tag
    uint32_t stack;     // from pl_journal_stack()
    const void *caller; // address of the program's call
};

// Captures the program's stack at its call of the door; 0: none. Any thread may call it, without the lock.
uint32_t pl_journal_take_stack(const struct pl_caller *caller);
static inline uint32_t pl_journal_stack(const struct pl_caller *caller) {
    return __builtin_expect(pl_config()->takes_stacks, 0) ? pl_journal_take_stack(caller) : 0;
}
// Creates the parts that install their own fork() hooks. Call before ours are installed: hooks installed last run first, and the session's
// lock comes before the locks of the stacks.
void pl_journal_prepare(void);
// Records the event; an allocation's end becomes two events, requested and completed. A failure ends the recording and is reported once.
// Returns the event's time; 0 if nothing is recorded.
uint64_t pl_journal_write(const struct pl_entry *entry);
// Records which processes used the device at the out-of-memory error of that time. The newest VRAM_ACCOUNTS_SLOTS are kept.
void pl_journal_accounts(struct vram_accounts *accounts, uint64_t time_ns);
// Records the device's total memory, as the driver gives it, once per device.
void pl_journal_total(uint32_t device, uint64_t total_bytes);
// Returns whether `vram attach` has asked for a pause. New allocations are then counted instead of recorded. Records a mark at the start
// and the end of a pause.
bool pl_journal_paused(void);
// Copies the current recording to another file in its folder.
void pl_journal_dump(void);
// Call in the child of a fork, where the file is the parent's.
void pl_journal_abandon(void);
// Call at the program's end.
void pl_journal_close(void);

#endif
