#include "analyze/layers.h"

#include "analyze/frame_kinds.h"

// The Python frames that the stacks seen so far have in common, from the outermost one on.
struct common_frames {
    uint32_t *frame;
    size_t count, capacity;
    bool any;          // a stack was seen
    bool python;       // stacks without a Python frame are passed over
    bool elsewhere;    // a stack lies outside of autograd's backward pass
    uint32_t backward; // 1 + a frame of that, 0: none was seen
    uint8_t *known;    // by stack
};

// Interpreters and dispatchers call the same function in several ways.
static bool frame_counts(const struct vr_model *model, uint32_t frame) { return vr_frame_is_python(model, frame, false); }

// Autograd works a graph off, in Python's thread or in its own.
static bool is_backward(const struct vr_model *model, uint32_t frame) {
    const char *name = vr_model_string(model, model->frames.name[frame]);
    return strncmp(name, "torch::autograd::Engine::", 25) == 0 || strcmp(name, "_engine_run_backward") == 0 ||
           strcmp(name, "backward") == 0;
}

static void look_for_backward(struct common_frames *common, const struct vr_model *model, const uint32_t *begin, const uint32_t *end) {
    for (; begin != end; begin++) {
        if (!is_backward(model, *begin)) continue;
        common->backward = *begin + 1;
        return;
    }
    common->elsewhere = true;
}

static bool has_python(const struct vr_model *model, const uint32_t *begin, const uint32_t *end) {
    for (; begin != end; begin++) {
        if (frame_counts(model, *begin)) return true;
    }
    return false;
}

static enum vram_status take_stack(struct common_frames *common, const struct vr_model *model, const uint32_t *begin, const uint32_t *end) {
    common->any = true;
    for (const uint32_t *frame = end; frame != begin; frame--) {
        if (!frame_counts(model, frame[-1])) continue;
        VR_TRY(vr_grow((void **)&common->frame, &common->capacity, common->count + 1, sizeof *common->frame));
        common->frame[common->count++] = frame[-1];
    }
    return VRAM_OK;
}

static enum vram_status narrow_common(struct common_frames *common, const struct vr_model *model, uint32_t stack) {
    const uint32_t *frames = model->stacks.frame; // NULL where no stack has a frame
    const uint32_t *begin = frames == NULL ? NULL : frames + model->stacks.offset[stack];
    const uint32_t *end = frames == NULL ? NULL : frames + model->stacks.offset[stack + 1];
    if (common->known[stack] != 0) return VRAM_OK;
    common->known[stack] = 1;
    look_for_backward(common, model, begin, end);
    if (common->python && !has_python(model, begin, end)) return VRAM_OK;
    if (!common->any) return take_stack(common, model, begin, end);
    size_t alike = 0;
    for (const uint32_t *frame = end; frame != begin && alike < common->count; frame--) {
        if (!frame_counts(model, frame[-1])) continue;
        if (common->frame[alike] != frame[-1]) break;
        alike++;
    }
    common->count = alike;
    return VRAM_OK;
}

// Frames of torch itself call a module, whatever that does: they are on the way into every pass.
static bool is_pass(const struct vr_model *model, uint32_t frame) {
    const char *name = vr_model_string(model, model->frames.name[frame]);
    return (strcmp(name, "forward") == 0 || strcmp(name, "__call__") == 0) && vr_frame_kind(model, frame) == VR_FRAME_OWN;
}

static enum vram_status narrow_all(struct common_frames *common, const struct vr_view *view, size_t from, size_t to) {
    const struct vr_history *history = view->history;
    for (size_t event = from; event < to && (common->count != 0 || !common->any || !common->elsewhere); event++) {
        if (history->action[event] == VR_ACTION_ALLOC) VR_TRY(narrow_common(common, view->model, history->stack[event]));
    }
    return VRAM_OK;
}

enum vram_status vr_layers_pass(const struct vr_view *view, const size_t *first, size_t count, bool loop, uint32_t *pass) {
    struct common_frames common = {.python = !loop};
    *pass = 0;
    if (count < 2) return VRAM_OK;
    common.known = calloc(view->model->stacks.count, 1);
    enum vram_status status = common.known == NULL ? VRAM_NO_HOST_MEMORY : narrow_all(&common, view, first[0], first[count - 1]);
    for (size_t i = 0; i < common.count && status == VRAM_OK && *pass == 0; i++) {
        if (is_pass(view->model, common.frame[i])) *pass = common.frame[i] + 1;
    }
    if (status == VRAM_OK && !common.elsewhere) *pass = common.backward;
    free(common.known);
    free(common.frame);
    return status;
}
