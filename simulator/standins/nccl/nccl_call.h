// nccl_call.h: a collective or a message on its way.
#ifndef VR_STANDINS_NCCL_NCCL_CALL_H
#define VR_STANDINS_NCCL_NCCL_CALL_H

#include "nccl.h"

struct nccl_call {
    struct nccl_comm *comm;
    enum nccl_kind kind;
    const void *from;
    void *to;
    uint64_t count;
    int type, operator, root; // root: of a message the other rank
    uint64_t stream;
    // What nccl_call_begin() leaves to nccl_call_finish():
    uint64_t number; // of the call, or of the message between the two, from 1
    bool moves;
    enum { PENDING, BEGUN, DONE } state; // of a group's call
};

struct nccl_kind_facts {
    const char *name;
    bool has_operator, has_root;
};
extern const struct nccl_kind_facts nccl_kinds[NCCL_KINDS];

static inline bool nccl_is_message(const struct nccl_call *call) { return call->kind == NCCL_SEND || call->kind == NCCL_RECEIVE; }

// --- nccl_values.c: elements with how far each is known ---

// Reads what the call gives into a slot: elements, and their levels behind NCCL_SMALL_BYTES. False where the driver refuses.
bool nccl_read_values(const struct nccl_call *call, unsigned char *slot, uint64_t bytes);
// Writes elements of a slot, or of one's own memory. The levels are another rank's: what is no level counts as unknown.
bool nccl_write_values(const struct nccl_call *call, void *to, const void *bytes, const uint8_t *levels);
static inline const uint8_t *nccl_levels(const unsigned char *slot) { return slot + NCCL_SMALL_BYTES; }
// An element that is made of two is as well known as the less known one.
void nccl_reduce_levels(uint8_t *into, const uint8_t *from, uint64_t count);

// --- nccl_collective.c ---

// Posts the call and launches it; of a communicator that is not broken. What began must be finished.
int nccl_call_begin(struct nccl_call *call);
// Waits for what the others give, and moves it.
int nccl_call_finish(struct nccl_call *call);

#endif
