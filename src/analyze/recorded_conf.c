// The settings of a recording as an option string.
#include "analyze/recorded_conf.h"

#include "config/options.h"

static void begin_key(struct vr_text *conf, const char *key) {
    if (conf->length > 0) vr_text_puts(conf, ",");
    vr_text_puts(conf, key);
    vr_text_puts(conf, ":");
}

// *number untouched when the setting is absent or not a number.
static bool number_setting(const struct vr_model *model, const char *key, double *number) {
    const char *text = vr_model_setting(model, key);
    if (text == NULL) return false;
    char *end = NULL;
    const double value = strtod(text, &end);
    if (end == text) return false;
    *number = value;
    return true;
}

// The recorded option string without its JSON quotes, NUL-terminated in `text`; "" when there is none or it holds escapes.
static void recorded_string(const struct vr_model *model, char *text, size_t capacity) {
    static const char *const keys[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
    text[0] = '\0';
    for (size_t i = 0; i < VR_COUNT_OF(keys) && text[0] == '\0'; i++) {
        const char *value = vr_model_setting(model, keys[i]);
        const size_t length = value == NULL ? 0 : strlen(value);
        if (length < 3 || length - 2 >= capacity || value[0] != '"' || strchr(value, '\\') != NULL) continue;
        memcpy(text, value + 1, length - 2);
        text[length - 2] = '\0';
    }
}

// A dictionary {"1": 0, "2": 8, ...}: MiB to divisor. False, with the divisors untouched, when it is not that.
static bool read_divisions(const char *text, uint32_t divisors[VR_ROUNDUP_BUCKETS]) {
    uint32_t found[VR_ROUNDUP_BUCKETS] = {0};
    for (const char *at = strchr(text, '"'); at != NULL; at = strchr(at, '"')) {
        char *end = NULL;
        const unsigned long long key = strtoull(at + 1, &end, 10);
        if (end == at + 1 || *end != '"') return false;
        at = strchr(end, ':');
        if (at == NULL) return false;
        const unsigned long long value = strtoull(at + 1, &end, 10);
        if (end == at + 1 || !vr_is_power_of_2(key) || vr_log2_floor(key) >= VR_ROUNDUP_BUCKETS || value > UINT32_MAX) return false;
        found[vr_log2_floor(key)] = (uint32_t)value;
        at = end;
    }
    memcpy(divisors, found, sizeof found);
    return true;
}

// Written only when a divisor says something.
static void append_divisions(const struct vr_model *model, const struct vr_options *named, struct vr_text *conf) {
    const char *text = vr_model_setting(model, "roundup_power2_divisions");
    uint32_t divisors[VR_ROUNDUP_BUCKETS];
    bool any = false;
    memcpy(divisors, named->roundup_divisions, sizeof divisors);
    if (text != NULL) (void)read_divisions(text, divisors);
    for (unsigned i = 0; i < VR_ROUNDUP_BUCKETS; i++) any = any || divisors[i] > 1;
    if (!any) return;
    begin_key(conf, "roundup_power2_divisions");
    for (unsigned i = 0; i < VR_ROUNDUP_BUCKETS; i++) vr_text_printf(conf, "%s%llu:%u", i == 0 ? "[" : ",", 1ull << i, divisors[i]);
    vr_text_puts(conf, "]");
}

static void append_sizes(const struct vr_model *model, const struct vr_options *named, struct vr_text *conf) {
    struct vr_options defaults;
    vr_options_init(&defaults);
    double split_bytes = named->max_split_bytes == VR_UNLIMITED ? -1 : (double)named->max_split_bytes;
    (void)number_setting(model, "max_split_size", &split_bytes);
    // PyTorch writes "no limit" as -1; older versions as the largest integer.
    if (split_bytes >= (double)VR_MIB && split_bytes < 1e18) {
        begin_key(conf, "max_split_size_mb");
        vr_text_printf(conf, "%llu", (unsigned long long)(split_bytes / (double)VR_MIB));
    }
    if (named->large_segment_bytes != defaults.large_segment_bytes) {
        begin_key(conf, "large_segment_size_mb");
        vr_text_printf(conf, "%llu", (unsigned long long)(named->large_segment_bytes / VR_MIB));
    }
    if (named->max_non_split_rounding_bytes != named->large_segment_bytes) {
        begin_key(conf, "max_non_split_rounding_mb");
        vr_text_printf(conf, "%llu", (unsigned long long)(named->max_non_split_rounding_bytes / VR_MIB));
    }
}

void vr_recorded_conf(const struct vr_model *model, struct vr_text *conf) {
    char text[1024];
    recorded_string(model, text, sizeof text);
    struct vr_options named;
    vr_options_init(&named);
    // A string that this version does not understand says nothing; the structured values still do.
    if (vr_options_parse(&named, text, NULL) != VRAM_OK) vr_options_init(&named);

    const char *expandable = vr_model_setting(model, "expandable_segments");
    if (expandable != NULL ? strcmp(expandable, "true") == 0 : named.expandable_segments) {
        begin_key(conf, "expandable_segments");
        vr_text_puts(conf, "True");
    }
    append_sizes(model, &named, conf);
    double threshold = named.garbage_collection_threshold;
    (void)number_setting(model, "garbage_collection_threshold", &threshold);
    if (threshold > 0 && threshold < 1) {
        begin_key(conf, "garbage_collection_threshold");
        vr_text_printf(conf, "%.6g", threshold);
    }
    append_divisions(model, &named, conf);
    const char *release_lock = vr_model_setting(model, "release_lock_on_cudamalloc");
    if (release_lock != NULL ? strcmp(release_lock, "true") == 0 : named.release_lock_on_malloc) {
        begin_key(conf, "release_lock_on_cudamalloc");
        vr_text_puts(conf, "True");
    }
}
