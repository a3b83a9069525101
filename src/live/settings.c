#include "live/settings.h"

#include <stdio.h>

#include "base/json.h"
#include "live/accounts.h"

enum { AFTERMATH_ROWS = 2 };

static void put_conf(const struct vr_copied *copied, struct vr_json *json) { vr_json_string(json, NULL, copied->conf); }

static void put_limit(struct vr_json *json, uint64_t bytes) {
    if (bytes == VR_UNLIMITED) {
        vr_json_i64(json, NULL, -1);
    } else {
        vr_json_u64(json, NULL, bytes);
    }
}

static void put_max_split(const struct vr_copied *copied, struct vr_json *json) { put_limit(json, copied->options.max_split_bytes); }
static void put_expandable(const struct vr_copied *copied, struct vr_json *json) {
    vr_json_bool(json, NULL, copied->options.expandable_segments);
}
static void put_threads(const struct vr_copied *copied, struct vr_json *json) {
    vr_json_u64(json, NULL, copied->options.pinned_register_threads);
}
static void put_release_lock(const struct vr_copied *copied, struct vr_json *json) {
    vr_json_bool(json, NULL, copied->options.release_lock_on_malloc);
}
static void put_register(const struct vr_copied *copied, struct vr_json *json) {
    vr_json_bool(json, NULL, copied->options.pinned_use_host_register);
}
static void put_reuse(const struct vr_copied *copied, struct vr_json *json) {
    vr_json_bool(json, NULL, copied->options.graph_capture_record_stream_reuse);
}
static void put_round_threshold(const struct vr_copied *copied, struct vr_json *json) {
    put_limit(json, copied->options.pinned_max_round_threshold_bytes);
}
static void put_cached_size(const struct vr_copied *copied, struct vr_json *json) {
    put_limit(json, copied->options.pinned_max_cached_bytes);
}
// Without a limit: sys.maxsize, as PyTorch has it.
static void put_max_entries(const struct vr_copied *copied, struct vr_json *json) {
    vr_json_u64(json, NULL, copied->max_entries == VR_RING_MOST ? INT64_MAX : copied->max_entries);
}

static bool with_history(const struct vr_copied *copied) { return copied->has_history; }
static bool with_round_threshold(const struct vr_copied *copied) {
    return copied->options.pinned_max_round_threshold_bytes != VR_UNLIMITED;
}
static bool with_cached_size(const struct vr_copied *copied) { return copied->options.pinned_max_cached_bytes != VR_UNLIMITED; }

// A whole number, too, is a float to whoever reads it.
static void put_threshold(const struct vr_copied *copied, struct vr_json *json) {
    const double threshold = copied->options.garbage_collection_threshold;
    if (threshold == 0.0) {
        vr_json_raw(json, NULL, "0.0");
    } else {
        vr_json_double(json, NULL, threshold);
    }
}

static void put_divisions(const struct vr_copied *copied, struct vr_json *json) {
    vr_json_object(json, NULL);
    for (unsigned i = 0; i < VR_ROUNDUP_BUCKETS; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%u", 1u << i);
        vr_json_u64(json, key, copied->options.roundup_divisions[i]);
    }
    vr_json_object_end(json);
}

static void put_overflowed(const struct vr_copied *copied, struct vr_json *json) {
    bool any = false;
    for (size_t i = 0; i < copied->device_count; i++) any = any || copied->devices[i].overflowed;
    vr_json_bool(json, NULL, any);
}

static const struct {
    const char *key;
    void (*put)(const struct vr_copied *copied, struct vr_json *json);
    bool (*there)(const struct vr_copied *copied); // NULL: always
} rows[] = {
    {"PYTORCH_CUDA_ALLOC_CONF", put_conf, NULL},
    {"max_split_size", put_max_split, NULL},
    {"garbage_collection_threshold", put_threshold, NULL},
    {"expandable_segments", put_expandable, NULL},
    {"pinned_num_register_threads", put_threads, NULL},
    {"release_lock_on_cudamalloc", put_release_lock, NULL},
    {"pinned_use_cuda_host_register", put_register, NULL},
    {"graph_capture_record_stream_reuse", put_reuse, NULL},
    {"roundup_power2_divisions", put_divisions, NULL},
    {"pinned_max_round_threshold", put_round_threshold, with_round_threshold},
    {"pinned_max_cached_size", put_cached_size, with_cached_size},
    {"trace_alloc_max_entries", put_max_entries, with_history},
    {"trace_alloc_overflowed", put_overflowed, with_history},
};

enum vram_status vr_settings_visit_aftermath(const struct vr_aftermath *aftermath,
                                             enum vram_status (*visit)(const char *key, const char *json, size_t length, void *user),
                                             void *user) {
    struct vr_text accounts = {0};
    char key[64], total[24];
    vr_accounts_text(&aftermath->accounts, &accounts);
    enum vram_status status = vr_text_status(&accounts);
    if (status == VRAM_OK) status = visit(VR_ACCOUNTS_KEY, vr_text_string(&accounts), accounts.length, user);
    vr_text_release(&accounts);
    VR_TRY(status);
    (void)snprintf(key, sizeof key, "vram_device_%u_total_bytes", (unsigned)aftermath->accounts.device);
    const int length = snprintf(total, sizeof total, "%llu", (unsigned long long)aftermath->device_total_bytes);
    return visit(key, total, (size_t)length, user);
}

enum vram_status vr_settings_visit(const struct vr_copied *copied,
                                   enum vram_status (*visit)(const char *key, const char *json, size_t length, void *user), void *user) {
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        if (rows[i].there != NULL && !rows[i].there(copied)) continue;
        struct vr_text value = {0};
        struct vr_json json;
        vr_json_init(&json, &value, false);
        rows[i].put(copied, &json);
        enum vram_status status = vr_text_status(&value);
        if (status == VRAM_OK) status = visit(rows[i].key, vr_text_string(&value), value.length, user);
        vr_text_release(&value);
        VR_TRY(status);
    }
    return copied->aftermath == NULL ? VRAM_OK : vr_settings_visit_aftermath(copied->aftermath, visit, user);
}

struct filling {
    struct vr_builder *builder;
    struct vr_model *model;
};

static enum vram_status add_setting(const char *key, const char *json, size_t length, void *user) {
    const struct filling *filling = user;
    struct vr_model *model = filling->model;
    struct vr_setting made = {0};
    VR_TRY(vr_builder_string(filling->builder, key, strlen(key), &made.key));
    VR_TRY(vr_builder_string(filling->builder, json, length, &made.value));
    model->settings[model->setting_count++] = made;
    return VRAM_OK;
}

enum vram_status vr_fill_settings(const struct vr_copied *copied, struct vr_builder *builder, struct vr_model *model) {
    struct filling filling = {builder, model};
    model->settings = calloc(VR_COUNT_OF(rows) + AFTERMATH_ROWS, sizeof *model->settings);
    if (model->settings == NULL) return VRAM_NO_HOST_MEMORY;
    return vr_settings_visit(copied, add_setting, &filling);
}
