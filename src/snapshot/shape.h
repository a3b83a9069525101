// shape.h: events whose keys are those of the event before, byte for byte. PyTorch writes every event of a history with the same keys in
// the same order, as references into the memo; once that is known, an event is read straight into a row. What deviates in any way is left
// to the general machine, which nothing was changed for.
#ifndef VR_SNAPSHOT_SHAPE_H
#define VR_SNAPSHOT_SHAPE_H

#include "snapshot/echo.h"
#include "snapshot/schema.h"

enum { VR_SHAPE_FIELDS = 12 };

// The keys in their order: the bytes of the opcode that gets each from the memo, and what the key means. Valid as long as no memo slot
// changes its value.
struct vr_shape {
    struct {
        uint64_t key; // as loaded, the bytes beyond its length masked away
        uint64_t mask;
        uint8_t length;
        struct vr_field field;
    } fields[VR_SHAPE_FIELDS];
    size_t count; // 0: nothing is known yet
    uint64_t generation;
};

// Forgets the shape when the memo's generation is another than before.
void vr_shape_renew(struct vr_shape *shape, uint64_t generation);
// Learns from the event whose keys and values are the opcodes from `begin` up to `end`, its SETITEMS included. Nothing is learned from an
// event that holds other opcodes than usual.
void vr_shape_learn(struct vr_shape *shape, const struct vr_machine *machine, const unsigned char *begin, const unsigned char *end);
// Reads the event whose first key is at `next`; bytes up to `end` are at hand. Puts its row in *container and returns what follows its
// SETITEMS, or returns NULL and has changed nothing. The shape must have been learned (count not 0): most small files ask in vain.
const unsigned char *vr_shape_read(const struct vr_shape *shape, struct vr_echo *echo, struct vr_machine *machine,
                                   const unsigned char *next, const unsigned char *end, uint64_t *container);

#endif
