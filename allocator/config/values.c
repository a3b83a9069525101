#include "config/values.h"

#include <assert.h>
#include <stdio.h>

// Larger divisors would matter only to single requests of more than 1 TiB.
#define MAX_DIVISOR          ((uint64_t)1 << 31)
#define MAX_REGISTER_THREADS 128
// PyTorch never reserves more than nine eighths of the device's memory.
#define MAX_RESERVE_FRACTION 1.125

static void *field_of(const struct vr_option_row *row, struct vr_options *options) { return (char *)options + row->field; }
static const void *const_field_of(const struct vr_option_row *row, const struct vr_options *options) {
    return (const char *)options + row->field;
}

// Returns BAD_OPTION at the current token, naming the key and what would be right.
static enum vram_status bad_value(const struct vr_option_row *row, const struct vr_lexer *lexer, const char *wanted) {
    return vr_lex_fail(lexer, row->key, wanted);
}

// Parses the current word as a whole number with nothing after it.
static bool whole_word(const struct vr_lexer *lexer, uint64_t *value) {
    const char *end;
    return lexer->token == VR_TOKEN_WORD && vr_read_whole(lexer->word, value, &end) && *end == '\0';
}

// --- booleans ---------------------------------------------------------------------------------------------------------
static enum vram_status read_boolean(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    static const struct {
        const char *word;
        bool value;
    } words[] = {{"True", true}, {"False", false}, {"true", true}, {"false", false},
                 {"1", true},    {"0", false},     {"on", true},   {"off", false}};
    for (size_t i = 0; i < VR_COUNT_OF(words) && lexer->token == VR_TOKEN_WORD; i++) {
        if (strcmp(lexer->word, words[i].word) != 0) continue;
        *(bool *)field_of(row, options) = words[i].value;
        return vr_lex_next(lexer);
    }
    return bad_value(row, lexer, "True or False");
}

static void print_boolean(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text) {
    vr_text_puts(text, *(const bool *)const_field_of(row, options) ? "True" : "False");
}

static void record_boolean(const struct vr_option_row *row, const struct vr_options *options, struct vr_json *json) {
    vr_json_bool(json, NULL, *(const bool *)const_field_of(row, options));
}

static void recall_boolean(const struct vr_option_row *row, struct vr_options *options, const char *value) {
    const bool on = strcmp(value, "true") == 0;
    if (on || strcmp(value, "false") == 0) *(bool *)field_of(row, options) = on;
}

// --- sizes --------------------------------------------------------------------------------------------------------------
// Returns the MiB per unit of a size's suffix, in either case: M, G, T, optionally followed by B or iB, all binary. 0 for another suffix.
static uint64_t unit_mib(const char *suffix) {
    static const char units[] = "mgt", ends[][3] = {"", "b", "ib"};
    char lower[4] = "";
    if (*suffix == '\0') return 1;
    for (size_t i = 0; suffix[i] != '\0'; i++) {
        if (i == 3) return 0;
        lower[i] = suffix[i] >= 'A' && suffix[i] <= 'Z' ? (char)(suffix[i] - 'A' + 'a') : suffix[i];
    }
    const char *unit = strchr(units, lower[0]);
    for (size_t i = 0; i < VR_COUNT_OF(ends); i++)
        if (unit != NULL && strcmp(lower + 1, ends[i]) == 0) return (uint64_t)1 << (10 * (unit - units));
    return 0;
}

// Returns whether -1 means no limit, which is how PyTorch's snapshots write it and programs read it back.
static bool is_unlimited_by_default(const struct vr_option_row *row) {
    struct vr_options defaults;
    vr_options_init(&defaults);
    return *(const uint64_t *)const_field_of(row, &defaults) == VR_UNLIMITED;
}

static enum vram_status read_size(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    const uint64_t most_mib = UINT64_MAX / VR_MIB;
    const uint64_t smallest = row->smallest == LARGE_SEGMENT ? options->large_segment_bytes / VR_MIB : row->smallest;
    const char *suffix;
    uint64_t number;
    if (lexer->token == VR_TOKEN_WORD && strcmp(lexer->word, "-1") == 0 && is_unlimited_by_default(row)) {
        *(uint64_t *)field_of(row, options) = VR_UNLIMITED;
        return vr_lex_next(lexer);
    }
    if (lexer->token != VR_TOKEN_WORD || !vr_read_whole(lexer->word, &number, &suffix) || unit_mib(suffix) == 0)
        return bad_value(row, lexer, "a whole number of MiB, or a number with a unit (512MiB, 6GiB)");
    uint64_t mib;
    // Larger values become the largest that fits, as in PyTorch.
    if (!vr_mul_u64(number, unit_mib(suffix), &mib) || mib > most_mib) mib = most_mib;
    if (mib < smallest) {
        char wanted[64];
        (void)snprintf(wanted, sizeof wanted, "at least %llu MiB", (unsigned long long)smallest);
        return bad_value(row, lexer, wanted);
    }
    *(uint64_t *)field_of(row, options) = mib * VR_MIB;
    return vr_lex_next(lexer);
}

static void print_size(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text) {
    const uint64_t bytes = *(const uint64_t *)const_field_of(row, options);
    if (bytes == VR_UNLIMITED)
        vr_text_puts(text, "unlimited");
    else
        vr_text_printf(text, "%llu", (unsigned long long)(bytes / VR_MIB));
}

static void record_size(const struct vr_option_row *row, const struct vr_options *options, struct vr_json *json) {
    const uint64_t bytes = *(const uint64_t *)const_field_of(row, options);
    if (bytes == VR_UNLIMITED) {
        vr_json_i64(json, NULL, -1);
    } else {
        vr_json_u64(json, NULL, bytes);
    }
}

// PyTorch writes "no limit" as -1; older versions wrote the largest integer.
static void recall_size(const struct vr_option_row *row, struct vr_options *options, const char *value) {
    const char *end;
    double bytes = -1;
    if (*value != '-' && !vr_read_decimal(value, &bytes, &end)) return;
    const double least = row->smallest == 0 ? 0 : (double)VR_MIB;
    *(uint64_t *)field_of(row, options) = bytes >= least && bytes < 1e18 ? (uint64_t)bytes : VR_UNLIMITED;
}

// --- fractions ------------------------------------------------------------------------------------------------------------
static enum vram_status read_fraction(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    const bool open = row->kind == VR_KIND_OPEN_FRACTION;
    const char *end;
    double value;
    if (lexer->token != VR_TOKEN_WORD || !vr_read_decimal(lexer->word, &value, &end) || *end != '\0' || value > 1.0 ||
        (open && (value <= 0.0 || value >= 1.0)))
        return bad_value(row, lexer, open ? "a number above 0 and below 1" : "a number from 0 to 1");
    *(double *)field_of(row, options) = value;
    return vr_lex_next(lexer);
}

static void print_number(double value, struct vr_text *text) {
    char number[32];
    vr_print_decimal(value, number);
    vr_text_puts(text, number);
}

static void print_fraction(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text) {
    print_number(*(const double *)const_field_of(row, options), text);
}

// Writes whole numbers as floats, too, as PyTorch does.
static void record_fraction(const struct vr_option_row *row, const struct vr_options *options, struct vr_json *json) {
    const double fraction = *(const double *)const_field_of(row, options);
    if (fraction == 0.0) {
        vr_json_raw(json, NULL, "0.0");
    } else {
        vr_json_double(json, NULL, fraction);
    }
}

// Rounds to six digits, the precision of a user's value; further digits may come from a float conversion.
static void recall_fraction(const struct vr_option_row *row, struct vr_options *options, const char *value) {
    const char *end;
    char rounded[32];
    double fraction;
    if (!vr_read_decimal(value, &fraction, &end)) return;
    (void)snprintf(rounded, sizeof rounded, "%.6g", fraction);
    *(double *)field_of(row, options) = fraction > 0 && fraction < 1 ? strtod(rounded, NULL) : 0.0;
}

// --- roundup_power2_divisions ---------------------------------------------------------------------------------------------
// Reads one "MiB:N" or ">:N". *last is the index of the last key that was a number, *first whether there was none so far.
static enum vram_status read_division(const struct vr_option_row *row, uint32_t *divisions, unsigned *last, bool *first,
                                      struct vr_lexer *lexer) {
    const bool rest = lexer->token == VR_TOKEN_WORD && strcmp(lexer->word, ">") == 0;
    uint64_t key = 1, value;
    if (!rest && (!whole_word(lexer, &key) || !vr_is_power_of_2(key))) return bad_value(row, lexer, "a power of two in MiB, or '>'");
    VR_TRY(vr_lex_next(lexer));
    VR_TRY(vr_lex_expect(lexer, VR_TOKEN_COLON, "':'"));
    if (!whole_word(lexer, &value) || (value != 0 && !vr_is_power_of_2(value)) || value > MAX_DIVISOR)
        return bad_value(row, lexer, "0 or a power of two up to 2147483648");
    unsigned index = vr_log2_floor(key);
    if (index >= VR_ROUNDUP_BUCKETS) index = VR_ROUNDUP_BUCKETS - 1;
    // The first number also fills the buckets below it; '>' begins after the last number (after index 0 if there was none).
    const unsigned from = rest ? *last + 1 : *first ? 0 : index;
    const unsigned to = rest ? VR_ROUNDUP_BUCKETS - 1 : index;
    for (unsigned i = from; i <= to; i++) divisions[i] = (uint32_t)value;
    if (!rest) {
        *last = index;
        *first = false;
    }
    return vr_lex_next(lexer);
}

static enum vram_status read_divisions(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    uint32_t *divisions = field_of(row, options);
    if (lexer->token != VR_TOKEN_OPEN) {
        uint64_t value;
        if (!whole_word(lexer, &value) || !vr_is_power_of_2(value) || value > MAX_DIVISOR)
            return bad_value(row, lexer, "a power of two up to 2147483648, or a list [MiB:N,...,>:N]");
        for (unsigned i = 0; i < VR_ROUNDUP_BUCKETS; i++) divisions[i] = (uint32_t)value;
        return vr_lex_next(lexer);
    }
    unsigned last = 0;
    bool first = true;
    memset(divisions, 0, sizeof options->roundup_divisions);
    VR_TRY(vr_lex_next(lexer));
    while (lexer->token != VR_TOKEN_CLOSE) {
        VR_TRY(read_division(row, divisions, &last, &first, lexer));
        if (lexer->token != VR_TOKEN_CLOSE) VR_TRY(vr_lex_expect(lexer, VR_TOKEN_COMMA, "',' or ']'"));
    }
    return vr_lex_next(lexer);
}

static void print_divisions(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text) {
    const uint32_t *divisions = const_field_of(row, options);
    unsigned low = 0, high = VR_ROUNDUP_BUCKETS - 1;
    while (low < high && divisions[low + 1] == divisions[0]) low++;
    while (high > low && divisions[high - 1] == divisions[VR_ROUNDUP_BUCKETS - 1]) high--;
    if (low == VR_ROUNDUP_BUCKETS - 1 && divisions[0] != 0) {
        vr_text_printf(text, "%u", divisions[0]);
        return;
    }
    // Print every bucket from the end of the first run of equal values to the beginning of the last run, which '>' covers.
    vr_text_printf(text, "[%u:%u", 1u << low, divisions[low]);
    for (unsigned i = low + 1; i < high; i++) vr_text_printf(text, ",%u:%u", 1u << i, divisions[i]);
    if (high > low) vr_text_printf(text, ",>:%u", divisions[high]);
    vr_text_puts(text, "]");
}

// Writes a dictionary of all powers of two: MiB to divisor.
static void record_divisions(const struct vr_option_row *row, const struct vr_options *options, struct vr_json *json) {
    const uint32_t *divisions = const_field_of(row, options);
    vr_json_object(json, NULL);
    for (unsigned i = 0; i < VR_ROUNDUP_BUCKETS; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "%u", 1u << i);
        vr_json_u64(json, key, divisions[i]);
    }
    vr_json_object_end(json);
}

// Divisors of 0 and 1 mean the same: if there is no other divisor, sizes are not rounded.
static void recall_divisions(const struct vr_option_row *row, struct vr_options *options, const char *value) {
    uint32_t found[VR_ROUNDUP_BUCKETS] = {0};
    bool any = false;
    for (const char *at = strchr(value, '"'); at != NULL; at = strchr(at, '"')) {
        const char *end;
        uint64_t key, divisor;
        if (!vr_read_whole(at + 1, &key, &end) || *end != '"' || (at = strchr(end, ':')) == NULL) return;
        at += 1 + strspn(at + 1, " ");
        if (!vr_read_whole(at, &divisor, &end) || !vr_is_power_of_2(key) || vr_log2_floor(key) >= VR_ROUNDUP_BUCKETS ||
            divisor > UINT32_MAX)
            return;
        found[vr_log2_floor(key)] = (uint32_t)divisor;
        any = any || divisor > 1;
        at = end;
    }
    if (!any) memset(found, 0, sizeof found);
    memcpy(field_of(row, options), found, sizeof found);
}

// --- backend --------------------------------------------------------------------------------------------------------------
static enum vram_status read_backend(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    static const struct {
        const char *word;
        enum vr_backend value;
    } words[] = {{"native", VR_BACKEND_NATIVE}, {"cudaMallocAsync", VR_BACKEND_ASYNC}, {"hipMallocAsync", VR_BACKEND_ASYNC}};
    for (size_t i = 0; i < VR_COUNT_OF(words) && lexer->token == VR_TOKEN_WORD; i++) {
        if (strcmp(lexer->word, words[i].word) != 0) continue;
        *(enum vr_backend *)field_of(row, options) = words[i].value;
        return vr_lex_next(lexer);
    }
    return bad_value(row, lexer, "native or cudaMallocAsync");
}

static void print_backend(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text) {
    vr_text_puts(text, *(const enum vr_backend *)const_field_of(row, options) == VR_BACKEND_ASYNC ? "cudaMallocAsync" : "native");
}

// --- threads --------------------------------------------------------------------------------------------------------------
static enum vram_status read_threads(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    uint64_t value;
    if (!whole_word(lexer, &value) || !vr_is_power_of_2(value) || value > MAX_REGISTER_THREADS)
        return bad_value(row, lexer, "a power of two from 1 to 128");
    *(uint32_t *)field_of(row, options) = (uint32_t)value;
    return vr_lex_next(lexer);
}

static void print_whole(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text) {
    vr_text_printf(text, "%u", *(const uint32_t *)const_field_of(row, options));
}

static void record_threads(const struct vr_option_row *row, const struct vr_options *options, struct vr_json *json) {
    vr_json_u64(json, NULL, *(const uint32_t *)const_field_of(row, options));
}

static void recall_threads(const struct vr_option_row *row, struct vr_options *options, const char *value) {
    const char *end;
    uint64_t threads;
    if (vr_read_whole(value, &threads, &end) && threads <= UINT32_MAX) *(uint32_t *)field_of(row, options) = (uint32_t)threads;
}

// --- bytes ----------------------------------------------------------------------------------------------------------------
static enum vram_status read_bytes(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    uint64_t value;
    if (!whole_word(lexer, &value) || value > VR_PADDING_MAX) return bad_value(row, lexer, "a number of bytes from 0 to 4096");
    *(uint32_t *)field_of(row, options) = (uint32_t)value;
    return vr_lex_next(lexer);
}

static enum vram_status read_alignment(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    uint64_t value;
    if (!whole_word(lexer, &value) || value > VR_ALIGNMENT_KIB_MAX) return bad_value(row, lexer, "a number of KiB from 0 to 16");
    *(uint32_t *)field_of(row, options) = (uint32_t)value;
    return vr_lex_next(lexer);
}

// --- reservations -----------------------------------------------------------------------------------------------------------
static enum vram_status read_one_reserve(const struct vr_option_row *row, struct vr_reserve *reserve, struct vr_lexer *lexer) {
    const char *suffix;
    double value;
    struct vr_reserve result = {0, 0};
    bool ok = lexer->token == VR_TOKEN_WORD && vr_read_decimal(lexer->word, &value, &suffix) && value > 0.0;
    if (ok && *suffix == '\0') {
        result.fraction = value < MAX_RESERVE_FRACTION ? value : MAX_RESERVE_FRACTION;
    } else if (ok) {
        const double bytes = value * (double)unit_mib(suffix) * (double)VR_MIB;
        ok = bytes >= 1.0;
        if (ok) result.bytes = bytes < 18446744073709551616.0 /* 2^64 */ ? (uint64_t)bytes : UINT64_MAX;
    }
    if (!ok) return bad_value(row, lexer, "a positive fraction of the device's memory, or a number with a unit (4G, 512MiB)");
    *reserve = result;
    return vr_lex_next(lexer);
}

static void print_one_reserve(const struct vr_reserve *reserve, struct vr_text *text) {
    if (reserve->bytes == 0 && !(reserve->fraction > 0.0)) {
        vr_text_puts(text, "unset");
    } else if (reserve->bytes == 0) {
        print_number(reserve->fraction, text);
    } else {
        print_number((double)reserve->bytes / (double)VR_GIB, text);
        vr_text_puts(text, "G");
    }
}

static enum vram_status read_reserve(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    return read_one_reserve(row, field_of(row, options), lexer);
}

static void print_reserve(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text) {
    print_one_reserve(const_field_of(row, options), text);
}

// Reads one "class:reserve"; if a class is named twice, the last value counts.
static enum vram_status read_class(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    if (lexer->token != VR_TOKEN_WORD) return bad_value(row, lexer, "a class name");
    if (strlen(lexer->word) >= VR_CLASS_NAME)
        return vr_option_fail(lexer->error, VRAM_LIMIT, lexer->offset, "%s: a class name is longer than %d characters", row->key,
                              VR_CLASS_NAME - 1);
    uint32_t index = 0;
    while (index < options->reserve_class_count && strcmp(options->reserve_classes[index].name, lexer->word) != 0) index++;
    if (index == VR_RESERVE_CLASSES)
        return vr_option_fail(lexer->error, VRAM_LIMIT, lexer->offset, "%s: more than %d classes", row->key, VR_RESERVE_CLASSES);
    memcpy(options->reserve_classes[index].name, lexer->word, strlen(lexer->word));
    VR_TRY(vr_lex_next(lexer));
    VR_TRY(vr_lex_expect(lexer, VR_TOKEN_COLON, "':'"));
    VR_TRY(read_one_reserve(row, &options->reserve_classes[index].reserve, lexer));
    if (index == options->reserve_class_count) options->reserve_class_count++;
    return VRAM_OK;
}

static enum vram_status read_classes(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    if (lexer->token != VR_TOKEN_OPEN) return bad_value(row, lexer, "a list [class:reserve,...]");
    memset(options->reserve_classes, 0, sizeof options->reserve_classes);
    options->reserve_class_count = 0;
    VR_TRY(vr_lex_next(lexer));
    while (lexer->token != VR_TOKEN_CLOSE) {
        VR_TRY(read_class(row, options, lexer));
        if (lexer->token != VR_TOKEN_CLOSE) VR_TRY(vr_lex_expect(lexer, VR_TOKEN_COMMA, "',' or ']'"));
    }
    return vr_lex_next(lexer);
}

static void print_classes(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text) {
    (void)row;
    vr_text_puts(text, "[");
    for (uint32_t i = 0; i < options->reserve_class_count; i++) {
        vr_text_printf(text, "%s%s:", i == 0 ? "" : ",", options->reserve_classes[i].name);
        print_one_reserve(&options->reserve_classes[i].reserve, text);
    }
    vr_text_puts(text, "]");
}

// --- versions ---------------------------------------------------------------------------------------------------------------
static enum vram_status read_version(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    const char *point, *end;
    uint64_t major, minor;
    if (lexer->token != VR_TOKEN_WORD || !vr_read_whole(lexer->word, &major, &point) || *point != '.' ||
        !vr_read_whole(point + 1, &minor, &end) || *end != '\0' || major != 2 || minor > VR_PYTORCH_NEWEST % 100)
        return bad_value(row, lexer, "a PyTorch version from 2.0 to 2.15");
    *(uint32_t *)field_of(row, options) = VR_PYTORCH(2, (uint32_t)minor);
    return vr_lex_next(lexer);
}

static void print_version(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text) {
    const uint32_t version = *(const uint32_t *)const_field_of(row, options);
    vr_text_printf(text, "%u.%u", version / 100, version % 100);
}

// --- the kinds ----------------------------------------------------------------------------------------------------------------
// Kinds that PyTorch does not record lack the last two functions.
static const struct {
    enum vram_status (*read)(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer);
    void (*print)(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text);
    void (*record)(const struct vr_option_row *row, const struct vr_options *options, struct vr_json *json);
    void (*recall)(const struct vr_option_row *row, struct vr_options *options, const char *value);
} kinds[] = {
    [VR_KIND_BOOLEAN] = {read_boolean, print_boolean, record_boolean, recall_boolean},
    [VR_KIND_SIZE] = {read_size, print_size, record_size, recall_size},
    [VR_KIND_OPEN_FRACTION] = {read_fraction, print_fraction, record_fraction, recall_fraction},
    [VR_KIND_CLOSED_FRACTION] = {read_fraction, print_fraction, record_fraction, recall_fraction},
    [VR_KIND_DIVISIONS] = {read_divisions, print_divisions, record_divisions, recall_divisions},
    [VR_KIND_THREADS] = {read_threads, print_whole, record_threads, recall_threads},
    [VR_KIND_BYTES] = {read_bytes, print_whole, NULL, NULL},
    [VR_KIND_ALIGNMENT] = {read_alignment, print_whole, NULL, NULL},
    [VR_KIND_BACKEND] = {read_backend, print_backend, NULL, NULL},
    [VR_KIND_RESERVE] = {read_reserve, print_reserve, NULL, NULL},
    [VR_KIND_CLASSES] = {read_classes, print_classes, NULL, NULL},
    [VR_KIND_VERSION] = {read_version, print_version, NULL, NULL},
};

enum vram_status vr_option_read(const struct vr_option_row *row, struct vr_options *options, struct vr_lexer *lexer) {
    return kinds[row->kind].read(row, options, lexer);
}

void vr_option_print(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *text) {
    kinds[row->kind].print(row, options, text);
}

void vr_option_record(const struct vr_option_row *row, const struct vr_options *options, struct vr_json *json) {
    assert(row->recorded.key != NULL && kinds[row->kind].record != NULL);
    kinds[row->kind].record(row, options, json);
}

void vr_option_recall(const struct vr_option_row *row, struct vr_options *options, const char *value) {
    assert(row->recorded.key != NULL && kinds[row->kind].recall != NULL);
    kinds[row->kind].recall(row, options, value);
}
