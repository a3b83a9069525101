#include "attack/option_grammar.h"

#include <stdio.h>

#include "base/json.h"
#include "config/values.h"
#include "support/random.h"

// Boundary values for any key; "#" is replaced by a random number.
static const char *const words[] = {"#",
                                    "#",
                                    "#",
                                    "0",
                                    "1",
                                    "2",
                                    "10",
                                    "11",
                                    "12",
                                    "19",
                                    "20",
                                    "21",
                                    "24",
                                    "50",
                                    "60",
                                    "128",
                                    "4096",
                                    "4097",
                                    "17592186044415",
                                    "17592186044416",
                                    "18446744073709551615",
                                    "18446744073709551616",
                                    "99999999999999999999999",
                                    "-1",
                                    "-2",
                                    "+20",
                                    "20abc",
                                    "0x20",
                                    "",
                                    " ",
                                    "2 4",
                                    "1e3",
                                    "1e400",
                                    "1e-400",
                                    "0.5",
                                    "0.999999999999",
                                    "1.0",
                                    ".5",
                                    "5.",
                                    ".",
                                    "nan",
                                    "inf",
                                    "1.125",
                                    "1e20G",
                                    "0.1M",
                                    "1e-30T",
                                    "4G",
                                    "512MiB",
                                    "6gib",
                                    "17592186044415T",
                                    "1K",
                                    "True",
                                    "False",
                                    "true",
                                    "false",
                                    "on",
                                    "off",
                                    "TRUE",
                                    "native",
                                    "cudaMallocAsync",
                                    "hipMallocAsync",
                                    "2.0",
                                    "2.6",
                                    "2.12",
                                    "2.13",
                                    "2.15",
                                    "2.16",
                                    "1.13",
                                    "2.99999999999999999999",
                                    "unlimited",
                                    "unset",
                                    ">",
                                    "[]",
                                    "[",
                                    "]",
                                    ",",
                                    ":",
                                    "\"",
                                    "\\",
                                    "\x01",
                                    "\xff",
                                    "%s%n",
                                    "x"};
static const char *const booleans[] = {"True", "False", "true", "0", "1", "on", "off", "#"};
static const char *const fractions[] = {"0.5", "0.999999", "1e-9", "0", "1", "1.0000001", "0.25", "#", "1e-320", "4.9e-324"};
static const char *const reserves[] = {"0.5",   "1",     "1.125",      "9", "4G",     "2MiB", "1M", "20MiB",
                                       "1e20G", "1e-6M", "0.0000001G", "#", "1e-320", "0",    "4"};
static const char *const sizes[] = {"#",
                                    "11",
                                    "20",
                                    "21",
                                    "24",
                                    "32",
                                    "64",
                                    "100",
                                    "1G",
                                    "1T",
                                    "17592186044415",
                                    "17592186044416",
                                    "18446744073709551615",
                                    "8796093022207",
                                    "8796093022208",
                                    "-1",
                                    "0",
                                    "10"};
static const char *const names[] = {
    "a",        "b",  "c", "large_segment_size_mb", "x y", "0123456789012345678901234567890", "01234567890123456789012345678901", "1",
    "\xc3\xa9", "-1", ">"};
// Invalid keys: unknown, misspelled, truncated.
static const char *const strays[] = {"",
                                     "max_split_size",
                                     "MAX_SPLIT_SIZE_MB",
                                     "roundup_bypass_threshold_mb",
                                     "x",
                                     "[",
                                     "release_lock_on_hipmalloc",
                                     "pinned_use_hip_host_register"};

#define PICK(random, list) ((list)[vr_random_below(random, VR_COUNT_OF(list))])

static void put_number(uint64_t *random, struct vr_text *text) {
    const unsigned bits = (unsigned)vr_random_below(random, 65);
    const uint64_t number = bits == 0 ? 0 : vr_random_next(random) >> (64 - bits);
    vr_text_printf(text, "%llu", (unsigned long long)number);
}

static void put_word(uint64_t *random, const char *word, struct vr_text *text) {
    if (strcmp(word, "#") == 0)
        put_number(random, text);
    else
        vr_text_puts(text, word);
}

static void put_divisions(uint64_t *random, struct vr_text *text) {
    if (vr_random_below(random, 3) == 0) {
        vr_text_printf(text, "%u", 1u << vr_random_below(random, 32));
        return;
    }
    vr_text_puts(text, "[");
    for (uint64_t i = 0, count = vr_random_below(random, 8); i < count; i++) {
        const uint64_t divisor = vr_random_below(random, 8) == 0 ? 0 : (uint64_t)1 << vr_random_below(random, 33);
        if (vr_random_below(random, 5) == 0)
            vr_text_puts(text, ">");
        else
            vr_text_printf(text, "%llu", (unsigned long long)1 << vr_random_below(random, vr_random_below(random, 4) == 0 ? 64 : 17));
        vr_text_printf(text, ":%llu%s", (unsigned long long)divisor, i + 1 < count || vr_random_below(random, 4) == 0 ? "," : "");
    }
    vr_text_puts(text, "]");
}

static void put_classes(uint64_t *random, struct vr_text *text) {
    const uint64_t count = vr_random_below(random, 12) == 0 ? 20 : vr_random_below(random, 5);
    vr_text_puts(text, "[");
    for (uint64_t i = 0; i < count; i++) {
        if (count == 20)
            vr_text_printf(text, "n%llu:", (unsigned long long)i);
        else
            vr_text_printf(text, "%s:", PICK(random, names));
        put_word(random, PICK(random, reserves), text);
        if (i + 1 < count) vr_text_puts(text, ",");
    }
    vr_text_puts(text, "]");
}

// Appends a value that is usually valid for the kind.
static void put_fitting(uint64_t *random, enum vr_option_kind kind, struct vr_text *text) {
    switch (kind) {
    case VR_KIND_BOOLEAN: put_word(random, PICK(random, booleans), text); break;
    case VR_KIND_SIZE: put_word(random, PICK(random, sizes), text); break;
    case VR_KIND_OPEN_FRACTION:
    case VR_KIND_CLOSED_FRACTION: put_word(random, PICK(random, fractions), text); break;
    case VR_KIND_DIVISIONS: put_divisions(random, text); break;
    case VR_KIND_BACKEND: vr_text_puts(text, vr_random_below(random, 2) ? "native" : "cudaMallocAsync"); break;
    case VR_KIND_THREADS: vr_text_printf(text, "%u", 1u << vr_random_below(random, 9)); break;
    case VR_KIND_BYTES: vr_text_printf(text, "%llu", (unsigned long long)vr_random_below(random, 5000)); break;
    case VR_KIND_ALIGNMENT: vr_text_printf(text, "%llu", (unsigned long long)vr_random_below(random, 20)); break;
    case VR_KIND_RESERVE: put_word(random, PICK(random, reserves), text); break;
    case VR_KIND_CLASSES: put_classes(random, text); break;
    case VR_KIND_VERSION: vr_text_printf(text, "2.%u", (unsigned)vr_random_below(random, 17)); break;
    }
}

// --- strings ----------------------------------------------------------------------------------------------------------------------------

// Draws a row number; one past the last means an invalid key.
static size_t draw_row(uint64_t *random) {
    // Prefer few keys, so that some occur twice in a string.
    if (vr_random_below(random, 2) == 0) return vr_random_below(random, 6);
    return vr_random_below(random, 40) == 0 ? vr_option_row_count : vr_random_below(random, vr_option_row_count);
}

static void put_value(uint64_t *random, size_t row, struct vr_text *text) {
    if (row == vr_option_row_count || vr_random_below(random, 60) == 0)
        put_word(random, PICK(random, words), text);
    else
        put_fitting(random, vr_option_rows[row].kind, text);
}

// Changes, removes or duplicates a few characters.
static void damage(uint64_t *random, struct vr_text *text) {
    static const char characters[] = ",:[]> \t09.-+eGTxM\x7f\xff";
    for (uint64_t steps = 1 + vr_random_below(random, 3); steps > 0 && text->length > 1; steps--) {
        const size_t at = vr_random_below(random, text->length);
        const uint64_t how = vr_random_below(random, 3);
        if (how == 0) {
            text->bytes[at] = characters[vr_random_below(random, sizeof characters - 1)];
        } else if (how == 1) {
            memmove(text->bytes + at, text->bytes + at + 1, text->length - at);
            text->length--;
        } else {
            text->length = at;
            text->bytes[at] = '\0';
        }
    }
}

void grammar_draw(uint64_t *random, struct grammar_string *string) {
    size_t row[GRAMMAR_PAIRS], at[GRAMMAR_PAIRS + 1];
    const size_t count = 1 + vr_random_below(random, GRAMMAR_PAIRS);
    string->text.length = string->last_only.length = 0;
    for (size_t i = 0; i < count; i++) {
        at[i] = string->text.length;
        row[i] = draw_row(random);
        vr_text_printf(&string->text, "%s:", row[i] == vr_option_row_count ? PICK(random, strays) : vr_option_rows[row[i]].key);
        put_value(random, row[i], &string->text);
        vr_text_puts(&string->text, ",");
    }
    at[count] = string->text.length;
    for (size_t i = 0; i < count; i++) {
        bool again = false;
        for (size_t later = i + 1; later < count; later++) again |= row[later] == row[i] && row[i] != vr_option_row_count;
        if (!again) vr_text_append(&string->last_only, string->text.bytes + at[i], at[i + 1] - at[i]);
    }
    string->is_damaged = vr_random_below(random, 4) == 0;
    if (string->is_damaged) damage(random, &string->text);
}

// --- settings of recordings -------------------------------------------------------------------------------------------------------------

static const char *const conf_keys[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF",
                                        "last_allocator_settings"};
static const char *const json_values[] = {"0",
                                          "1",
                                          "-1",
                                          "5",
                                          "20971520",
                                          "52428800",
                                          "9223372036854775807",
                                          "18446744073709551615",
                                          "1e300",
                                          "-1e300",
                                          "0.5",
                                          "0.30000001192092896",
                                          "true",
                                          "false",
                                          "null",
                                          "\"\"",
                                          "\"x\"",
                                          "[]",
                                          "{}",
                                          "{\"1\": 3, \"2\": 4}",
                                          "{\"1\": 4294967295}",
                                          "{\"65536\": 2}",
                                          "{\"1\": \"x\"}",
                                          "[1, [2]]",
                                          "\"True\"",
                                          "1e999"};

void grammar_draw_settings(uint64_t *random, const char *conf, struct vr_text *text) {
    struct vr_json json;
    vr_json_init(&json, text, false);
    vr_json_object(&json, NULL);
    for (uint64_t i = 0, count = 1 + vr_random_below(random, 2); i < count; i++) vr_json_string(&json, PICK(random, conf_keys), conf);
    for (uint64_t i = 0, count = vr_random_below(random, 4); i < count; i++) {
        const char *key = vr_option_rows[vr_random_below(random, vr_option_row_count)].recorded.key;
        vr_json_raw(&json, key == NULL ? "trace_alloc_max_entries" : key, PICK(random, json_values));
    }
    vr_json_object_end(&json);
}
