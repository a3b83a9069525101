// check_board.h: what each process leaves for the others about memory that they share: its uses, its waits, and its shared events.
//
// The board is memory that all processes map, zero at first. A process writes only its own row; each process may raise what the hosts know.
// Nothing blocks: an entry that is being written, or was left half written, is skipped. The content may be anything, because a program can
// overwrite it: readers check what they get, and a wrong entry can only cause or hide a finding.
#ifndef VR_CHECK_CHECK_BOARD_H
#define VR_CHECK_CHECK_BOARD_H

#include "check/check.h"

// Limits of the board. Uses and events beyond them are not compared, which can only lose a finding.
#define VR_CHECK_BOARD_PROCESSES 64
#define VR_CHECK_BOARD_LANES     128 // of a process
#define VR_CHECK_BOARD_USES      512 // of a process, that its host has not waited for
#define VR_CHECK_BOARD_FREES     256 // of a process
#define VR_CHECK_BOARD_EVENTS    128 // of a process; a new one takes the place of the oldest

enum vr_check_shared_kind { VR_CHECK_SHARED_READS, VR_CHECK_SHARED_WRITES, VR_CHECK_SHARED_FREES };

// A use of shared memory, or its free by its owner.
struct vr_check_board_use {
    uint64_t key;       // of the memory, the same in all processes
    uint64_t from, end; // bytes of the memory
    uint64_t tick;
    uint32_t lane;
    uint32_t number; // of the use in its process
    enum vr_check_shared_kind kind;
};

// Takes a row for a process. Returns its index, or VR_CHECK_BOARD_PROCESSES if all are taken.
uint32_t vr_check_board_join(struct vr_check_board *board, uint64_t process);
// Returns the number of rows that were taken.
uint32_t vr_check_board_rows(const struct vr_check_board *board);
// Returns the process of a row, or 0 if its uses cannot be compared: it has withdrawn, or the row is empty.
uint64_t vr_check_board_process(const struct vr_check_board *board, uint32_t row);
// From now on nothing of the row can be compared.
void vr_check_board_withdraw(struct vr_check_board *board, uint32_t row);

// Adds a use to the own row. It replaces a use that the host has waited for, or that the new one covers, or else the oldest.
void vr_check_board_add(struct vr_check_board *board, uint32_t row, const struct vr_check_board_use *use);
// Gets the uses of a row one by one. *at begins with 0. Returns false after the last one.
bool vr_check_board_next(const struct vr_check_board *board, uint32_t row, uint32_t *at, struct vr_check_board_use *use);

// A host has waited for a lane's work up to a tick. The hosts of all processes count as one, like the threads of one process.
void vr_check_board_raise(struct vr_check_board *board, uint32_t row, uint32_t lane, uint64_t tick);
bool vr_check_board_is_past(const struct vr_check_board *board, uint32_t row, uint32_t lane, uint64_t tick);

// Leaves the ticks of a shared event's record; `count` 0: it was not recorded yet.
void vr_check_board_record(struct vr_check_board *board, uint32_t row, uint64_t key, const uint64_t *ticks, size_t count);
// Finds the last record of an event by any process. Returns its row and gets its ticks; VR_CHECK_BOARD_PROCESSES if it is not there.
uint32_t vr_check_board_find(const struct vr_check_board *board, uint64_t key, uint64_t ticks[VR_CHECK_BOARD_LANES]);

#endif
