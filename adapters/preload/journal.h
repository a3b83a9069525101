// journal.h: the recording of this process. Made at the first event; what is written is in the file at once. The session's lock
// orders everything here but pl_journal_stack().
#ifndef PL_JOURNAL_H
#define PL_JOURNAL_H

#include "config.h"
#include "preload.h"
#include "vram/accounts.h"
#include "vram/log.h"
#include "vram/oom.h"

// One event, which the journal gives its time and thread, and what stack, caller and kind are in the recording.
struct pl_entry {
    enum vram_log_action action;
    uint32_t device;
    uint64_t address;
    uint64_t size_bytes;
    uint64_t stream;
    uint64_t pool;
    int kind;           // enum pl_kind, or -1: no tag
    uint32_t stack;     // pl_journal_stack()
    const void *caller; // where the program called from
};

// The program's stack where it called the door; 0: none. Any thread, without the lock.
uint32_t pl_journal_take_stack(const struct pl_caller *caller);
static inline uint32_t pl_journal_stack(const struct pl_caller *caller) {
    return __builtin_expect(pl_config()->takes_stacks, 0) ? pl_journal_take_stack(caller) : 0;
}
// Makes what has hooks around fork() of its own. Called before ours are set: the last ones set take their locks first, and the session's
// lock is taken before those of the stacks.
void pl_journal_prepare(void);
// Writes the event down; an allocation given back is two of them, asked for and done. Failures end the recording, once and aloud. The time
// it has; 0 where nothing is written.
uint64_t pl_journal_write(const struct pl_entry *entry);
// Who else held the device at the event of that time, an out of memory. The newest VRAM_ACCOUNTS_SLOTS are kept.
void pl_journal_accounts(struct vram_accounts *accounts, uint64_t time_ns);
// What the device has in all, as the driver says; written once per device.
void pl_journal_total(uint32_t device, uint64_t total_bytes);
// Whether `vram attach` has asked for a pause: an allocation that is born now is not written down, which is counted. Beginning and end of
// a pause are marks in the recording.
bool pl_journal_paused(void);
// Copies the recording as it is beside itself.
void pl_journal_dump(void);
// In the child of a fork: the file is the parent's.
void pl_journal_abandon(void);
// The program ends.
void pl_journal_close(void);

#endif
