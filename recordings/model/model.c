#include "model/model.h"

#include "model/columns.h"

static const char *const action_names[] = {
#define ACTION_NAME(name, text) text,
    VR_ACTIONS(ACTION_NAME)
#undef ACTION_NAME
};

const char *vr_action_name(enum vr_action action) { return (size_t)action < VR_ACTION_COUNT ? action_names[action] : "unknown"; }

static const char *const state_names[VR_STATE_COUNT] = {
    [VR_STATE_INACTIVE] = "inactive",
    [VR_STATE_ALLOCATED] = "active_allocated",
    [VR_STATE_PENDING_FREE] = "active_pending_free",
    [VR_STATE_AWAITING_FREE] = "active_awaiting_free",
    [VR_STATE_UNKNOWN] = "unknown",
};

const char *vr_block_state_name(enum vr_block_state state) { return (size_t)state < VR_STATE_COUNT ? state_names[state] : "unknown"; }

void vr_model_release_names(struct vr_model *model) {
    free(model->strings.bytes);
    free(model->strings.offset);
    free(model->frames.name);
    free(model->frames.filename);
    free(model->frames.line);
    free(model->frames.skipped);
    free(model->stacks.frame);
    free(model->stacks.offset);
    model->strings = (struct vr_strings){.count = 0};
    model->frames = (struct vr_frames){.count = 0};
    model->stacks = (struct vr_stacks){.count = 0};
}

void vr_model_release(struct vr_model *model) {
    vr_model_release_names(model);
    vr_columns_release(&vr_segment_columns, &model->segments);
    free(model->segments.first_block);
    vr_columns_release(&vr_block_columns, &model->blocks);
    free(model->tenants);
    for (size_t i = 0; i < model->history_count; i++) vr_columns_release(&vr_history_columns, &model->histories[i]);
    free(model->histories);
    free(model->annotations);
    free(model->settings);
    free(model->top_level_keys);
    free(model->modules);
    free(model->extras);
    memset(model, 0, sizeof *model);
}

const char *vr_model_setting(const struct vr_model *model, const char *key) {
    for (size_t i = 0; i < model->setting_count; i++) {
        if (strcmp(vr_model_string(model, model->settings[i].key), key) == 0) return vr_model_string(model, model->settings[i].value);
    }
    return NULL;
}

// The checks of vr_model_check(). Each returns the row of the first error, or SIZE_MAX.

static size_t first_not_below(const uint32_t *ids, size_t count, uint32_t limit) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) largest = ids[i] > largest ? ids[i] : largest;
    if (count == 0 || largest < limit) return SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= limit) return i;
    }
    return SIZE_MAX;
}

static size_t first_byte_not_below(const uint8_t *values, size_t count, uint8_t limit) {
    uint8_t largest = 0;
    for (size_t i = 0; i < count; i++) largest = values[i] > largest ? values[i] : largest;
    if (count == 0 || largest < limit) return SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        if (values[i] >= limit) return i;
    }
    return SIZE_MAX;
}

// Returns SIZE_MAX if offsets[0] is 0 and offsets rise by at least `step`; otherwise the first row where they do not.
static size_t first_falling(const uint64_t *offsets, size_t count, uint64_t step) {
    if (offsets == NULL || offsets[0] != 0) return 0;
    for (size_t i = 0; i < count; i++) {
        if (offsets[i + 1] < offsets[i] || offsets[i + 1] - offsets[i] < step) return i;
    }
    return SIZE_MAX;
}

static enum vram_status refuse_row(struct vram_error *error, const char *what, size_t row) {
    return vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET, "the recording is inconsistent: %s of row %zu is out of range", what, row);
}

// Fails with the text if the expression is a row.
#define EXPECT(expression, what)                                                                                                           \
    do {                                                                                                                                   \
        size_t row_ = (expression);                                                                                                        \
        if (row_ != SIZE_MAX) return refuse_row(error, (what), row_);                                                                      \
    } while (0)

static enum vram_status check_tables(const struct vr_model *model, struct vram_error *error) {
    const struct vr_strings *strings = &model->strings;
    if (strings->count == 0 || model->stacks.count == 0)
        return vr_fail(error, VRAM_BAD_INPUT, VRAM_NO_OFFSET,
                       "the recording is inconsistent: it lacks the empty string or the empty stack");
    EXPECT(first_falling(strings->offset, strings->count, 1), "a string's offset");
    EXPECT(strings->offset[1] == 1 ? SIZE_MAX : 0, "the empty string's length");
    for (uint32_t i = 0; i < strings->count; i++) {
        if (strings->bytes[strings->offset[i + 1] - 1] != '\0') return refuse_row(error, "a string's end", i);
    }
    EXPECT(first_not_below(model->frames.name, model->frames.count, strings->count), "a frame's name");
    EXPECT(first_not_below(model->frames.filename, model->frames.count, strings->count), "a frame's filename");
    EXPECT(first_falling(model->stacks.offset, model->stacks.count, 0), "a stack's offset");
    EXPECT(model->stacks.offset[1] == 0 ? SIZE_MAX : 0, "the empty stack's length");
    EXPECT(first_not_below(model->stacks.frame, (size_t)model->stacks.offset[model->stacks.count], model->frames.count), "a stack's frame");
    return VRAM_OK;
}

static enum vram_status check_segments(const struct vr_model *model, struct vram_error *error) {
    const struct vr_segments *segments = &model->segments;
    EXPECT(first_not_below(segments->stack, segments->count, model->stacks.count), "a segment's stack");
    EXPECT(first_byte_not_below(segments->kind, segments->count, VR_KIND_LARGE + 1), "a segment's kind");
    EXPECT(first_byte_not_below(segments->expandable, segments->count, 2), "a segment's expandable flag");
    EXPECT(first_falling(segments->first_block, segments->count, 0), "a segment's first block");
    EXPECT(segments->first_block[segments->count] == model->blocks.count ? SIZE_MAX : segments->count, "the end of the blocks");
    EXPECT(first_not_below(model->blocks.stack, model->blocks.count, model->stacks.count), "a block's stack");
    EXPECT(first_byte_not_below(model->blocks.state, model->blocks.count, VR_STATE_COUNT), "a block's state");
    return VRAM_OK;
}

static enum vram_status check_history(const struct vr_model *model, const struct vr_history *history, struct vram_error *error) {
    const uint32_t strings = model->strings.count;
    EXPECT(first_byte_not_below(history->action, history->count, VR_ACTION_COUNT), "an event's action");
    EXPECT(first_not_below(history->stack, history->count, model->stacks.count), "an event's stack");
    const struct {
        const uint32_t *column;
        const char *name;
    } texts[] = {
        {history->unknown, "an event's action name"},
#define VR_FIELD(...)
#define VR_NUMBER(...)
#define VR_TEXT(column, ...) {history->column, "an event's " #column},
#include "model/entry_fields.def"
    };
    // Check an array of zeros only once if several columns share it.
    for (size_t i = 0; i < VR_COUNT_OF(texts); i++) {
        size_t first = 0;
        while (texts[first].column != texts[i].column) first++;
        if (first == i) EXPECT(first_not_below(texts[i].column, history->count, strings), texts[i].name);
    }
    return VRAM_OK;
}

static enum vram_status check_tenants(const struct vr_model *model, struct vram_error *error) {
    const uint32_t stacks = model->stacks.count;
    for (size_t i = 0; i < model->tenant_count; i++) {
        const struct vr_tenant *tenant = &model->tenants[i];
        if (tenant->block >= model->blocks.count || (i != 0 && tenant->block < tenant[-1].block))
            return refuse_row(error, "a tenant's block", i);
        if (tenant->stack >= stacks || tenant->cpp_stack >= stacks) return refuse_row(error, "a tenant's stack", i);
    }
    return VRAM_OK;
}

// Returns the number of rows of an owner's table; 0 for an unknown owner.
static uint64_t rows_of(const struct vr_model *model, const struct vr_extra *extra) {
    switch (extra->owner) {
    case VR_OWNER_TOP: return 1;
    case VR_OWNER_SEGMENT: return model->segments.count;
    case VR_OWNER_BLOCK: return model->blocks.count;
    case VR_OWNER_EVENT: return extra->device < model->history_count ? model->histories[extra->device].count : 0;
    case VR_OWNER_FRAME: return model->frames.count;
    case VR_OWNER_ANNOTATION: return model->annotation_count;
    case VR_OWNER_TENANT: return model->tenant_count;
    default: return 0;
    }
}

static enum vram_status check_extras(const struct vr_model *model, struct vram_error *error) {
    const uint32_t strings = model->strings.count;
    for (size_t i = 0; i < model->extra_count; i++) {
        const struct vr_extra *extra = &model->extras[i];
        if (extra->key >= strings || extra->value >= strings) return refuse_row(error, "a further key's text", i);
        if (extra->row >= rows_of(model, extra)) return refuse_row(error, "a further key's row", i);
    }
    for (size_t i = 0; i < model->module_count; i++) {
        if (model->modules[i].path >= strings || model->modules[i].build_id >= strings) return refuse_row(error, "a module's text", i);
    }
    return VRAM_OK;
}

enum vram_status vr_model_check(const struct vr_model *model, struct vram_error *error) {
    VR_TRY(check_tables(model, error));
    VR_TRY(check_segments(model, error));
    VR_TRY(check_tenants(model, error));
    for (size_t i = 0; i < model->history_count; i++) VR_TRY(check_history(model, &model->histories[i], error));
    uint32_t strings = model->strings.count;
    for (size_t i = 0; i < model->annotation_count; i++) {
        if (model->annotations[i].name >= strings || model->annotations[i].stage >= strings)
            return refuse_row(error, "an annotation's text", i);
    }
    for (size_t i = 0; i < model->setting_count; i++) {
        if (model->settings[i].key >= strings || model->settings[i].value >= strings) return refuse_row(error, "a setting's text", i);
    }
    EXPECT(first_not_below(model->top_level_keys, model->top_level_key_count, strings), "a top-level key");
    if (model->host_count > 1 || model->host_count > model->history_count)
        return refuse_row(error, "the host's history", model->host_count);
    return check_extras(model, error);
}
