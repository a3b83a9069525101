#include "live/live_settings.h"

#include <stdio.h>

#include "base/json.h"
#include "live/live_accounts.h"

enum { OOM_ROWS = 3 };

static void put_conf(const struct vr_copied *copied, struct vr_json *json) { vr_json_string(json, NULL, copied->conf); }

// Writes the limit; an unbounded history shows sys.maxsize, as in PyTorch.
static void put_max_entries(const struct vr_copied *copied, struct vr_json *json) {
    vr_json_u64(json, NULL, copied->max_entries == VR_RING_MOST ? INT64_MAX : copied->max_entries);
}

static bool with_history(const struct vr_copied *copied) { return copied->has_history; }
static void put_overflowed(const struct vr_copied *copied, struct vr_json *json) {
    bool any = false;
    for (size_t i = 0; i < copied->device_count; i++) any = any || copied->devices[i].overflowed;
    vr_json_bool(json, NULL, any);
}

// Settings that are not options. config/options.def has the meaning of the keys (VR_RECORDED).
static const struct {
    const char *key;
    void (*put)(const struct vr_copied *copied, struct vr_json *json);
    bool (*there)(const struct vr_copied *copied); // NULL: always
} rows[] = {
    {"PYTORCH_CUDA_ALLOC_CONF", put_conf, NULL},
    {"trace_alloc_max_entries", put_max_entries, with_history},
    {"trace_alloc_overflowed", put_overflowed, with_history},
};

// Visits a setting with a number of bytes of the device.
static enum vram_status visit_bytes(const char *name, const struct vr_oom_facts *oom_facts, uint64_t bytes, vr_recorded_visitor visit,
                                    void *user) {
    char key[64], number[24];
    (void)snprintf(key, sizeof key, "vram_device_%u_%s_bytes", (unsigned)oom_facts->accounts.device, name);
    const int length = snprintf(number, sizeof number, "%llu", (unsigned long long)bytes);
    return visit(key, number, (size_t)length, user);
}

enum vram_status vr_settings_visit_oom(const struct vr_oom_facts *oom_facts, vr_recorded_visitor visit, void *user) {
    struct vr_text accounts = {0};
    vr_accounts_text(&oom_facts->accounts, &accounts);
    enum vram_status status = vr_text_status(&accounts);
    if (status == VRAM_OK) status = visit(VR_ACCOUNTS_KEY, vr_text_string(&accounts), accounts.length, user);
    vr_text_release(&accounts);
    VR_TRY(status);
    VR_TRY(visit_bytes("total", oom_facts, oom_facts->device_total_bytes, visit, user));
    if (oom_facts->limit_bytes >= oom_facts->device_total_bytes) return VRAM_OK;
    return visit_bytes("limit", oom_facts, oom_facts->limit_bytes, visit, user);
}

enum vram_status vr_settings_visit(const struct vr_copied *copied, vr_recorded_visitor visit, void *user) {
    VR_TRY(vr_recorded_visit(&copied->options, visit, user));
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
    return copied->oom_facts == NULL ? VRAM_OK : vr_settings_visit_oom(copied->oom_facts, visit, user);
}

struct settings_filling {
    struct vr_builder *builder;
    struct vr_model *model;
};

static enum vram_status add_setting(const char *key, const char *json, size_t length, void *user) {
    const struct settings_filling *filling = user;
    struct vr_model *model = filling->model;
    struct vr_setting made = {0};
    VR_TRY(vr_builder_string(filling->builder, key, strlen(key), &made.key));
    VR_TRY(vr_builder_string(filling->builder, json, length, &made.value));
    model->settings[model->setting_count++] = made;
    return VRAM_OK;
}

enum vram_status vr_live_model_settings(const struct vr_copied *copied, struct vr_builder *builder, struct vr_model *model) {
    struct settings_filling filling = {builder, model};
    model->settings = calloc(vr_recorded_most() + VR_COUNT_OF(rows) + OOM_ROWS, sizeof *model->settings);
    if (model->settings == NULL) return VRAM_NO_HOST_MEMORY;
    return vr_settings_visit(copied, add_setting, &filling);
}
