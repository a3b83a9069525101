// rank_calls.h: the calls of NCCL by rank, which `vram fit` compares after the program's end: a call that another rank never answers would
// wait forever on a GPU, and so would ranks whose calls wait for each other.
//
// They are in one shared-memory file named by VRAM_SIM_CALLS, so those of a killed process remain: a row for each kind of call, with one
// writer and its last calls, and the first calls of all ranks in the order of their streams.
#ifndef VR_STANDINS_COMMON_RANK_CALLS_H
#define VR_STANDINS_COMMON_RANK_CALLS_H

#include <stdatomic.h>
#include <stdint.h>

#define VR_RANK_CALLS_MAGIC  UINT64_C(0x32736c6c61636b72) // "rkcalls2"
#define VR_RANK_CALLS_ROWS   16384                        // further rows are left out
#define VR_RANK_CALLS_LAST   16                           // calls that a row describes
#define VR_RANK_CALLS_PLACES 2048                         // further places are unknown
#define VR_RANK_CALLS_QUEUED 262144                       // further calls have no order

enum { VR_RANK_WAITS_FOR_ALL = -1, VR_RANK_WAITS_FOR_NONE = -2 };
enum vr_rank_calls_kind { VR_RANK_COLLECTIVES, VR_RANK_SENDS, VR_RANK_RECEIVES };

struct vr_rank_call {
    _Atomic uint64_t number; // from 1; written last
    uint64_t count;          // of elements
    int64_t time_us;         // since 1970
    uint32_t place;          // index + 1; 0: unknown
    uint32_t unused;
    char name[24], type[16]; // "ncclAllReduce", "float32"
};

// A rank's collectives in one communicator, or its messages to or from another rank.
struct vr_rank_calls_row {
    _Atomic uint32_t ready; // the members before `count` are written
    int32_t kind, rank, peer, process, rank_count;
    char communicator[40];
    _Atomic uint64_t count; // of calls
    struct vr_rank_call last[VR_RANK_CALLS_LAST];
};

// A call in the order of its stream.
struct vr_rank_queued {
    _Atomic uint32_t row; // index + 1; written last
    int32_t waits_for;    // the rank whose call has to begin before this one can end, VR_RANK_WAITS_FOR_ALL, or VR_RANK_WAITS_FOR_NONE
    uint64_t stream;      // of the process; 0: the call waits for no earlier one
    uint64_t group;       // of the process; calls of a group run at the same time
    struct vr_rank_call call;
};

// Innermost frames, one per line, as in reads.h.
struct vr_rank_calls_place {
    char text[1024];
};

struct vr_rank_calls_file {
    _Atomic uint64_t magic;
    _Atomic uint64_t used, places_used, queued_used; // may exceed the number of rows, places and queued calls
    struct vr_rank_calls_place places[VR_RANK_CALLS_PLACES];
    struct vr_rank_calls_row rows[VR_RANK_CALLS_ROWS];
    struct vr_rank_queued queued[VR_RANK_CALLS_QUEUED];
};

#endif
