#include "model/conf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "support/random.h"

static const char *const kind_names[CONF_KIND_COUNT] = {
#define CONF_NAME(name, text) text,
    CONF_KINDS(CONF_NAME)
#undef CONF_NAME
};

const char *conf_kind_name(enum conf_kind kind) { return kind_names[kind]; }

bool conf_has_pools(enum conf_kind kind) { return kind == CONF_POOLS || kind == CONF_CAPTURE || kind == CONF_REUSE; }

bool conf_kind_parse(const char *name, enum conf_kind *kind) {
    for (size_t i = 0; i < CONF_KIND_COUNT; i++) {
        if (strcmp(name, kind_names[i]) != 0) continue;
        *kind = (enum conf_kind)i;
        return true;
    }
    return false;
}

static void append(char *text, const char *format, ...) VRAM_PRINTF(2, 3);
static void append(char *text, const char *format, ...) {
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    if (used) text[used] = ',';
    (void)vsnprintf(text + used + (used ? 1 : 0), CONF_TEXT - used - 1, format, arguments);
    va_end(arguments);
}

// Draws old rules or the default ones.
static void draw_rules(uint64_t *random, struct naive_conf *conf, char *text) {
    conf->pytorch = vr_random_below(random, 2) ? 206 : 215;
    if (conf->pytorch == 206) append(text, "pytorch:2.6");
    conf->padding_bytes = vr_random_below(random, 8) ? 0 : 1 + (uint32_t)vr_random_below(random, 600);
    if (conf->padding_bytes) append(text, "request_padding_bytes:%u", conf->padding_bytes);
}

static void draw_large_segment(uint64_t *random, struct naive_conf *conf, char *text) {
    static const unsigned sizes[] = {11, 12, 16, 20, 24, 32};
    const unsigned mib = sizes[vr_random_below(random, VR_COUNT_OF(sizes))];
    conf->has_large_segment = true;
    conf->large_segment_bytes = mib * VR_MIB;
    append(text, "large_segment_size_mb:%u", mib);
}

// Draws split limits. Both must be at least the large segment's size, which is at most 32 MiB here.
static void draw_split(uint64_t *random, struct naive_conf *conf, char *text) {
    static const unsigned splits[] = {32, 33, 40, 64, 100, 128, 200};
    static const unsigned roundings[] = {32, 48, 64, 100};
    const unsigned split = splits[vr_random_below(random, VR_COUNT_OF(splits))];
    conf->has_max_split = true;
    conf->max_split_bytes = split * VR_MIB;
    append(text, "max_split_size_mb:%u", split);
    if (vr_random_below(random, 2)) return;
    const unsigned rounding = roundings[vr_random_below(random, VR_COUNT_OF(roundings))];
    conf->has_non_split_rounding = true;
    conf->non_split_rounding_bytes = rounding * VR_MIB;
    append(text, "max_non_split_rounding_mb:%u", rounding);
}

static void draw_gc(uint64_t *random, struct naive_conf *conf, char *text) {
    static const char *const thresholds[] = {"0.1", "0.35", "0.5", "0.6", "0.8", "0.95"};
    const char *threshold = thresholds[vr_random_below(random, VR_COUNT_OF(thresholds))];
    conf->has_gc = true;
    conf->gc_threshold = strtod(threshold, NULL);
    append(text, "garbage_collection_threshold:%s", threshold);
}

static void draw_divisions(uint64_t *random, struct naive_conf *conf, char *text) {
    conf->has_divisions = true;
    if (vr_random_below(random, 2)) {
        const uint32_t divisor = 1u << vr_random_below(random, 6);
        for (size_t i = 0; i < NAIVE_BUCKETS; i++) conf->divisions[i] = divisor;
        append(text, "roundup_power2_divisions:%u", (unsigned)divisor);
        return;
    }
    // Three increasing keys: the first also applies below it, sizes between keys get 0, `>` applies above the last.
    unsigned index = 0;
    char list[128] = "";
    for (size_t entry = 0; entry < 3; entry++) {
        const uint32_t divisor = 1u << vr_random_below(random, 5);
        const unsigned step = 1 + (unsigned)vr_random_below(random, 3);
        index = entry ? index + step : (unsigned)vr_random_below(random, 6);
        if (entry == 0)
            for (unsigned below = 0; below < index; below++) conf->divisions[below] = divisor;
        conf->divisions[index] = divisor;
        const size_t used = strlen(list);
        (void)snprintf(list + used, sizeof list - used, "%u:%u,", 1u << index, (unsigned)divisor);
    }
    const uint32_t last = 1u << vr_random_below(random, 4);
    for (unsigned above = index + 1; above < NAIVE_BUCKETS; above++) conf->divisions[above] = last;
    append(text, "roundup_power2_divisions:[%s>:%u]", list, (unsigned)last);
}

// Draws Ascend's alignment. The hardest case is a multiple of 512 B that is not a power of two.
static void draw_alignment(uint64_t *random, struct naive_conf *conf, char *text) {
    static const unsigned steps[] = {0, 1, 3, 8, 16, 16};
    conf->has_alignment = true;
    conf->alignment_kib = steps[vr_random_below(random, VR_COUNT_OF(steps))];
    append(text, "base_addr_aligned_kb:%u", conf->alignment_kib);
}

static void draw_expandable(bool on, struct naive_conf *conf, char *text) {
    conf->has_expandable = true;
    conf->expandable = on;
    append(text, "expandable_segments:%s", on ? "True" : "False");
}

static void draw_fraction(uint64_t *random, struct naive_conf *conf, char *text) {
    static const char *const fractions[] = {"0.25", "0.5", "0.7", "0.999", "1.0"};
    const char *fraction = fractions[vr_random_below(random, VR_COUNT_OF(fractions))];
    conf->has_fraction = true;
    conf->fraction = strtod(fraction, NULL);
    append(text, "per_process_memory_fraction:%s", fraction);
}

static void draw_throw(uint64_t *random, struct naive_conf *conf, char *text) {
    conf->has_throw = true;
    conf->throw_on_oom = vr_random_below(random, 3) > 0;
    append(text, "throw_on_cudamalloc_oom:%s", conf->throw_on_oom ? "True" : "False");
}

static void draw_reserve(uint64_t *random, struct naive_conf *conf, char *text) {
    static const char *const fractions[] = {"0.05", "0.125", "0.3", "0.5", "1.5"};
    const char *fraction = fractions[vr_random_below(random, VR_COUNT_OF(fractions))];
    conf->has_reserve = true;
    conf->reserve_fraction = strtod(fraction, NULL);
    append(text, "expandable_segments_reserve:%s", fraction);
}

static void draw_reuse(bool at_run_time, uint64_t *random, struct naive_conf *conf, char *text) {
    conf->has_reuse = true;
    conf->reuse = !at_run_time || vr_random_below(random, 2);
    append(text, "graph_capture_record_stream_reuse:%s", conf->reuse ? "True" : "False");
}

void conf_draw(enum conf_kind kind, bool at_run_time, uint64_t *random, struct naive_conf *conf, char *text) {
    const bool mixed = kind == CONF_MIXED || conf_has_pools(kind);
    memset(conf, 0, sizeof *conf);
    text[0] = '\0';
    if (!at_run_time) draw_rules(random, conf, text);
    if (mixed ? vr_random_below(random, 4) == 0 : kind != CONF_DEFAULT && vr_random_below(random, 8) == 0)
        draw_large_segment(random, conf, text);
    if (kind == CONF_EXPANDABLE || kind == CONF_RESERVE) draw_expandable(true, conf, text);
    if (mixed && vr_random_below(random, 2)) draw_expandable(vr_random_below(random, 2), conf, text);
    if (kind == CONF_SPLIT || (mixed && vr_random_below(random, 2))) draw_split(random, conf, text);
    if (kind == CONF_GC && vr_random_below(random, 3) == 0) draw_split(random, conf, text);
    if (kind == CONF_GC || (mixed && vr_random_below(random, 2))) draw_gc(random, conf, text);
    if (kind == CONF_ROUNDUP || (mixed && vr_random_below(random, 3) == 0)) draw_divisions(random, conf, text);
    if (kind == CONF_ROUNDUP && vr_random_below(random, 2)) draw_expandable(true, conf, text);
    if (kind == CONF_REJECT || (mixed && vr_random_below(random, 4) == 0)) draw_throw(random, conf, text);
    if (kind == CONF_REJECT || (mixed && !at_run_time && vr_random_below(random, 4) == 0)) draw_fraction(random, conf, text);
    if (kind == CONF_RESERVE || (mixed && vr_random_below(random, 4) == 0)) draw_reserve(random, conf, text);
    if ((kind == CONF_EXPANDABLE || mixed) && vr_random_below(random, 3) == 0) draw_alignment(random, conf, text);
    if (conf_has_pools(kind) && vr_random_below(random, 3) == 0) {
        conf->has_share = true;
        conf->share = vr_random_below(random, 3) > 0;
        append(text, "share_live_pools:%s", conf->share ? "True" : "False");
    }
    if (mixed && vr_random_below(random, 3) == 0) {
        conf->has_reclaim = true;
        conf->reclaim = vr_random_below(random, 3) > 0;
        append(text, "reclaim_streams:%s", conf->reclaim ? "True" : "False");
    }
    if (mixed && vr_random_below(random, 3) == 0) {
        conf->has_reuse_oversize = true;
        conf->reuse_oversize = vr_random_below(random, 3) > 0;
        append(text, "expandable_segments_reuse_oversize:%s", conf->reuse_oversize ? "True" : "False");
    }
    if (mixed && vr_random_below(random, 3) == 0) {
        conf->has_search = true;
        conf->search_after_wait = vr_random_below(random, 3) == 0;
        append(text, "search_after_wait:%s", conf->search_after_wait ? "True" : "False");
    }
    if (kind == CONF_REUSE && (!at_run_time || vr_random_below(random, 4) == 0)) draw_reuse(at_run_time, random, conf, text);
}
