// The board as memory: rows of processes, and entries that are read while their owner may write them.
#include "check/check_board.h"

#include <stdatomic.h>

enum { USE_WORDS = 6, EVENT_WORDS = 2 + VR_CHECK_BOARD_LANES, SLOTS = VR_CHECK_BOARD_USES + VR_CHECK_BOARD_FREES };

// The version of an entry is odd while the entry is written; 0: it was never written.
struct use_entry {
    _Atomic uint64_t version, words[USE_WORDS]; // key, from, end, tick, lane and number, kind
};

struct event_entry {
    _Atomic uint64_t version, words[EVENT_WORDS]; // key, serial, ticks
};

struct row {
    _Atomic uint64_t process; // 0: empty
    _Atomic uint64_t withdrawn;
    _Atomic uint64_t last_use, last_free, last_event; // entries written so far
    _Atomic uint64_t known[VR_CHECK_BOARD_LANES];     // last tick of each lane that a host has waited for
    struct use_entry uses[SLOTS];                     // the frees follow the uses
    struct event_entry events[VR_CHECK_BOARD_EVENTS];
};

struct vr_check_board {
    _Atomic uint64_t joined; // rows taken
    _Atomic uint64_t serial; // of the last record of an event
    struct row rows[VR_CHECK_BOARD_PROCESSES];
};

size_t vr_check_board_bytes(void) { return sizeof(struct vr_check_board); }

static uint64_t get(const _Atomic uint64_t *word) { return atomic_load_explicit(word, memory_order_relaxed); }

// ---- Entries.

static void write_entry(_Atomic uint64_t *version, _Atomic uint64_t *to, const uint64_t *words, size_t count) {
    const uint64_t before = get(version) & ~(uint64_t)1;
    atomic_store_explicit(version, before + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (size_t i = 0; i < count; i++) atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
    atomic_store_explicit(version, before + 2, memory_order_release);
}

// Returns false if the entry is empty, or being written.
static bool read_entry(const _Atomic uint64_t *version, const _Atomic uint64_t *from, uint64_t *words, size_t count) {
    const uint64_t before = atomic_load_explicit(version, memory_order_acquire);
    if (before == 0 || (before & 1) != 0) return false;
    for (size_t i = 0; i < count; i++) words[i] = get(&from[i]);
    atomic_thread_fence(memory_order_acquire);
    return get(version) == before;
}

// ---- Rows.

uint32_t vr_check_board_join(struct vr_check_board *board, uint64_t process) {
    const uint64_t row = atomic_fetch_add(&board->joined, 1);
    if (row >= VR_CHECK_BOARD_PROCESSES) return VR_CHECK_BOARD_PROCESSES;
    atomic_store(&board->rows[row].process, process);
    return (uint32_t)row;
}

uint32_t vr_check_board_rows(const struct vr_check_board *board) {
    const uint64_t joined = atomic_load(&board->joined);
    return joined < VR_CHECK_BOARD_PROCESSES ? (uint32_t)joined : VR_CHECK_BOARD_PROCESSES;
}

uint64_t vr_check_board_process(const struct vr_check_board *board, uint32_t row) {
    return atomic_load(&board->rows[row].withdrawn) != 0 ? 0 : atomic_load(&board->rows[row].process);
}

void vr_check_board_withdraw(struct vr_check_board *board, uint32_t row) { atomic_store(&board->rows[row].withdrawn, 1); }

// ---- What the hosts know.

void vr_check_board_raise(struct vr_check_board *board, uint32_t row, uint32_t lane, uint64_t tick) {
    _Atomic uint64_t *known = &board->rows[row].known[lane];
    uint64_t before = get(known);
    while (before < tick && !atomic_compare_exchange_weak(known, &before, tick)) continue;
}

bool vr_check_board_is_past(const struct vr_check_board *board, uint32_t row, uint32_t lane, uint64_t tick) {
    return atomic_load(&board->rows[row].known[lane]) >= tick;
}

// ---- Uses.

static bool read_use(const struct use_entry *entry, struct vr_check_board_use *use) {
    uint64_t words[USE_WORDS];
    if (!read_entry(&entry->version, entry->words, words, USE_WORDS)) return false;
    *use = (struct vr_check_board_use){.key = words[0],
                                       .from = words[1],
                                       .end = words[2],
                                       .tick = words[3],
                                       .lane = (uint32_t)(words[4] >> 32),
                                       .number = (uint32_t)words[4]};
    if (use->key == 0 || use->from >= use->end || use->lane >= VR_CHECK_BOARD_LANES || words[5] > VR_CHECK_SHARED_FREES) return false;
    use->kind = (enum vr_check_shared_kind)words[5];
    return true;
}

// Returns whether every conflict with the old use also shows with the new one, which comes after it on its lane.
static bool is_covered(const struct vr_check_board_use *old, const struct vr_check_board_use *use) {
    return old->key == use->key && old->lane == use->lane && old->from >= use->from && old->end <= use->end &&
           (use->kind == old->kind || use->kind == VR_CHECK_SHARED_WRITES);
}

static uint64_t used_slots(const struct row *row) {
    const uint64_t last = get(&row->last_use);
    return last < VR_CHECK_BOARD_USES ? last : VR_CHECK_BOARD_USES;
}

static uint64_t slot_for(struct vr_check_board *board, uint32_t index, const struct vr_check_board_use *use) {
    struct row *row = &board->rows[index];
    const uint64_t count = used_slots(row);
    for (uint64_t i = 0; i < count; i++) {
        struct vr_check_board_use old;
        if (!read_use(&row->uses[i], &old) || is_covered(&old, use) || vr_check_board_is_past(board, index, old.lane, old.tick)) return i;
    }
    return atomic_fetch_add(&row->last_use, 1) % VR_CHECK_BOARD_USES;
}

void vr_check_board_add(struct vr_check_board *board, uint32_t index, const struct vr_check_board_use *use) {
    struct row *row = &board->rows[index];
    const bool freed = use->kind == VR_CHECK_SHARED_FREES;
    const uint64_t slot =
        freed ? VR_CHECK_BOARD_USES + atomic_fetch_add(&row->last_free, 1) % VR_CHECK_BOARD_FREES : slot_for(board, index, use);
    const uint64_t words[USE_WORDS] = {use->key, use->from, use->end, use->tick, (uint64_t)use->lane << 32 | use->number, use->kind};
    write_entry(&row->uses[slot].version, row->uses[slot].words, words, USE_WORDS);
}

// Slots that were never written end the uses, and the frees.
bool vr_check_board_next(const struct vr_check_board *board, uint32_t index, uint32_t *at, struct vr_check_board_use *use) {
    const struct row *row = &board->rows[index];
    while (*at < SLOTS) {
        const struct use_entry *entry = &row->uses[(*at)++];
        const bool is_free = *at > VR_CHECK_BOARD_USES;
        if (get(&entry->version) == 0) *at = is_free ? SLOTS : VR_CHECK_BOARD_USES;
        if (read_use(entry, use) && (use->kind == VR_CHECK_SHARED_FREES) == is_free) return true;
    }
    return false;
}

// ---- Events.

void vr_check_board_record(struct vr_check_board *board, uint32_t index, uint64_t key, const uint64_t *ticks, size_t count) {
    struct row *row = &board->rows[index];
    uint64_t words[EVENT_WORDS] = {key, atomic_fetch_add(&board->serial, 1) + 1};
    uint64_t slot = 0, read[1];
    for (size_t i = 0; i < count && i < VR_CHECK_BOARD_LANES; i++) words[2 + i] = ticks[i];
    while (slot < VR_CHECK_BOARD_EVENTS && !(read_entry(&row->events[slot].version, row->events[slot].words, read, 1) && read[0] == key))
        slot++;
    if (slot == VR_CHECK_BOARD_EVENTS) slot = atomic_fetch_add(&row->last_event, 1) % VR_CHECK_BOARD_EVENTS;
    write_entry(&row->events[slot].version, row->events[slot].words, words, EVENT_WORDS);
}

uint32_t vr_check_board_find(const struct vr_check_board *board, uint64_t key, uint64_t ticks[VR_CHECK_BOARD_LANES]) {
    const uint32_t rows = vr_check_board_rows(board);
    uint32_t found = VR_CHECK_BOARD_PROCESSES;
    uint64_t words[EVENT_WORDS], serial = 0;
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < VR_CHECK_BOARD_EVENTS; j++) {
            const struct event_entry *entry = &board->rows[i].events[j];
            if (get(&entry->words[0]) != key || !read_entry(&entry->version, entry->words, words, EVENT_WORDS)) continue;
            if (words[0] != key || words[1] <= serial) continue;
            serial = words[1];
            memcpy(ticks, words + 2, VR_CHECK_BOARD_LANES * sizeof *ticks);
            found = i;
        }
    return found;
}
