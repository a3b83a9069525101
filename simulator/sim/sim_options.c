// Options of the simulated devices, and their text syntax.
#include "sim/device/sim_card.h"

#include "sim/device/sim_device.h"
#include "sim/memory/sim_memory.h"
#include "vram/sim.h"

// ---- Defaults.

#define KERNEL_NS_MAX ((uint64_t)3600 * 1000000000) // an hour

static uint64_t or_default(uint64_t value, uint64_t standard) { return value == 0 ? standard : value; }

static void fill_in(struct vram_sim_options *filled) {
    struct vram_sim_options options = *filled;
    if (options.bytes != VRAM_SIM_BYTES_BACKED) options.backed = options.bytes == VRAM_SIM_BYTES_ALL;
    if (options.device_count == 0) options.device_count = options.model_count == 0 ? 1 : options.model_count;
    const bool driver = options.addresses == VRAM_SIM_DRIVER, windows = options.addresses == VRAM_SIM_WINDOWS;
    // One or two TiB below the top of the address space of Linux on x86-64, where a program's own mappings are.
    options.alloc_base = or_default(options.alloc_base, driver ? 0x7d0000000000u : windows ? 0x502000000u : 0x300000000000u);
    options.alloc_alignment = or_default(options.alloc_alignment, 2 * VR_MIB);
    options.alloc_small_alignment = or_default(options.alloc_small_alignment, 512);
    options.reserve_base = or_default(options.reserve_base, driver || windows ? 0x302000000u : 0x400000000000u);
    options.reserve_alignment = or_default(options.reserve_alignment, driver || windows ? 32 * VR_MIB : VR_GIB);
    if (options.driver_version == 0) options.driver_version = VR_SIM_DRIVER_VERSION;
    *filled = options;
}

static bool are_valid(const struct vram_sim_options *options) {
    bool enums = (unsigned)options->profile <= VRAM_SIM_FREE && (unsigned)options->addresses <= VRAM_SIM_WINDOWS &&
                 (unsigned)options->bytes <= VRAM_SIM_BYTES_NONE;
    bool sizes =
        options->kernel_ns <= KERNEL_NS_MAX && options->device_count <= VR_SIM_MAX_DEVICES && options->memory_bytes <= VR_SIM_MEMORY_MAX;
    if (options->model_count > VRAM_SIM_MOST_DEVICES) return false;
    for (uint32_t i = 0; i < options->model_count; i++)
        if (options->models[i] > vr_sim_card_count()) return false;
    uint64_t listed = 0;
    for (uint32_t i = 0; i < options->visible_count; i++) {
        if (options->visible_count > options->device_count || options->visible[i] >= options->device_count) return false;
        if ((listed >> options->visible[i] & 1) != 0) return false;
        listed |= (uint64_t)1 << options->visible[i];
    }
    bool bases = options->alloc_base < VR_SIM_LIMIT && options->reserve_base < VR_SIM_LIMIT;
    bool units = vr_is_power_of_2(options->alloc_alignment) && vr_is_power_of_2(options->alloc_small_alignment) &&
                 vr_is_power_of_2(options->reserve_alignment) && options->alloc_alignment < VR_SIM_LIMIT &&
                 options->alloc_small_alignment < VR_SIM_LIMIT && options->reserve_alignment < VR_SIM_LIMIT &&
                 options->reserve_alignment >= VR_SIM_GRANULARITY;
    return enums && sizes && bases && units;
}

bool vr_sim_options_complete(struct vram_sim_options *options) {
    fill_in(options);
    return are_valid(options);
}

const struct vr_sim_card *vr_sim_options_card(const struct vram_sim_options *options, uint32_t device) {
    return vr_sim_card_at(options->model_count == 0 ? 0 : options->models[device % options->model_count]);
}

uint64_t vr_sim_options_memory(const struct vram_sim_options *options, uint32_t device) {
    return or_default(options->memory_bytes, vr_sim_options_card(options, device)->total_bytes);
}

bool vr_sim_options_peers(const struct vram_sim_options *options, uint32_t device, uint32_t peer) {
    const struct vr_sim_card *card = vr_sim_options_card(options, device);
    return device != peer && !options->no_peers && vr_sim_card_has_peers(card) && card == vr_sim_options_card(options, peer);
}

// ---- Options from text: `key=value,key,...`.

enum value_kind { SIZE, COUNT, DURATION, FLAG, PROFILE, ADDRESSES, BYTES, CONTEXT, MODELS };

static const struct {
    const char *key;
    enum value_kind kind;
    size_t offset; // of the field in struct vram_sim_options
} keys[] = {
    {"devices", COUNT, offsetof(struct vram_sim_options, device_count)},
    {"memory", SIZE, offsetof(struct vram_sim_options, memory_bytes)},
    {"profile", PROFILE, offsetof(struct vram_sim_options, profile)},
    {"addresses", ADDRESSES, offsetof(struct vram_sim_options, addresses)},
    {"alloc_base", SIZE, offsetof(struct vram_sim_options, alloc_base)},
    {"alloc_alignment", SIZE, offsetof(struct vram_sim_options, alloc_alignment)},
    {"alloc_small_alignment", SIZE, offsetof(struct vram_sim_options, alloc_small_alignment)},
    {"reserve_base", SIZE, offsetof(struct vram_sim_options, reserve_base)},
    {"reserve_alignment", SIZE, offsetof(struct vram_sim_options, reserve_alignment)},
    {"manual", FLAG, offsetof(struct vram_sim_options, manual_completion)},
    {"backed", FLAG, offsetof(struct vram_sim_options, backed)},
    {"poison_aliases", FLAG, offsetof(struct vram_sim_options, poison_aliases)},
    {"network", FLAG, offsetof(struct vram_sim_options, network)},
    {"bytes", BYTES, offsetof(struct vram_sim_options, bytes)},
    {"no_peers", FLAG, offsetof(struct vram_sim_options, no_peers)},
    {"host_thread", FLAG, offsetof(struct vram_sim_options, host_thread)},
    {"kernel", DURATION, offsetof(struct vram_sim_options, kernel_ns)},
    {"page_cache", SIZE, offsetof(struct vram_sim_options, page_cache_bytes)},
    {"pinned", SIZE, offsetof(struct vram_sim_options, pinned_bytes)},
    {"context", CONTEXT, offsetof(struct vram_sim_options, context_bytes)},
    {"driver", COUNT, offsetof(struct vram_sim_options, driver_version)},
    {"device", MODELS, 0},
};

struct word {
    enum value_kind kind;
    const char *text;
    unsigned value;
};

static const struct word words[] = {
    {PROFILE, "cheap", VRAM_SIM_CHEAP},
    {PROFILE, "dear", VRAM_SIM_DEAR},
    {PROFILE, "free", VRAM_SIM_FREE},
    {ADDRESSES, "rising", VRAM_SIM_RISING},
    {ADDRESSES, "falling", VRAM_SIM_FALLING},
    {ADDRESSES, "reuse", VRAM_SIM_REUSE},
    {BYTES, "all", VRAM_SIM_BYTES_ALL},
    {BYTES, "sparse", VRAM_SIM_BYTES_SPARSE},
    {BYTES, "none", VRAM_SIM_BYTES_NONE},
    {ADDRESSES, "driver", VRAM_SIM_DRIVER},
    {ADDRESSES, "windows", VRAM_SIM_WINDOWS},
    {FLAG, "1", true},
    {FLAG, "true", true},
    {FLAG, "0", false},
    {FLAG, "false", false},
};

static const struct {
    const char *suffix;
    unsigned shift;
} units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};

// Part of the option text; not NUL-terminated.
struct span {
    const char *start;
    size_t length;
};

// Limits the length of a quoted piece in a message.
static int shown_length(struct span span) { return span.length < 100 ? (int)span.length : 100; }

static bool span_equals(struct span span, const char *text) {
    return strlen(text) == span.length && memcmp(span.start, text, span.length) == 0;
}

static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 16;
}

// Reads decimal digits, or hexadecimal ones after 0x, at the start of *span and moves *span past them.
static bool read_span_number(struct span *span, uint64_t *number) {
    unsigned base = 10;
    if (span->length > 2 && span->start[0] == '0' && span->start[1] == 'x') {
        base = 16;
        *span = (struct span){span->start + 2, span->length - 2};
    }
    uint64_t value = 0;
    size_t digits = 0;
    for (; digits < span->length && (unsigned)digit_of(span->start[digits]) < base; digits++)
        if (!vr_mul_u64(value, base, &value) || !vr_add_u64(value, (uint64_t)digit_of(span->start[digits]), &value)) return false;
    *span = (struct span){span->start + digits, span->length - digits};
    *number = value;
    return digits > 0;
}

static bool read_size(struct span span, uint64_t *size) {
    uint64_t number;
    if (!read_span_number(&span, &number)) return false;
    for (size_t i = 0; i < VR_COUNT_OF(units); i++)
        if (span_equals(span, units[i].suffix)) return vr_mul_u64(number, (uint64_t)1 << units[i].shift, size);
    return false;
}

static const struct {
    const char *suffix;
    uint64_t ns;
} times[] = {{"", 1}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};

static bool read_duration(struct span span, uint64_t *ns) {
    uint64_t number;
    if (!read_span_number(&span, &number)) return false;
    for (size_t i = 0; i < VR_COUNT_OF(times); i++)
        if (span_equals(span, times[i].suffix)) return vr_mul_u64(number, times[i].ns, ns);
    return false;
}

static bool store_word(enum value_kind kind, struct span value, void *field) {
    for (size_t i = 0; i < VR_COUNT_OF(words); i++) {
        if (words[i].kind != kind || !span_equals(value, words[i].text)) continue;
        if (kind == FLAG)
            *(bool *)field = words[i].value != 0;
        else if (kind == PROFILE)
            *(enum vram_sim_profile *)field = (enum vram_sim_profile)words[i].value;
        else if (kind == BYTES)
            *(enum vram_sim_bytes *)field = (enum vram_sim_bytes)words[i].value;
        else
            *(enum vram_sim_addresses *)field = (enum vram_sim_addresses)words[i].value;
        return true;
    }
    return false;
}

// Reads keys of known cards joined by plus signs: `h100+t4`.
static bool store_models(struct span value, struct vram_sim_options *options) {
    uint8_t models[VRAM_SIM_MOST_DEVICES] = {0};
    uint32_t count = 0;
    for (;;) {
        const char *plus = memchr(value.start, '+', value.length);
        const size_t length = plus == NULL ? value.length : (size_t)(plus - value.start);
        const uint32_t found = vr_sim_card_find(value.start, length);
        if (found == 0 || count == VRAM_SIM_MOST_DEVICES) return false;
        models[count++] = (uint8_t)found;
        if (plus == NULL) break;
        value = (struct span){plus + 1, value.length - length - 1};
    }
    memcpy(options->models, models, sizeof models);
    options->model_count = count;
    return true;
}

static bool store_value(enum value_kind kind, struct span value, void *field) {
    uint64_t number;
    if (kind == MODELS) return store_models(value, field);
    if (kind == CONTEXT && span_equals(value, "device")) {
        *(uint64_t *)field = VRAM_SIM_CONTEXT_OF_DEVICE;
        return true;
    }
    if (kind != SIZE && kind != COUNT && kind != CONTEXT && kind != DURATION) return store_word(kind, value, field);
    if (!(kind == DURATION ? read_duration(value, &number) : read_size(value, &number))) return false;
    if (kind != COUNT) {
        *(uint64_t *)field = number;
        return true;
    }
    if (number > UINT32_MAX) return false;
    *(uint32_t *)field = (uint32_t)number;
    return true;
}

static enum vram_status parse_item(const char *text, struct span item, struct vram_sim_options *options, struct vram_error *error) {
    const char *equal = memchr(item.start, '=', item.length);
    struct span key = {item.start, equal == NULL ? item.length : (size_t)(equal - item.start)};
    struct span value = {"1", 1};
    if (equal != NULL) value = (struct span){equal + 1, item.length - key.length - 1};
    uint64_t at = (uint64_t)(key.start - text);
    for (size_t i = 0; i < VR_COUNT_OF(keys); i++) {
        if (!span_equals(key, keys[i].key)) continue;
        if (equal == NULL && keys[i].kind != FLAG) return vr_fail(error, VRAM_BAD_OPTION, at, "%s needs a value", keys[i].key);
        if (store_value(keys[i].kind, value, (char *)options + keys[i].offset)) {
            // `backed` resets `bytes`, so the later of the two options wins.
            if (keys[i].offset == offsetof(struct vram_sim_options, backed)) options->bytes = VRAM_SIM_BYTES_BACKED;
            return VRAM_OK;
        }
        at = (uint64_t)(value.start - text);
        return vr_fail(error, VRAM_BAD_OPTION, at, "%s: unknown value '%.*s'", keys[i].key, shown_length(value), value.start);
    }
    return vr_fail(error, VRAM_BAD_OPTION, at, "unknown simulator option '%.*s'", shown_length(key), key.start);
}

enum vram_status vr_sim_parse_into(const char *text, struct vram_sim_options *options, struct vram_error *error) {
    if (text == NULL || options == NULL) return VRAM_INVALID_ARGUMENT;
    struct vram_sim_options parsed = *options;
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, ",");
        if (length > 0) VR_TRY(parse_item(text, (struct span){at, length}, &parsed, error));
        at += length + (at[length] == ',');
    }
    *options = parsed;
    return VRAM_OK;
}

enum vram_status vram_sim_parse(const char *text, struct vram_sim_options *options, struct vram_error *error) {
    struct vram_sim_options parsed = {0};
    if (options == NULL || text == NULL)
        return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "the text and the pointer for the options must not be NULL");
    VR_TRY(vr_sim_parse_into(text, &parsed, error));
    *options = parsed;
    return VRAM_OK;
}
