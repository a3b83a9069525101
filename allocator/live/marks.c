#include "live/marks.h"

#include "vram/allocator.h"

const char *vr_pairs_find(const char *pairs, const char *key, size_t *length) {
    for (const char *line = pairs; *line != '\0';) {
        const size_t size = strcspn(line, "\n"), tab = strcspn(line, "\t");
        if (tab == strlen(key) && strncmp(line, key, tab) == 0) {
            *length = size - tab - 1;
            return line + tab + 1;
        }
        line += size + (line[size] == '\n');
    }
    return NULL;
}

enum vram_status vr_marks_keep(struct vr_marks *marks, uint64_t most, const struct vr_mark *mark) {
    if (marks->count == most) {
        marks->items[marks->next] = *mark;
        marks->next = (marks->next + 1) % marks->count;
        return VRAM_OK;
    }
    VR_TRY(VR_GROW(marks, items, marks->count + 1));
    marks->items[marks->count++] = *mark;
    assert(marks->next == 0); // not full yet, so the oldest is the first
    return VRAM_OK;
}

enum vram_status vr_marks_resize(struct vr_marks *marks, uint64_t most) {
    const size_t kept = marks->count < most ? marks->count : (size_t)most;
    if (kept == marks->count && marks->next == 0) return VRAM_OK;
    struct vr_mark *items = malloc((kept + 1) * sizeof *items);
    if (items == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < kept; i++) items[i] = marks->items[(marks->next + marks->count - kept + i) % marks->count];
    free(marks->items);
    *marks = (struct vr_marks){.items = items, .count = kept, .items_capacity = kept + 1};
    return VRAM_OK;
}

bool vr_marks_check(const struct vr_marks *marks) {
    for (size_t i = 1; i < marks->count; i++) {
        const struct vr_mark *before = &marks->items[(marks->next + i - 1) % marks->count];
        const struct vr_mark *mark = &marks->items[(marks->next + i) % marks->count];
        if (mark->stage >= VR_STAGE_COUNT || mark->device >= VRAM_MAX_DEVICES || before->stage >= VR_STAGE_COUNT) return false;
    }
    return marks->count <= marks->items_capacity && (marks->next == 0 || marks->next < marks->count);
}
