#include "config/recorded_options.h"

#include "config/size_rules.h"
#include "config/values.h"
#include "vram/allocator.h"

static const struct {
    const char *key;
    const char *usual;
    const char *meaning;
} others[] = {
#define VR_OPTION(key, kind, field, smallest, usual, reset, recorded, places, syntax, summary)
#define VR_OPTION_ALIAS(alias, key)
#define VR_RECORDED(key, usual, meaning) {#key, usual, meaning},
#include "config/options.def"
#undef VR_OPTION
#undef VR_OPTION_ALIAS
#undef VR_RECORDED
};

static const struct vr_option_row *find_row(const char *key) {
    for (size_t i = 0; i < vr_option_row_count; i++) {
        const struct vr_option_row *row = &vr_option_rows[i];
        if (row->recorded.key != NULL && strcmp(row->recorded.key, key) == 0) return row;
    }
    return NULL;
}

static void put_value(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text) {
    struct vr_json json;
    text->length = 0;
    vr_json_init(&json, text, false);
    vr_option_record(row, options, &json);
}

static bool is_default(const struct vr_option_row *row, const struct vr_options *options) {
    struct vr_options usual;
    vr_options_init(&usual);
    return memcmp((const char *)options + row->field, (const char *)&usual + row->field, row->field_bytes) == 0;
}

bool vr_recorded_find(const char *key, struct vr_recorded_key *known) {
    assert(key != NULL && known != NULL);
    for (size_t i = 0; i < VR_COUNT_OF(others); i++) {
        if (strcmp(others[i].key, key) != 0) continue;
        assert(strlen(others[i].usual) < sizeof known->usual);
        known->meaning = others[i].meaning;
        memcpy(known->usual, others[i].usual, strlen(others[i].usual) + 1);
        return true;
    }
    const struct vr_option_row *row = find_row(key);
    if (row == NULL) return false;
    struct vr_options usual;
    struct vr_text text = {0};
    vr_options_init(&usual);
    put_value(row, &usual, &text);
    const bool found = vr_text_status(&text) == VRAM_OK && text.length < sizeof known->usual;
    if (found) {
        known->meaning = row->summary;
        memcpy(known->usual, vr_text_string(&text), text.length + 1);
    }
    vr_text_release(&text);
    return found;
}

bool vr_recorded_is_usual(const char *key, const char *value) {
    for (size_t i = 0; i < VR_COUNT_OF(others); i++)
        if (strcmp(others[i].key, key) == 0) return strcmp(others[i].usual, value) == 0;
    const struct vr_option_row *row = find_row(key);
    if (row == NULL) return false;
    // Fill the field with a value other than the default, so that text without a value is not mistaken for the default.
    struct vr_options read;
    vr_options_init(&read);
    memset((char *)&read + row->field, 1, row->field_bytes);
    vr_option_recall(row, &read, value);
    return is_default(row, &read);
}

enum vram_status vr_recorded_visit(const struct vr_options *options, vr_recorded_visitor visit, void *user) {
    struct vr_text value = {0};
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < vr_option_row_count && status == VRAM_OK; i++) {
        const struct vr_option_row *row = &vr_option_rows[i];
        if (row->recorded.key == NULL || (row->recorded.only_when_set && is_default(row, options))) continue;
        put_value(row, options, &value);
        status = vr_text_status(&value);
        if (status == VRAM_OK) status = visit(row->recorded.key, vr_text_string(&value), value.length, user);
    }
    vr_text_release(&value);
    return status;
}

size_t vr_recorded_most(void) { return vr_option_row_count; }

// Copies the recorded option string without its JSON quotes, NUL-terminated, into `text`; "" if it is missing or has escapes.
static void recorded_string(const struct vr_model *model, char *text, size_t capacity) {
    static const char *const keys[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF",
                                       "last_allocator_settings"};
    text[0] = '\0';
    for (size_t i = 0; i < VR_COUNT_OF(keys) && text[0] == '\0'; i++) {
        const char *value = vr_model_setting(model, keys[i]);
        const size_t length = value == NULL ? 0 : strlen(value);
        if (length < 3 || length - 2 >= capacity || value[0] != '"' || strchr(value, '\\') != NULL) continue;
        memcpy(text, value + 1, length - 2);
        text[length - 2] = '\0';
    }
}

// Returns whether the recording has any settings: PyTorch 2.1 and 2.2 have no `allocator_settings`.
static bool has_settings(const struct vr_model *model) {
    for (size_t i = 0; i < VR_COUNT_OF(others); i++) {
        if (strstr(others[i].key, "ALLOC_CONF") != NULL && vr_model_setting(model, others[i].key) != NULL) return true;
    }
    for (size_t i = 0; i < vr_option_row_count; i++) {
        const char *key = vr_option_rows[i].recorded.key;
        if (key != NULL && vr_model_setting(model, key) != NULL) return true;
    }
    return false;
}

// The kinds of segments of one device, or of all.
struct segments_shown {
    bool ordinary, expandable;
};
enum { ALL_DEVICES = UINT32_MAX };

static void look_at_segments(const struct vr_model *model, uint32_t device, struct segments_shown *shown) {
    for (size_t row = 0; row < model->segments.count; row++) {
        if (vr_model_is_host(model, model->segments.device[row])) continue;
        if (device != ALL_DEVICES && model->segments.device[row] != device) continue;
        *(model->segments.expandable[row] != 0 ? &shown->expandable : &shown->ordinary) = true;
    }
}

static void look_at_events(const struct vr_history *history, struct segments_shown *shown) {
    for (size_t event = 0; event < history->count; event++) {
        const enum vr_action action = history->action[event];
        shown->expandable |= action == VR_ACTION_SEGMENT_MAP || action == VR_ACTION_SEGMENT_UNMAP;
        shown->ordinary |= action == VR_ACTION_SEGMENT_ALLOC || action == VR_ACTION_SEGMENT_FREE;
    }
}

static struct segments_shown shown_by(const struct vr_model *model, uint32_t device) {
    struct segments_shown shown = {false, false};
    look_at_segments(model, device, &shown);
    for (uint32_t i = 0; i < model->history_count; i++) {
        if ((device == ALL_DEVICES || device == i) && !vr_model_is_host(model, i)) look_at_events(&model->histories[i], &shown);
    }
    return shown;
}

// Ascend's torch_npu adds 32 bytes to each request before rounding. A live block that is as large as its padded request proves it; a block
// that is smaller disproves it. It is proved only in expandable and small segments: in others a block may be larger because its rest was
// not split off. In expandable segments, torch_npu's large requests begin at multiples of 16 KiB unless the program sets
// base_addr_aligned_kb.
enum { NPU_PADDING = 32, NPU_ALIGNMENT_KIB = 16 };

enum padding { PADDING_UNKNOWN, PADDING_NONE, PADDING_PROVED };

static enum padding padding_of_segment(const struct vr_model *model, size_t row, const struct vr_options *options,
                                       const struct vr_options *npu) {
    const bool exact = model->segments.expandable[row] != 0 || model->segments.kind[row] == VR_KIND_SMALL;
    enum padding found = PADDING_UNKNOWN;
    for (uint64_t b = model->segments.first_block[row]; b < model->segments.first_block[row + 1]; b++) {
        const uint64_t requested = model->blocks.requested_bytes[b], size = model->blocks.size_bytes[b];
        if (!vr_state_active(model->blocks.state[b]) || requested == 0 || requested > UINT64_MAX / 4) continue;
        const uint64_t padded = vr_round_request(npu, requested);
        if (size < padded) return PADDING_NONE;
        if (exact && size == padded && padded != vr_round_request(options, requested)) found = PADDING_PROVED;
    }
    return found;
}

// Finds the padding of each device.
static void find_paddings(const struct vr_model *model, const struct vr_options *options, enum padding *found) {
    struct vr_options plain = *options, npu = *options;
    plain.request_padding_bytes = 0;
    npu.request_padding_bytes = NPU_PADDING;
    for (size_t device = 0; device < VRAM_MAX_DEVICES; device++) found[device] = PADDING_UNKNOWN;
    for (size_t row = 0; row < model->segments.count; row++) {
        const uint64_t device = model->segments.device[row];
        if (device >= VRAM_MAX_DEVICES || vr_model_is_host(model, device) || found[device] == PADDING_NONE) continue;
        const enum padding of_segment = padding_of_segment(model, row, &plain, &npu);
        if (of_segment != PADDING_UNKNOWN) found[device] = of_segment;
    }
}

static bool any_device_is(const struct vr_model *model, const struct vr_options *options, enum padding padding) {
    enum padding found[VRAM_MAX_DEVICES];
    find_paddings(model, options, found);
    for (size_t device = 0; device < VRAM_MAX_DEVICES; device++) {
        if (found[device] == padding) return true;
    }
    return false;
}

// Returns whether at most half of the large live blocks of expandable segments begin at torch_npu's alignment, which means that it was set
// otherwise. A block without room for alignment begins elsewhere; one in 32 addresses is aligned by chance.
static bool is_unaligned(const struct vr_model *model) {
    size_t large = 0, aligned = 0;
    for (size_t row = 0; row < model->segments.count; row++) {
        if (model->segments.expandable[row] == 0 || vr_model_is_host(model, model->segments.device[row])) continue;
        for (uint64_t b = model->segments.first_block[row]; b < model->segments.first_block[row + 1]; b++) {
            if (!vr_state_active(model->blocks.state[b]) || model->blocks.size_bytes[b] < 2 * VR_MIB) continue;
            large++;
            aligned += model->blocks.address[b] % (NPU_ALIGNMENT_KIB * 1024) == 0;
        }
    }
    return large > 0 && 2 * aligned <= large;
}

static void set_npu(const struct vr_model *model, struct vr_options *options) {
    options->request_padding_bytes = NPU_PADDING;
    if (options->base_alignment_kib == 0 && !is_unaligned(model)) options->base_alignment_kib = NPU_ALIGNMENT_KIB;
}

bool vr_recorded_may_pad(const struct vr_model *model, struct vr_options *options) {
    if (options->request_padding_bytes != 0) return false;
    if (any_device_is(model, options, PADDING_NONE) || any_device_is(model, options, PADDING_PROVED)) return false;
    set_npu(model, options);
    return true;
}

bool vr_recorded_conf(const struct vr_model *model, struct vr_text *conf) {
    char text[1024];
    struct vr_options options;
    recorded_string(model, text, sizeof text);
    vr_options_init(&options);
    // Ignore a string that this version does not understand; the structured values still count.
    if (vr_options_parse(&options, text, NULL) != VRAM_OK) vr_options_init(&options);
    for (size_t i = 0; i < vr_option_row_count; i++) {
        const struct vr_option_row *row = &vr_option_rows[i];
        const char *value = row->recorded.key == NULL ? NULL : vr_model_setting(model, row->recorded.key);
        if (value != NULL) vr_option_recall(row, &options, value);
    }
    const bool inferred = !has_settings(model) && shown_by(model, ALL_DEVICES).expandable;
    if (inferred) options.expandable_segments = true;
    if (options.request_padding_bytes == 0 && any_device_is(model, &options, PADDING_PROVED)) set_npu(model, &options);
    vr_options_print_places(&options, conf);
    return inferred;
}

bool vr_recorded_narrow(const struct vr_model *model, uint32_t device, struct vr_options *options) {
    const struct segments_shown shown = shown_by(model, device);
    enum padding padding[VRAM_MAX_DEVICES];
    find_paddings(model, options, padding);
    const bool ordinary = options->expandable_segments && !has_settings(model) && shown.ordinary && !shown.expandable;
    const bool unpadded = options->request_padding_bytes == NPU_PADDING && padding[device] == PADDING_NONE;
    if (ordinary) options->expandable_segments = false;
    if (unpadded) options->request_padding_bytes = options->base_alignment_kib = 0;
    return ordinary || unpadded;
}
