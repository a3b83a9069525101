#include "history/symbols.h"

enum { PIECE = 65536, FIRST_SLOTS = 1024 };

struct text_chunk {
    struct text_chunk *older;
    size_t used;
    size_t capacity;
    char bytes[];
};

struct vr_names {
    struct text_chunk *piece;
    const char **slots; // strings by hash, open addressing
    size_t slot_count;
    size_t string_count;
    struct vram_frame *frames;
    size_t frame_count;
    size_t frames_capacity;
    uint64_t bytes;
};

enum vram_status vr_names_create(struct vr_names **names) {
    struct vr_names *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->slots = calloc(FIRST_SLOTS, sizeof made->slots[0]);
    if (made->slots == NULL) {
        free(made);
        return VRAM_NO_HOST_MEMORY;
    }
    made->slot_count = FIRST_SLOTS;
    made->bytes = sizeof *made + FIRST_SLOTS * sizeof made->slots[0];
    *names = made;
    return VRAM_OK;
}

void vr_names_destroy(struct vr_names *names) {
    if (names == NULL) return;
    for (struct text_chunk *piece = names->piece, *older; piece != NULL; piece = older) {
        older = piece->older;
        free(piece);
    }
    free(names->slots);
    free(names->frames);
    free(names);
}

static size_t slot_of(const struct vr_names *names, const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *at = text; *at != '\0'; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    size_t slot = (size_t)vr_mix64(hash) & (names->slot_count - 1);
    while (names->slots[slot] != NULL && strcmp(names->slots[slot], text) != 0) slot = (slot + 1) & (names->slot_count - 1);
    return slot;
}

static bool more_slots(struct vr_names *names) {
    const char **old = names->slots;
    const size_t old_count = names->slot_count;
    const char **slots = calloc(old_count * 2, sizeof slots[0]);
    if (slots == NULL) return false;
    names->slots = slots;
    names->slot_count = old_count * 2;
    names->bytes += old_count * sizeof slots[0];
    for (size_t i = 0; i < old_count; i++) {
        if (old[i] != NULL) slots[slot_of(names, old[i])] = old[i];
    }
    free(old);
    return true;
}

const char *vr_names_string(struct vr_names *names, const char *text) {
    if (text[0] == '\0') return "";
    if (names->string_count * 2 >= names->slot_count && !more_slots(names)) return NULL;
    const size_t slot = slot_of(names, text), bytes = strlen(text) + 1;
    if (names->slots[slot] != NULL) return names->slots[slot];
    struct text_chunk *piece = names->piece;
    if (piece == NULL || piece->capacity - piece->used < bytes) {
        const size_t capacity = bytes > PIECE ? bytes : PIECE;
        piece = malloc(sizeof *piece + capacity);
        if (piece == NULL) return NULL;
        *piece = (struct text_chunk){.older = names->piece, .capacity = capacity};
        names->piece = piece;
        names->bytes += capacity;
    }
    char *copy = memcpy(piece->bytes + piece->used, text, bytes);
    piece->used += bytes;
    names->slots[slot] = copy;
    names->string_count++;
    return copy;
}

enum vram_status vr_names_add(struct vr_names *names, struct vram_frame frame, uint32_t *index) {
    if (names->frame_count >= UINT32_MAX - 1) return VRAM_LIMIT;
    VR_TRY(VR_GROW(names, frames, names->frame_count + 1));
    names->frames[names->frame_count] = frame;
    *index = (uint32_t)names->frame_count++;
    return VRAM_OK;
}

const struct vram_frame *vr_names_frame(const struct vr_names *names, uint32_t index) { return &names->frames[index]; }

uint64_t vr_names_bytes(const struct vr_names *names) {
    return names == NULL ? 0 : names->bytes + names->frames_capacity * sizeof names->frames[0];
}
