// shape.h: events, blocks and frames whose keys are those of the one before, byte for byte. PyTorch writes every event of a history, most
// blocks of segments and every frame with the same keys in the same order, as references into the memo; once that is known, they are read
// straight into a row. What deviates in any way is left to the general machine, which nothing was changed for.
#ifndef VR_SNAPSHOT_SHAPE_H
#define VR_SNAPSHOT_SHAPE_H

#include "snapshot/echo.h"
#include "snapshot/schema.h"

enum { VR_SHAPE_FIELDS = 12 };

// The keys in their order: the bytes of the opcode that gets each from the memo, and what the key means. Valid as long as no memo slot
// changes its value.
struct vr_shape {
    enum vr_tag kind; // VR_TAG_EVENT, VR_TAG_BLOCK or VR_TAG_FRAME
    struct {
        uint64_t key; // as loaded, the bytes beyond its length masked away
        uint64_t mask;
        uint8_t length;
        struct vr_field field;
    } fields[VR_SHAPE_FIELDS];
    size_t count;  // 0: nothing is known yet
    size_t misses; // dictionaries that a known shape did not read
    uint64_t generation;
};

// Forgets the shape when the memo's generation is another than before.
void vr_shape_renew(struct vr_shape *shape, uint64_t generation);
// Learns from the event, block or frame whose keys and values are the opcodes from `begin` up to `end`, its SETITEMS included. Nothing is
// learned from one that holds other opcodes than usual.
void vr_shape_learn(struct vr_shape *shape, const struct vr_machine *machine, const unsigned char *begin, const unsigned char *end);
// Whether what begins at `next` may be of the shape: its first key is. False where nothing is known.
VR_INLINE bool vr_shape_begins(const struct vr_shape *shape, const unsigned char *next, const unsigned char *end) {
    uint64_t word;
    if (shape->count == 0 || end - next < (ptrdiff_t)sizeof word) return false;
    memcpy(&word, next, sizeof word);
    return (word & shape->fields[0].mask) == shape->fields[0].key;
}
// Reads the event, block or frame whose first key is at `next`; bytes up to `end` are at hand. Puts its row in *container and returns what
// follows its SETITEMS, or returns NULL and has changed nothing. The shape must have been learned (count not 0): most small files ask in
// vain.
const unsigned char *vr_shape_read(const struct vr_shape *shape, struct vr_echo *echo, struct vr_machine *machine,
                                   const unsigned char *next, const unsigned char *end, uint64_t *container);

#endif
