// schema.h: what PyTorch's dictionaries mean: which keys make an event, a frame, a segment, a block, and where each value goes.
#ifndef VR_SNAPSHOT_SCHEMA_H
#define VR_SNAPSHOT_SCHEMA_H

#include "snapshot/pickle_vm.h"
#include "snapshot/row_tables.h"

// What a dictionary of these keys is: FRAME, EVENT, SEGMENT, BLOCK, TENANT, ANNOTATION, or DICT where the keys do not tell.
enum vr_tag vr_schema_classify(const uint64_t *pairs, size_t count);
// Stores a dictionary as a row of the table of `kind` (or as a frame) and puts what stands for it in *value. Keys that mean nothing
// there are skipped, of repeated keys the last one counts. BAD_INPUT for a value of the wrong type, LIMIT, NO_HOST_MEMORY.
enum vram_status vr_schema_store(struct vr_machine *machine, enum vr_tag kind, const uint64_t *pairs, size_t count, uint64_t *value);
// Sets further keys of what was stored. BAD_INPUT for a frame, which may have been used already.
enum vram_status vr_schema_amend(struct vr_machine *machine, uint64_t value, const uint64_t *pairs, size_t count);

// For readers that recognise an event or a block before it is made a dictionary (vr_row_fields): the action or state `word` into its slots.
void vr_schema_put_action(uint64_t word, uint64_t *slots);
void vr_schema_put_state(uint64_t word, uint64_t *slots);

// Makes the dictionary behind *value a row or frame of `kind` (as its keys say, for DICT), where *value is the dictionary or a
// reference to it. Does nothing when it is no dictionary, or when the keys do not tell.
enum vram_status vr_schema_recognise(struct vr_machine *machine, enum vr_tag kind, uint64_t *value);

// ---- Data that is no recording but has one inside, or a part of one: what to do about it, in the refusal.

// A dictionary without `segments` and `device_traces` / a list, in place of a recording. BAD_INPUT with a line; OK where it is none of
// these.
enum vram_status vr_misplaced_dict(struct vr_machine *machine, const uint64_t *pairs, size_t count);
enum vram_status vr_misplaced_list(struct vr_machine *machine, const uint64_t *items, size_t count);

#endif
