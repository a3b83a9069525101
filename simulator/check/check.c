// The checker as an object: the names that it knows, and its findings, each reported once.
#include <stdlib.h>

#include "check/check_state.h"

static const char *const keys[] = {
#define X(name, key) key,
    VR_CHECK_KINDS(X)
#undef X
};

const char *vr_check_kind_key(enum vr_check_kind kind) { return keys[kind]; }

enum vram_status vr_check_create(vr_check_report *report, void *user, struct vr_check **check) {
    struct vr_check *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->report = report;
    made->user = user;
    vr_hash_index_init(&made->name_index);
    if (VR_GROW(made, lanes, 1) != VRAM_OK) {
        vr_check_destroy(made);
        return VRAM_NO_HOST_MEMORY;
    }
    made->lanes[made->lane_count++] = (struct vr_check_lane){.kind = VR_CHECK_LANE_HOST, .open = true};
    *check = made;
    return VRAM_OK;
}

void vr_check_destroy(struct vr_check *check) {
    if (check == NULL) return;
    vr_check_cells_release(check);
    vr_check_sharing_release(check);
    for (size_t i = 0; i < check->lane_count; i++) free(check->lanes[i].clock.ticks);
    free(check->lanes);
    for (size_t i = 0; i < check->name_count; i++) free(check->names[i]);
    free(check->names);
    for (size_t i = 0; i < check->step_clocks; i++) free(check->steps[i].clock.ticks);
    free(check->steps);
    vr_check_point_drop(check->launch_start);
    vr_map_release(&check->streams);
    vr_map_release(&check->destroyed);
    free(check->ends);
    vr_map_release(&check->reported);
    vr_hash_index_release(&check->name_index);
    free(check);
}

bool vr_check_has_failed(const struct vr_check *check) { return check->failed; }

void vr_check_pause(struct vr_check *check, bool paused) { check->paused = paused; }

// ---- Names of work, each stored once.

static const char *add_name(struct vr_check *check, uint64_t hash, const char *text) {
    char *copy = NULL;
    const size_t length = strlen(text) + 1;
    if (vr_hash_index_reserve(&check->name_index) != VRAM_OK || VR_GROW(check, names, check->name_count + 1) != VRAM_OK ||
        (copy = malloc(length)) == NULL) {
        check->failed = true;
        return NULL;
    }
    memcpy(copy, text, length);
    vr_hash_index_add(&check->name_index, hash, (uint32_t)check->name_count);
    return check->names[check->name_count++] = copy;
}

const char *vr_check_name(struct vr_check *check, const char *text) {
    if (text == NULL) return NULL;
    const uint64_t hash = vr_hash_bytes(check->name_index.secret, text, strlen(text));
    uint32_t row = 0;
    bool found;
    VR_HASH_INDEX_FIND(&check->name_index, hash, row, strcmp(check->names[row], text) == 0, found);
    return found ? check->names[row] : add_name(check, hash, text);
}

struct vr_check_use vr_check_use_of(struct vr_check *check, uint64_t stream, enum vr_check_effect effect, struct vr_check_place place) {
    return (struct vr_check_use){.stack = place.stack, .work = vr_check_name(check, place.work), .stream = stream, .effect = effect};
}

// ---- Findings.

void vr_check_finding_block(struct vr_check_finding *finding, const struct vr_check_life *life) {
    finding->has_block = true;
    finding->allocated = life->allocated;
    finding->was_freed = life->freed;
    finding->freed = life->end;
    finding->block = life->address;
    finding->block_bytes = life->size_bytes;
}

// A pair of uses is identified by the stacks and, because stacks may be unknown, by the work.
static uint64_t hash_finding(const struct vr_check_finding *finding) {
    uint64_t hash = vr_hash_step((uint64_t)finding->kind + 1, finding->may);
    hash = vr_hash_step(hash, finding->earlier.process);
    hash = vr_hash_step(hash, (uint64_t)finding->earlier.stack << 32 | finding->later.stack);
    hash = vr_hash_step(hash, (uint64_t)finding->earlier.launch << 32 | finding->later.launch);
    hash = vr_hash_step(hash, (uint64_t)(uintptr_t)finding->earlier.work);
    hash = vr_mix64(vr_hash_step(hash, (uint64_t)(uintptr_t)finding->later.work));
    return hash == 0 ? 1 : hash;
}

void vr_check_note(struct vr_check *check, const struct vr_check_finding *finding) {
    const uint64_t hash = hash_finding(finding);
    if (vr_map_get(&check->reported, hash) != 0) return;
    if (vr_map_set(&check->reported, hash, 1) != VRAM_OK) check->failed = true;
    check->report(check->user, finding);
}
