#include "explore/keys.h"

#include "model/recording.h"

enum vram_status vr_ask_keys(const struct vr_ask *ask, struct vr_seen_recording *recording, struct vr_seen_device *device,
                             const struct vr_lifetimes *lifetimes, struct vr_keys *keys) {
    static const char *const words[] = {"site", "stack", "category", "pool", "stream", "thread", "context", "metadata", "size", NULL};
    size_t by = VR_BY_SITE;
    VR_TRY(vr_question_word(ask->question, "by", words, VR_BY_SITE, &by));
    *keys = (struct vr_keys){.by = (enum vr_by)by, .recording = recording, .view = device->view, .lifetimes = lifetimes};
    return by == VR_BY_POOL || by == VR_BY_STREAM ? vr_seen_segments(device, &keys->segments) : VRAM_OK;
}

// What no event and no segment tells.
#define UNKNOWN UINT64_MAX

// Both numbers of a pool in one; pools of real programs have small numbers.
static uint64_t pool_key(uint64_t first, uint64_t second) { return first << 32 ^ second; }

static size_t segment_of(const struct vr_keys *keys, size_t row) {
    const uint32_t birth = keys->lifetimes->birth[row];
    return vr_segment_lives_find(keys->segments, keys->lifetimes->address[row], birth == VR_BEFORE_TRACE ? -1 : (int64_t)birth);
}

static uint64_t pool_of(const struct vr_keys *keys, size_t row) {
    const struct vr_history *history = keys->view->history;
    const uint32_t birth = keys->lifetimes->birth[row];
    if (birth != VR_BEFORE_TRACE && (history->has[birth] & VR_HAS_POOL_ID) != 0)
        return pool_key(history->pool_first[birth], history->pool_second[birth]);
    const size_t segment = segment_of(keys, row);
    if (segment == SIZE_MAX || (keys->segments->flags[segment] & VR_SEGMENT_POOL_KNOWN) == 0) return UNKNOWN;
    return pool_key(keys->segments->pool_first[segment], keys->segments->pool_second[segment]);
}

static uint64_t stream_of(const struct vr_keys *keys, size_t row) {
    const struct vr_history *history = keys->view->history;
    const uint32_t birth = keys->lifetimes->birth[row];
    if (birth != VR_BEFORE_TRACE) return (history->has[birth] & VR_HAS_STREAM) != 0 ? history->stream[birth] : UNKNOWN;
    const size_t segment = segment_of(keys, row);
    return segment == SIZE_MAX ? UNKNOWN : keys->segments->stream[segment];
}

static uint64_t thread_of(const struct vr_keys *keys, uint32_t birth) {
    const struct vr_history *history = keys->view->history;
    return birth == VR_BEFORE_TRACE || (history->has[birth] & VR_HAS_THREAD) == 0 ? UNKNOWN : history->thread[birth];
}

uint64_t vr_key(const struct vr_keys *keys, size_t row) {
    const struct vr_history *history = keys->view->history;
    const uint32_t birth = keys->lifetimes->birth[row], stack = keys->lifetimes->stack[row];
    const bool before = birth == VR_BEFORE_TRACE;
    switch (keys->by) {
    case VR_BY_SITE: return vr_sites_frame(&keys->recording->sites, stack);
    case VR_BY_STACK: return stack;
    case VR_BY_CATEGORY: return before ? 0 : history->tag[birth];
    case VR_BY_POOL: return pool_of(keys, row);
    case VR_BY_STREAM: return stream_of(keys, row);
    case VR_BY_THREAD: return thread_of(keys, birth);
    case VR_BY_CONTEXT: return before ? 0 : history->context[birth];
    case VR_BY_METADATA: return before ? 0 : history->metadata[birth];
    case VR_BY_SIZE: return keys->lifetimes->size_bytes[row] == 0 ? 0 : vr_log2_floor(keys->lifetimes->size_bytes[row]);
    }
    return 0;
}

void vr_pool_name(uint64_t first, uint64_t second, struct vr_text *text) {
    if (first == 0 && second == 0)
        vr_text_puts(text, "default pool");
    else
        vr_text_printf(text, "private pool (%llu, %llu)", (unsigned long long)first, (unsigned long long)second);
}

// Names that a viewer shows in a line: longer ones are cut.
#define NAME_BYTES "400"

static void frame_name(const struct vr_model *model, uint64_t frame, struct vr_text *text) {
    if (frame >= model->frames.count) {
        vr_text_puts(text, "<no frames>");
        return;
    }
    vr_text_printf(text, "%." NAME_BYTES "s:%lld:%." NAME_BYTES "s", vr_model_string(model, model->frames.filename[frame]),
                   (long long)model->frames.line[frame], vr_model_string(model, model->frames.name[frame]));
}

static void string_name(const struct vr_model *model, uint64_t id, const char *none, struct vr_text *text) {
    vr_text_printf(text, "%." NAME_BYTES "s", id == 0 ? none : vr_model_string(model, (uint32_t)id));
}

void vr_key_name(const struct vr_keys *keys, uint64_t key, struct vr_text *text) {
    const struct vr_model *model = vr_recording_model(keys->recording->recording);
    if (key == UNKNOWN) {
        vr_text_puts(text, "not known");
        return;
    }
    switch (keys->by) {
    case VR_BY_SITE: frame_name(model, key, text); return;
    case VR_BY_STACK:
        vr_text_printf(text, "stack %llu: ", (unsigned long long)key);
        frame_name(model, vr_sites_frame(&keys->recording->sites, (uint32_t)key), text);
        return;
    case VR_BY_CATEGORY: string_name(model, key, "no category", text); return;
    case VR_BY_POOL: vr_pool_name(key >> 32, key & UINT32_MAX, text); return;
    case VR_BY_STREAM: vr_text_printf(text, "stream %lld", (long long)key); return;
    case VR_BY_THREAD: vr_text_printf(text, "thread %llu", (unsigned long long)key); return;
    case VR_BY_CONTEXT: string_name(model, key, "no compile context", text); return;
    case VR_BY_METADATA: string_name(model, key, "no metadata", text); return;
    case VR_BY_SIZE: vr_text_printf(text, "from %s", vr_bytes((uint64_t)1 << key).text); return;
    }
}
