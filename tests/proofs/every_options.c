// Checks every option string up to a length, made of the characters that the grammar distinguishes, and every string of up to three pairs
// of a key and a value at which behavior changes. Each result follows the rules of vr_options_check() and reads back as it is printed.
//   proof_options [characters of the strings]
#include "proofs/every.h"

#include "config/options.h"

// Separators, white space, digits, parts of numbers and units, and a byte without meaning.
static const char letters[] = ",:[]> 019.-eG\xff";
// Prefixes: nothing, or a key that makes the characters a value of each kind.
static const char *const prefixes[] = {"",
                                       "max_split_size_mb:",
                                       "garbage_collection_threshold:",
                                       "roundup_power2_divisions:",
                                       "roundup_power2_divisions:[1:",
                                       "warm:",
                                       "pytorch:2",
                                       "expandable_segments_reserve_by_class:[a:",
                                       "pinned_num_register_threads:"};
static const char *const pairs[] = {"large_segment_size_mb:11",
                                    "large_segment_size_mb:60",
                                    "large_segment_size_mb:10",
                                    "large_segment_size_mb:17592186044416",
                                    "max_split_size_mb:11",
                                    "max_split_size_mb:59",
                                    "max_split_size_mb:60",
                                    "max_split_size_mb:-1",
                                    "max_non_split_rounding_mb:11",
                                    "max_non_split_rounding_mb:59",
                                    "max_non_split_rounding_mb:60",
                                    "garbage_collection_threshold:0.5",
                                    "garbage_collection_threshold:1",
                                    "roundup_power2_divisions:4",
                                    "roundup_power2_divisions:[1:2,>:4]",
                                    "roundup_power2_divisions:[]",
                                    "expandable_segments:True",
                                    "backend:cudaMallocAsync",
                                    "per_process_memory_fraction:0",
                                    "expandable_segments_reserve:0.5",
                                    "expandable_segments_reserve:4G",
                                    "expandable_segments_reserve_by_class:[a:1,b:2G]",
                                    "expandable_segments_reserve_by_class:[]",
                                    "pinned_num_register_threads:128",
                                    "pinned_num_register_threads:256",
                                    "pinned_max_cached_size_mb:0",
                                    "request_padding_bytes:4096",
                                    "base_addr_aligned_kb:16",
                                    "pytorch:2.0",
                                    "pytorch:2.16",
                                    "paged:on",
                                    "warm:1e9",
                                    "x:1",
                                    ""};

static void check_accepted(const struct vr_options *options, unsigned long long number) {
    struct vr_options again;
    struct vr_text printed = {0};
    every_require(vr_options_check(options), "the options break a rule", number);
    vr_options_print(options, &printed);
    vr_options_init(&again);
    every_require(vr_options_parse(&again, vr_text_string(&printed), NULL) == VRAM_OK, "what is printed cannot be read", number);
    every_require(memcmp(&again, options, sizeof again) == 0, "what is printed reads as something else", number);
    vr_text_release(&printed);
}

// The string has its own allocation, so that a sanitizer detects reads beyond it.
static bool check(const char *text, unsigned long long number) {
    const size_t length = strlen(text);
    char *exact = malloc(length + 1);
    every_require(exact != NULL, "no memory", number);
    memcpy(exact, text, length + 1);
    struct vr_options options;
    struct vram_error error;
    vr_options_init(&options);
    const enum vram_status status = vr_options_parse(&options, exact, &error);
    if (status == VRAM_OK)
        check_accepted(&options, number);
    else
        every_require((status == VRAM_BAD_OPTION || status == VRAM_LIMIT) && error.offset <= length, "a refusal does not say where",
                      number);
    free(exact);
    return status == VRAM_OK;
}

static unsigned long long all_characters(unsigned most, unsigned long long *accepted) {
    enum { LETTERS = sizeof letters - 1 };
    unsigned long long ran = 0;
    char text[96];
    for (unsigned p = 0; p < VR_COUNT_OF(prefixes); p++) {
        const size_t start = strlen(prefixes[p]);
        memcpy(text, prefixes[p], start);
        for (unsigned length = 0; length <= most; length++) {
            for (unsigned long long number = 0; number < every_words(LETTERS, length); number++, ran++) {
                unsigned long long left = number;
                for (unsigned i = 0; i < length; i++, left /= LETTERS) text[start + i] = letters[left % LETTERS];
                text[start + length] = '\0';
                *accepted += check(text, number);
            }
        }
    }
    return ran;
}

static unsigned long long all_pairs(unsigned long long *accepted) {
    const unsigned long long count = every_words(VR_COUNT_OF(pairs), 3);
    for (unsigned long long number = 0; number < count; number++) {
        char text[256];
        (void)snprintf(text, sizeof text, "%s,%s,%s", pairs[number % VR_COUNT_OF(pairs)],
                       pairs[number / VR_COUNT_OF(pairs) % VR_COUNT_OF(pairs)], pairs[number / VR_COUNT_OF(pairs) / VR_COUNT_OF(pairs)]);
        *accepted += check(text, number);
    }
    return count;
}

int main(int argc, char **argv) {
    const unsigned most = every_bound(argc, argv, 3);
    unsigned long long accepted = 0;
    const unsigned long long strings = all_characters(most, &accepted), triples = all_pairs(&accepted);
    printf("options: %llu strings of up to %u characters behind %zu prefixes, %llu of three pairs; %llu accepted\n", strings, most,
           VR_COUNT_OF(prefixes), triples, accepted);
    return accepted == 0;
}
