// same_model.h: compares two models, column by column and table by table.
#ifndef SAME_MODEL_H
#define SAME_MODEL_H

#include <stdio.h>

#include "model/columns.h"

// Compares bytes. Returns false and describes the difference in `difference` (200 bytes) if they differ.
static inline bool same_bytes(const char *what, const void *a, const void *b, size_t bytes, char *difference) {
    if (bytes == 0 || memcmp(a, b, bytes) == 0) return true;
    size_t at = 0;
    while (((const char *)a)[at] == ((const char *)b)[at]) at++;
    (void)snprintf(difference, 200, "%s differs at byte %zu", what, at);
    return false;
}

static inline bool same_count(const char *what, uint64_t a, uint64_t b, char *difference) {
    if (a == b) return true;
    (void)snprintf(difference, 200, "%s: %llu and %llu", what, (unsigned long long)a, (unsigned long long)b);
    return false;
}

// Returns whether the column may be stored separately or as a common value; two equal models may differ in that.
static inline bool is_apart(const struct vr_columns *columns, size_t i) {
    const size_t offset = columns->column[i].pointer_offset;
    return columns == &vr_history_columns && (offset == offsetof(struct vr_history, stream) || offset == offsetof(struct vr_history, has));
}

static inline bool same_columns(const char *what, const struct vr_columns *columns, const void *a, const void *b, size_t count,
                                char *difference) {
    for (size_t i = 0; i < columns->count; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s: column %zu", what, i);
        const void *left = vr_column_pointer(columns, a, i), *right = vr_column_pointer(columns, b, i);
        if (is_apart(columns, i)) continue;
        if (!same_bytes(name, left, right, count * columns->column[i].item_bytes, difference)) return false;
    }
    return true;
}

#define SAME_ARRAY(a, b, items, count)                                                                                                     \
    (same_count(#count, (a)->count, (b)->count, difference) &&                                                                             \
     same_bytes(#items, (a)->items, (b)->items, (a)->count * sizeof *(a)->items, difference))

// Compares members one by one, because padding is undefined.
static inline bool same_tenants(const struct vr_model *a, const struct vr_model *b, char *difference) {
    if (!same_count("tenants", a->tenant_count, b->tenant_count, difference)) return false;
    for (size_t i = 0; i < a->tenant_count; i++) {
        const struct vr_tenant *x = &a->tenants[i], *y = &b->tenants[i];
        if (x->block == y->block && x->address == y->address && x->size_bytes == y->size_bytes && x->stack == y->stack &&
            x->cpp_stack == y->cpp_stack && x->has == y->has)
            continue;
        (void)snprintf(difference, 200, "tenant %zu differs", i);
        return false;
    }
    return true;
}

static inline bool same_tables(const struct vr_model *a, const struct vr_model *b, char *difference) {
    const struct vr_strings *s = &a->strings, *t = &b->strings;
    return SAME_ARRAY(a, b, annotations, annotation_count) && SAME_ARRAY(a, b, settings, setting_count) &&
           SAME_ARRAY(a, b, top_level_keys, top_level_key_count) && SAME_ARRAY(a, b, modules, module_count) &&
           same_tenants(a, b, difference) && SAME_ARRAY(&a->frames, &b->frames, name, count) &&
           SAME_ARRAY(&a->frames, &b->frames, filename, count) && SAME_ARRAY(&a->frames, &b->frames, line, count) &&
           SAME_ARRAY(s, t, offset, count) && same_count("string bytes", s->offset[s->count], t->offset[t->count], difference) &&
           same_bytes("strings", s->bytes, t->bytes, (size_t)s->offset[s->count], difference) &&
           SAME_ARRAY(&a->stacks, &b->stacks, offset, count) &&
           same_count("frames of stacks", a->stacks.offset[a->stacks.count], b->stacks.offset[b->stacks.count], difference) &&
           same_bytes("stacks", a->stacks.frame, b->stacks.frame, (size_t)a->stacks.offset[a->stacks.count] * 4, difference);
}

static inline bool same_extras(const struct vr_model *a, const struct vr_model *b, char *difference) {
    if (!same_count("further keys", a->extra_count, b->extra_count, difference)) return false;
    for (size_t i = 0; i < a->extra_count; i++) {
        const struct vr_extra *x = &a->extras[i], *y = &b->extras[i];
        bool same = x->owner == y->owner && x->device == y->device && x->row == y->row && x->key == y->key && x->value == y->value;
        if (!same) return same_count("a further key", i, SIZE_MAX, difference);
    }
    return true;
}

static inline bool same_model(const struct vr_model *a, const struct vr_model *b, char *difference) {
    if (!same_count("form", a->form, b->form, difference) || !same_tables(a, b, difference) || !same_extras(a, b, difference)) return false;
    if (!same_count("segments", a->segments.count, b->segments.count, difference)) return false;
    if (!same_count("blocks", a->blocks.count, b->blocks.count, difference)) return false;
    if (!same_columns("segments", &vr_segment_columns, &a->segments, &b->segments, a->segments.count, difference)) return false;
    size_t offsets = (a->segments.count + 1) * sizeof *a->segments.first_block;
    if (!same_bytes("first blocks", a->segments.first_block, b->segments.first_block, offsets, difference)) return false;
    if (!same_columns("blocks", &vr_block_columns, &a->blocks, &b->blocks, a->blocks.count, difference)) return false;
    if (!same_count("host", a->host_count, b->host_count, difference)) return false;
    if (!same_count("histories", a->history_count, b->history_count, difference)) return false;
    for (size_t i = 0; i < a->history_count; i++) {
        const struct vr_history *x = &a->histories[i], *y = &b->histories[i];
        if (!same_count("events", x->count, y->count, difference)) return false;
        if (!same_columns("history", &vr_history_columns, x, y, x->count, difference)) return false;
        for (size_t event = 0; event < x->count; event++) {
            if (!same_count("stream", vr_entry_stream(x, event), vr_entry_stream(y, event), difference)) return false;
            if (!same_count("keys", vr_entry_has(x, event), vr_entry_has(y, event), difference)) return false;
        }
    }
    return true;
}

#endif
