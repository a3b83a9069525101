// Tests the option strings: every key, every error, resets, and print(parse) round trips.
#define _POSIX_C_SOURCE 200809L // setenv
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "config/lex.h"
#include "config/options.h"
#include "config/size_rules.h"
#include "support/decimal_comma.h"
#include "support/random.h"
#include "vram/options.h"

static struct vr_options parsed(const char *text) {
    struct vr_options options;
    struct vram_error error = {.message = ""};
    vr_options_init(&options);
    if (vr_options_parse(&options, text, &error) != VRAM_OK) fail_msg("%s: %s", text, error.message);
    return options;
}

static void assert_divisions(const char *text, const uint32_t wanted[VR_ROUNDUP_BUCKETS]) {
    const struct vr_options options = parsed(text);
    for (unsigned i = 0; i < VR_ROUNDUP_BUCKETS; i++)
        if (options.roundup_divisions[i] != wanted[i])
            fail_msg("%s: index %u is %u, not %u", text, i, options.roundup_divisions[i], wanted[i]);
}

static void defaults_are_pytorchs(void **state) {
    (void)state;
    struct vr_options options;
    vr_options_init(&options);
    assert_int_equal(options.large_segment_bytes, 20 * VR_MIB);
    assert_int_equal(options.max_split_bytes, VR_UNLIMITED);
    assert_int_equal(options.max_non_split_rounding_bytes, 20 * VR_MIB);
    assert_true(options.garbage_collection_threshold == 0.0);
    assert_int_equal(options.backend, VR_BACKEND_NATIVE);
    assert_false(options.expandable_segments);
    assert_int_equal(options.pinned_register_threads, 1);
    assert_int_equal(options.pinned_max_cached_bytes, VR_UNLIMITED);
    assert_int_equal(options.pinned_max_round_threshold_bytes, VR_UNLIMITED);
    assert_true(options.per_process_memory_fraction == 1.0);
    const struct vr_options empty = parsed(""), null = parsed(NULL), spaces = parsed(" \t\n");
    assert_memory_equal(&options, &empty, sizeof options);
    assert_memory_equal(&options, &null, sizeof options);
    assert_memory_equal(&options, &spaces, sizeof options);
}

static void every_size_key_is_in_mib(void **state) {
    (void)state;
    assert_int_equal(parsed("large_segment_size_mb:32").large_segment_bytes, 32 * VR_MIB);
    assert_int_equal(parsed("max_split_size_mb:20").max_split_bytes, 20 * VR_MIB);
    assert_int_equal(parsed("max_split_size_mb:512MiB").max_split_bytes, 512 * VR_MIB);
    assert_int_equal(parsed("max_split_size_mb:6GiB").max_split_bytes, 6 * VR_GIB);
    assert_int_equal(parsed("max_split_size_mb:+1TiB").max_split_bytes, 1024 * VR_GIB);
    static const char *const spellings[] = {"2048", "2048M", "2048mb", "2048MB", "2048MiB", "2G", "2g", "2GB", "2gib", "2GiB"};
    for (size_t i = 0; i < VR_COUNT_OF(spellings); i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "max_split_size_mb:%s", spellings[i]);
        assert_int_equal(parsed(text).max_split_bytes, 2 * VR_GIB);
    }
    assert_int_equal(parsed("max_non_split_rounding_mb:21").max_non_split_rounding_bytes, 21 * VR_MIB);
    assert_int_equal(parsed("pinned_max_round_threshold_mb:0").pinned_max_round_threshold_bytes, 0);
    assert_int_equal(parsed("pinned_max_cached_size_mb:7").pinned_max_cached_bytes, 7 * VR_MIB);
    assert_int_equal(parsed("pinned_reserve_segment_size_mb:1").pinned_reserve_segment_bytes, VR_MIB);
}

static void a_version_says_whose_rules(void **state) {
    (void)state;
    assert_int_equal(parsed("").pytorch, VR_PYTORCH(2, 15));
    assert_int_equal(parsed("pytorch:2.6").pytorch, VR_PYTORCH(2, 6));
    assert_int_equal(parsed("pytorch:2.0").pytorch, VR_PYTORCH(2, 0));
    static const char *const wrong[] = {"pytorch:2", "pytorch:2.", "pytorch:1.13", "pytorch:2.16", "pytorch:2.6.1", "pytorch:new"};
    struct vr_options options = parsed("");
    for (size_t i = 0; i < VR_COUNT_OF(wrong); i++) assert_int_equal(vr_options_parse(&options, wrong[i], NULL), VRAM_BAD_OPTION);
}

static void requests_can_be_padded(void **state) {
    (void)state;
    struct vr_options options = parsed("request_padding_bytes:32");
    assert_int_equal(vr_round_request(&options, 1), 512);
    assert_int_equal(vr_round_request(&options, 480), 512);
    assert_int_equal(vr_round_request(&options, 481), 1024);
    assert_int_equal(vr_round_request(&options, 1024), 1536);
    assert_int_equal(parsed("request_padding_bytes:4096").request_padding_bytes, 4096);
    assert_int_equal(vr_options_parse(&options, "request_padding_bytes:4097", NULL), VRAM_BAD_OPTION);
}

static void large_requests_can_be_aligned(void **state) {
    (void)state;
    struct vr_options options = parsed("base_addr_aligned_kb:16");
    assert_int_equal(vr_aligned_address(&options, 0x180200, 16 * VR_MIB, 2 * VR_MIB), 0x184000);
    assert_int_equal(vr_aligned_address(&options, 0x184000, 16 * VR_MIB, 2 * VR_MIB), 0x184000);
    assert_int_equal(vr_aligned_address(&options, 0x180200, 16 * VR_MIB, 2 * VR_MIB - 512), 0x180200);
    // Without room for the alignment, the request starts at the beginning.
    assert_int_equal(vr_aligned_address(&options, 0x180200, 2 * VR_MIB + 0x3e00, 2 * VR_MIB), 0x184000);
    assert_int_equal(vr_aligned_address(&options, 0x180200, 2 * VR_MIB + 0x3c00, 2 * VR_MIB), 0x180200);
    options = parsed("base_addr_aligned_kb:3"); // not a power of two, which torch_npu allows
    assert_int_equal(vr_aligned_address(&options, 0x180200, 16 * VR_MIB, 2 * VR_MIB), 0x180c00);
    assert_int_equal(parsed("base_addr_aligned_kb:0").base_alignment_kib, 0);
    assert_int_equal(vr_options_parse(&options, "base_addr_aligned_kb:17", NULL), VRAM_BAD_OPTION);
}

static void sizes_too_large_mean_the_largest(void **state) {
    (void)state;
    const uint64_t largest = UINT64_MAX / VR_MIB * VR_MIB;
    assert_int_equal(parsed("max_split_size_mb:18446744073709551615").max_split_bytes, largest);
    assert_int_equal(parsed("max_split_size_mb:17592186044416").max_split_bytes, largest);
    assert_int_equal(parsed("max_split_size_mb:18446744073709551615TiB").max_split_bytes, largest);
    assert_int_equal(parsed("max_split_size_mb:17592186044415").max_split_bytes, largest);
}

static void booleans_have_four_spellings(void **state) {
    (void)state;
    static const char *const keys[] = {"expandable_segments",       "pinned_use_background_threads", "release_lock_on_cudamalloc",
                                       "release_lock_on_hipmalloc", "pinned_use_cuda_host_register", "pinned_use_hip_host_register",
                                       "pinned_free_catch_all",     "throw_on_cudamalloc_oom",       "graph_capture_record_stream_reuse"};
    static const char *const words[] = {"True", "False", "true", "false", "1", "0", "on", "off"};
    for (size_t i = 0; i < VR_COUNT_OF(keys); i++) {
        for (size_t j = 0; j < VR_COUNT_OF(words); j++) {
            char text[128];
            (void)snprintf(text, sizeof text, "%s:%s", keys[i], words[j]);
            const struct vr_options options = parsed(text);
            const int set = options.expandable_segments + options.pinned_use_background_threads + options.release_lock_on_malloc +
                            options.pinned_use_host_register + options.pinned_free_catch_all + options.throw_on_malloc_oom +
                            options.graph_capture_record_stream_reuse;
            assert_int_equal(set, j % 2 == 0);
        }
    }
    assert_true(parsed("expandable_segments:True").expandable_segments);
    assert_true(parsed("pinned_use_background_threads:on").pinned_use_background_threads);
    assert_true(parsed("release_lock_on_hipmalloc:1").release_lock_on_malloc);
    assert_true(parsed("pinned_use_hip_host_register:true").pinned_use_host_register);
    assert_true(parsed("pinned_free_catch_all:True").pinned_free_catch_all);
    assert_true(parsed("throw_on_cudamalloc_oom:True").throw_on_malloc_oom);
    assert_true(parsed("graph_capture_record_stream_reuse:True").graph_capture_record_stream_reuse);
}

static void other_keys_are_read(void **state) {
    (void)state;
    assert_true(parsed("garbage_collection_threshold:0.8").garbage_collection_threshold == 0.8);
    assert_true(parsed("garbage_collection_threshold:.5").garbage_collection_threshold == 0.5);
    assert_true(parsed("garbage_collection_threshold:5e-1").garbage_collection_threshold == 0.5);
    assert_true(parsed("per_process_memory_fraction:0").per_process_memory_fraction == 0.0);
    assert_true(parsed("per_process_memory_fraction:1.").per_process_memory_fraction == 1.0);
    assert_true(parsed("per_process_memory_fraction:+0.25").per_process_memory_fraction == 0.25);
    assert_int_equal(parsed("backend:native").backend, VR_BACKEND_NATIVE);
    assert_int_equal(parsed("backend:cudaMallocAsync").backend, VR_BACKEND_ASYNC);
    assert_int_equal(parsed("backend:hipMallocAsync").backend, VR_BACKEND_ASYNC);
    assert_int_equal(parsed("pinned_num_register_threads:128").pinned_register_threads, 128);
}

static void reservations_are_fractions_or_bytes(void **state) {
    (void)state;
    assert_true(parsed("expandable_segments_reserve:0.5").expandable_reserve.fraction == 0.5);
    assert_true(parsed("expandable_segments_reserve:7").expandable_reserve.fraction == 1.125);
    assert_int_equal(parsed("expandable_segments_reserve:4G").expandable_reserve.bytes, 4 * VR_GIB);
    assert_int_equal(parsed("expandable_segments_reserve:1.5g").expandable_reserve.bytes, 3 * VR_GIB / 2);
    assert_int_equal(parsed("expandable_segments_reserve:512MiB").expandable_reserve.bytes, 512 * VR_MIB);
    assert_int_equal(parsed("expandable_segments_reserve:1e20G").expandable_reserve.bytes, UINT64_MAX);
    assert_true(parsed("expandable_segments_reserve:0.5,expandable_segments_reserve:4G").expandable_reserve.fraction == 0.0);

    struct vr_options options = parsed("expandable_segments_reserve_by_class:[comm:0.25, compute:16G, comm:0.5,]");
    assert_int_equal(options.reserve_class_count, 2);
    assert_string_equal(options.reserve_classes[0].name, "comm");
    assert_true(options.reserve_classes[0].reserve.fraction == 0.5);
    assert_string_equal(options.reserve_classes[1].name, "compute");
    assert_int_equal(options.reserve_classes[1].reserve.bytes, 16 * VR_GIB);
    assert_int_equal(vr_options_parse(&options, "max_split_size_mb:32", NULL), VRAM_OK);
    assert_int_equal(options.reserve_class_count, 2);
    assert_int_equal(vr_options_parse(&options, "expandable_segments_reserve_by_class:[x:1G]", NULL), VRAM_OK);
    assert_int_equal(options.reserve_class_count, 1);
    assert_string_equal(options.reserve_classes[0].name, "x");
    assert_int_equal(parsed("expandable_segments_reserve_by_class:[]").reserve_class_count, 0);
}

static void divisions_follow_pytorch(void **state) {
    (void)state;
    assert_divisions("roundup_power2_divisions:8", (const uint32_t[]){8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8});
    // Indices between listed keys stay 0, as in PyTorch.
    assert_divisions("roundup_power2_divisions:[64:8,256:4,1024:4,>:1]",
                     (const uint32_t[]){8, 8, 8, 8, 8, 8, 8, 0, 4, 0, 4, 1, 1, 1, 1, 1});
    assert_divisions("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
                     (const uint32_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8});
    assert_divisions("roundup_power2_divisions:[>:4]", (const uint32_t[]){0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
    // '>' need not be last; later entries win; keys from 32 GiB share the last index.
    assert_divisions("roundup_power2_divisions:[2:2,>:16,8:0,65536:4,]",
                     (const uint32_t[]){2, 2, 16, 0, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 4});
    assert_divisions("roundup_power2_divisions:[32768:4,>:2]", (const uint32_t[]){4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4});
    assert_divisions("roundup_power2_divisions:8,roundup_power2_divisions:[]", (const uint32_t[VR_ROUNDUP_BUCKETS]){0});
}

static void divisor_is_chosen_by_the_power_of_two(void **state) {
    (void)state;
    const struct vr_options options = parsed("roundup_power2_divisions:[1:2,2:4,4:8,>:16]");
    assert_int_equal(vr_options_divisor(&options, 1), 2);
    assert_int_equal(vr_options_divisor(&options, 2 * VR_MIB - 1), 2);
    assert_int_equal(vr_options_divisor(&options, 2 * VR_MIB), 4);
    assert_int_equal(vr_options_divisor(&options, 8 * VR_MIB - 1), 8);
    assert_int_equal(vr_options_divisor(&options, 8 * VR_MIB), 16);
    assert_int_equal(vr_options_divisor(&options, UINT64_MAX), 16);
}

static void white_space_and_trailing_commas_are_dropped(void **state) {
    (void)state;
    const struct vr_options plain = parsed("max_split_size_mb:128,roundup_power2_divisions:[256:1,>:2]");
    const struct vr_options spaced = parsed(" max_split\t_size_mb : 1 2 8 ,\n roundup_power2_divisions:[ 256 : 1 , > : 2 ] , ");
    assert_memory_equal(&plain, &spaced, sizeof plain);
}

static void the_last_of_a_key_wins(void **state) {
    (void)state;
    assert_int_equal(parsed("max_split_size_mb:30,max_split_size_mb:40").max_split_bytes, 40 * VR_MIB);
    assert_int_equal(parsed("large_segment_size_mb:30,large_segment_size_mb:40").large_segment_bytes, 40 * VR_MIB);
    assert_false(parsed("release_lock_on_hipmalloc:True,release_lock_on_cudamalloc:False").release_lock_on_malloc);
}

static void the_large_segment_is_read_first(void **state) {
    (void)state;
    struct vr_options options = parsed("max_split_size_mb:12,large_segment_size_mb:11");
    assert_int_equal(options.max_split_bytes, 12 * VR_MIB);
    assert_int_equal(options.max_non_split_rounding_bytes, 11 * VR_MIB);
    assert_int_equal(vr_options_parse(&options, "max_split_size_mb:12", NULL), VRAM_OK);
    assert_int_equal(vr_options_parse(&options, "large_segment_size_mb:64,max_split_size_mb:63", NULL), VRAM_BAD_OPTION);
    // A class of that name in a list is not the key.
    assert_int_equal(parsed("expandable_segments_reserve_by_class:[x:1,large_segment_size_mb:0.5]").large_segment_bytes, 20 * VR_MIB);
}

// PyTorch reads this key in a separate pass, in which the last one wins, and checks other sizes afterwards.
static void sizes_are_checked_against_the_last_large_segment(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t large_mib, other_mib; // 0: BAD_OPTION
    } cases[] = {
        {"large_segment_size_mb:24,max_split_size_mb:50,large_segment_size_mb:60", 0, 0},
        {"large_segment_size_mb:60,max_split_size_mb:50,large_segment_size_mb:24", 24, 50},
        {"max_split_size_mb:50,large_segment_size_mb:24,large_segment_size_mb:60", 0, 0},
        {"large_segment_size_mb:60,large_segment_size_mb:24,max_split_size_mb:24", 24, 24},
        {"large_segment_size_mb:24,max_split_size_mb:50,large_segment_size_mb:50,", 50, 50},
        {"large_segment_size_mb:24,max_split_size_mb:70,max_split_size_mb:50,large_segment_size_mb:60", 0, 0},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_options options;
        vr_options_init(&options);
        const enum vram_status wanted = cases[i].large_mib == 0 ? VRAM_BAD_OPTION : VRAM_OK;
        if (vr_options_parse(&options, cases[i].text, NULL) != wanted) fail_msg("%s", cases[i].text);
        if (wanted != VRAM_OK) continue;
        assert_int_equal(options.large_segment_bytes, cases[i].large_mib * VR_MIB);
        assert_int_equal(options.max_split_bytes, cases[i].other_mib * VR_MIB);
    }
    struct vram_error error;
    static const char rounding[] = "large_segment_size_mb:24,max_non_split_rounding_mb:50,large_segment_size_mb:60";
    assert_int_equal(vram_options_check(rounding, &error), VRAM_BAD_OPTION);
    assert_non_null(strstr(error.message, "max_non_split_rounding_mb: expected at least 60 MiB, found '50'"));
}

static void a_parse_resets_what_pytorch_resets(void **state) {
    (void)state;
    struct vr_options options =
        parsed("expandable_segments:True,max_split_size_mb:64,roundup_power2_divisions:4,garbage_collection_threshold:0.5,"
               "max_non_split_rounding_mb:99,large_segment_size_mb:24,throw_on_cudamalloc_oom:True,pinned_num_register_threads:8");
    assert_int_equal(vr_options_parse(&options, "", NULL), VRAM_OK);
    assert_true(options.expandable_segments);
    assert_true(options.throw_on_malloc_oom);
    assert_int_equal(options.pinned_register_threads, 8);
    assert_int_equal(options.large_segment_bytes, 24 * VR_MIB);
    assert_int_equal(options.max_non_split_rounding_bytes, 24 * VR_MIB);
    assert_int_equal(options.max_split_bytes, VR_UNLIMITED);
    assert_int_equal(options.roundup_divisions[3], 0);
    assert_true(options.garbage_collection_threshold == 0.0);
}

// Every kind of error: its place, and part of the message.
static const struct {
    const char *text;
    enum vram_status status;
    uint64_t offset;
    const char *message;
} mistakes[] = {
    {"max_split_mb:128", VRAM_BAD_OPTION, 0, "unknown option 'max_split_mb' (did you mean 'max_split_size_mb'?)"},
    {"expandable_segment:True", VRAM_BAD_OPTION, 0, "did you mean 'expandable_segments'?"},
    {"backend:native, Max_split_size_mb:128", VRAM_BAD_OPTION, 16, "at character 17"},
    {"xyzzy:1", VRAM_BAD_OPTION, 0, "unknown option 'xyzzy', at character 1 of"},
    {"expandable_segments_handle_type:posix_fd", VRAM_BAD_OPTION, 0, "unknown option"},
    {"roundup_bypass_threshold_mb:1", VRAM_BAD_OPTION, 0, "unknown option"},
    {",", VRAM_BAD_OPTION, 0, "expected an option name, found ','"},
    {"backend:native,,", VRAM_BAD_OPTION, 15, "found ','"},
    {":", VRAM_BAD_OPTION, 0, "found ':'"},
    {"[", VRAM_BAD_OPTION, 0, "found '['"},
    {"backend", VRAM_BAD_OPTION, 7, "expected ':', found the end"},
    {"backend,native", VRAM_BAD_OPTION, 7, "expected ':', found ','"},
    {"backend:", VRAM_BAD_OPTION, 8, "expected native or cudaMallocAsync, found the end"},
    {"backend:native:max_split_size_mb:128", VRAM_BAD_OPTION, 14, "expected ',', found ':'"},
    {"backend:native]", VRAM_BAD_OPTION, 14, "expected ',', found ']'"},
    {"backend:malloc", VRAM_BAD_OPTION, 8, "expected native or cudaMallocAsync, found 'malloc'"},
    {"backend:Native", VRAM_BAD_OPTION, 8, "found 'Native'"},
    {"backend:na\x1b[31m", VRAM_BAD_OPTION, 8, "found 'na?'"},
    {"expandable_segments:yes", VRAM_BAD_OPTION, 20, "expandable_segments: expected True or False, found 'yes'"},
    {"expandable_segments:[True]", VRAM_BAD_OPTION, 20, "found '['"},
    {"max_split_size_mb:20abc", VRAM_BAD_OPTION, 18, "found '20abc'"},
    {"large_segment_size_mb:-1", VRAM_BAD_OPTION, 22, "found '-1'"},
    {"max_split_size_mb:-2", VRAM_BAD_OPTION, 18, "found '-2'"},
    {"max_split_size_mb:64KiB", VRAM_BAD_OPTION, 18, "a whole number of MiB, or a number with a unit"},
    {"max_split_size_mb:64MiBs", VRAM_BAD_OPTION, 18, "found '64MiBs'"},
    {"max_split_size_mb:64iB", VRAM_BAD_OPTION, 18, "found '64iB'"},
    {"max_split_size_mb:1.5GiB", VRAM_BAD_OPTION, 18, "found '1.5GiB'"},
    {"max_split_size_mb:18446744073709551616", VRAM_BAD_OPTION, 18, "a whole number"},
    {"max_split_size_mb:19", VRAM_BAD_OPTION, 18, "max_split_size_mb: expected at least 20 MiB, found '19'"},
    {"max_non_split_rounding_mb:19", VRAM_BAD_OPTION, 26, "at least 20 MiB"},
    {"large_segment_size_mb:32,max_non_split_rounding_mb:31", VRAM_BAD_OPTION, 51, "at least 32 MiB"},
    {"large_segment_size_mb:10", VRAM_BAD_OPTION, 22, "at least 11 MiB"},
    {"large_segment_size_mb", VRAM_BAD_OPTION, 21, "expected ':'"},
    {"pinned_reserve_segment_size_mb:0", VRAM_BAD_OPTION, 31, "at least 1 MiB"},
    {"pinned_max_cached_size_mb:", VRAM_BAD_OPTION, 26, "found the end"},
    {"garbage_collection_threshold:0", VRAM_BAD_OPTION, 29, "above 0 and below 1"},
    {"garbage_collection_threshold:1", VRAM_BAD_OPTION, 29, "above 0 and below 1"},
    {"garbage_collection_threshold:nan", VRAM_BAD_OPTION, 29, "above 0 and below 1"},
    {"garbage_collection_threshold:0.5x", VRAM_BAD_OPTION, 29, "found '0.5x'"},
    {"garbage_collection_threshold:0x1p-1", VRAM_BAD_OPTION, 29, "above 0 and below 1"},
    {"garbage_collection_threshold:.", VRAM_BAD_OPTION, 29, "found '.'"},
    {"garbage_collection_threshold:.5e", VRAM_BAD_OPTION, 29, "found '.5e'"},
    {"per_process_memory_fraction:1.01", VRAM_BAD_OPTION, 28, "from 0 to 1"},
    {"per_process_memory_fraction:-0.5", VRAM_BAD_OPTION, 28, "from 0 to 1"},
    {"per_process_memory_fraction:1e999", VRAM_BAD_OPTION, 28, "from 0 to 1"},
    {"pinned_num_register_threads:3", VRAM_BAD_OPTION, 28, "expected a power of two from 1 to 128, found '3'"},
    {"pinned_num_register_threads:256", VRAM_BAD_OPTION, 28, "found '256'"},
    {"pinned_num_register_threads:0", VRAM_BAD_OPTION, 28, "found '0'"},
    {"roundup_power2_divisions:0", VRAM_BAD_OPTION, 25, "a power of two"},
    {"roundup_power2_divisions:3", VRAM_BAD_OPTION, 25, "a power of two"},
    {"roundup_power2_divisions:4294967296", VRAM_BAD_OPTION, 25, "up to 2147483648"},
    {"roundup_power2_divisions:[3:1]", VRAM_BAD_OPTION, 26, "a power of two in MiB, or '>'"},
    {"roundup_power2_divisions:[0:1]", VRAM_BAD_OPTION, 26, "a power of two in MiB, or '>'"},
    {"roundup_power2_divisions:[4:3]", VRAM_BAD_OPTION, 28, "0 or a power of two"},
    {"roundup_power2_divisions:[4:8589934592]", VRAM_BAD_OPTION, 28, "0 or a power of two"},
    {"roundup_power2_divisions:[4,8]", VRAM_BAD_OPTION, 27, "expected ':'"},
    {"roundup_power2_divisions:[4:8:8:4]", VRAM_BAD_OPTION, 29, "expected ',' or ']', found ':'"},
    {"roundup_power2_divisions:[4:8", VRAM_BAD_OPTION, 29, "expected ',' or ']', found the end"},
    {"roundup_power2_divisions:[", VRAM_BAD_OPTION, 26, "found the end"},
    {"roundup_power2_divisions:[,]", VRAM_BAD_OPTION, 26, "found ','"},
    {"expandable_segments_reserve:0", VRAM_BAD_OPTION, 28, "a positive fraction"},
    {"expandable_segments_reserve:-1G", VRAM_BAD_OPTION, 28, "a positive fraction"},
    {"expandable_segments_reserve:inf", VRAM_BAD_OPTION, 28, "a positive fraction"},
    {"expandable_segments_reserve:4K", VRAM_BAD_OPTION, 28, "found '4K'"},
    {"expandable_segments_reserve:1e-99G", VRAM_BAD_OPTION, 28, "a positive fraction"},
    {"expandable_segments_reserve_by_class:4G", VRAM_BAD_OPTION, 37, "expected a list [class:reserve,...]"},
    {"expandable_segments_reserve_by_class:[:4G]", VRAM_BAD_OPTION, 38, "expected a class name"},
    {"expandable_segments_reserve_by_class:[x]", VRAM_BAD_OPTION, 39, "expected ':'"},
    {"expandable_segments_reserve_by_class:[x:none]", VRAM_BAD_OPTION, 40, "found 'none'"},
    {"expandable_segments_reserve_by_class:[x:1G:y:2G]", VRAM_BAD_OPTION, 42, "expected ',' or ']'"},
    {"expandable_segments_reserve_by_class:[abcdefghijabcdefghijabcdefghijab:1]", VRAM_LIMIT, 38, "longer than 31 characters"},
    {"expandable_segments_reserve_by_class:[a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1,j:1,k:1,l:1,m:1,n:1,o:1,p:1,q:1]", VRAM_LIMIT, 102,
     "more than 16 classes"},
};

// PyTorch's snapshots contain -1, and programs pass it back.
static void minus_one_is_no_limit(void **state) {
    (void)state;
    const struct vr_options options = parsed("max_split_size_mb:-1,pinned_max_round_threshold_mb:-1,pinned_max_cached_size_mb:-1");
    assert_true(options.max_split_bytes == VR_UNLIMITED && options.pinned_max_cached_bytes == VR_UNLIMITED);
    assert_true(options.pinned_max_round_threshold_bytes == VR_UNLIMITED);
}

static void mistakes_name_the_character(void **state) {
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(mistakes); i++) {
        struct vr_options options = parsed("expandable_segments:True,max_split_size_mb:64"), before = options;
        struct vram_error error = {.message = ""};
        const enum vram_status status = vr_options_parse(&options, mistakes[i].text, &error);
        if (status != mistakes[i].status || error.status != status || error.offset != mistakes[i].offset ||
            strstr(error.message, mistakes[i].message) == NULL)
            fail_msg("%s: %s at %llu: %s", mistakes[i].text, vram_status_name(status), (unsigned long long)error.offset, error.message);
        assert_memory_equal(&options, &before, sizeof options);
        assert_int_equal(vram_options_check(mistakes[i].text, NULL), mistakes[i].status);
    }
}

static void words_have_a_limit(void **state) {
    (void)state;
    char text[VR_WORD_MAX + 32];
    memset(text, 'x', sizeof text);
    text[VR_WORD_MAX] = '\0';
    struct vram_error error;
    assert_int_equal(vram_options_check(text, &error), VRAM_BAD_OPTION);
    assert_non_null(strstr(error.message, "unknown option 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"));
    text[VR_WORD_MAX] = 'x';
    text[VR_WORD_MAX + 1] = '\0';
    assert_int_equal(vram_options_check(text, &error), VRAM_LIMIT);
    assert_int_equal(error.offset, 0);
}

// --- printing --------------------------------------------------------------------------------------------------------------
static void assert_printed(const char *text, const char *wanted) {
    const struct vr_options options = parsed(text);
    struct vr_text printed = {0};
    vr_options_print(&options, &printed);
    assert_int_equal(vr_text_status(&printed), VRAM_OK);
    assert_string_equal(vr_text_string(&printed), wanted);
    const struct vr_options again = parsed(vr_text_string(&printed));
    assert_memory_equal(&options, &again, sizeof options);
    vr_text_release(&printed);
}

static void options_print_as_they_are_read(void **state) {
    (void)state;
    assert_printed("", "");
    assert_printed("max_non_split_rounding_mb:30,large_segment_size_mb:30,backend:native", "large_segment_size_mb:30");
    assert_printed("roundup_power2_divisions:[64:8,256:4,1024:4,>:1]", "roundup_power2_divisions:[64:8,128:0,256:4,512:0,1024:4,>:1]");
    assert_printed("roundup_power2_divisions:[32768:4]", "roundup_power2_divisions:4");
    assert_printed("roundup_power2_divisions:[>:4]", "roundup_power2_divisions:[1:0,>:4]");
    assert_printed("max_split_size_mb:99999999999999", "max_split_size_mb:17592186044415");
    assert_printed("garbage_collection_threshold:0.10,per_process_memory_fraction:0.30000000000000004",
                   "garbage_collection_threshold:0.1,per_process_memory_fraction:0.30000000000000004");
    assert_printed("expandable_segments_reserve:1e20G,expandable_segments_reserve_by_class:[a:512MiB,b:1e-3]",
                   "expandable_segments_reserve:17179869184G,expandable_segments_reserve_by_class:[a:0.5G,b:0.001]");
    assert_printed("release_lock_on_hipmalloc:1,backend:hipMallocAsync", "backend:cudaMallocAsync,release_lock_on_cudamalloc:True");
}

static struct vr_options random_options(uint64_t *seed) {
    struct vr_options o;
    vr_options_init(&o);
    const uint64_t bits = vr_random_next(seed);
    if (bits & 1) o.large_segment_bytes = (11 + vr_random_next(seed) % 500) * VR_MIB;
    o.max_non_split_rounding_bytes = o.large_segment_bytes + (bits & 2 ? vr_random_next(seed) % 1000 * VR_MIB : 0);
    if (bits & 4) o.max_split_bytes = o.large_segment_bytes + (vr_random_next(seed) >> 30) * VR_MIB;
    if (bits & 8) o.garbage_collection_threshold = (double)(1 + (vr_random_next(seed) >> 12)) * 0x1p-53;
    if (bits & 16) o.per_process_memory_fraction = (double)(vr_random_next(seed) >> 11) * 0x1p-53;
    for (unsigned i = 0; bits & 32 && i < VR_ROUNDUP_BUCKETS; i++) {
        const uint64_t roll = vr_random_next(seed) % 40;
        o.roundup_divisions[i] = i > 0 && roll < 20 ? o.roundup_divisions[i - 1] : roll > 31 ? 0 : 1u << roll;
    }
    o.expandable_segments = bits >> 6 & 1;
    o.release_lock_on_malloc = bits >> 7 & 1;
    o.pinned_free_catch_all = bits >> 8 & 1;
    o.throw_on_malloc_oom = bits >> 9 & 1;
    o.backend = bits >> 10 & 1 ? VR_BACKEND_ASYNC : VR_BACKEND_NATIVE;
    o.pinned_register_threads = 1u << (bits >> 11 & 7);
    if (bits >> 14 & 1) o.expandable_reserve.bytes = 1 + (vr_random_next(seed) >> 11);
    if (bits >> 15 & 1) o.pinned_max_cached_bytes = (vr_random_next(seed) >> 20) * VR_MIB;
    o.reserve_class_count = bits >> 16 & 1 ? (uint32_t)(vr_random_next(seed) % (VR_RESERVE_CLASSES + 1)) : 0;
    for (uint32_t i = 0; i < o.reserve_class_count; i++) {
        (void)snprintf(o.reserve_classes[i].name, VR_CLASS_NAME, "class%u>", i);
        if (vr_random_next(seed) & 1)
            o.reserve_classes[i].reserve.bytes = 1 + (vr_random_next(seed) >> 11);
        else
            o.reserve_classes[i].reserve.fraction = (double)(1 + (vr_random_next(seed) >> 12)) * 0x1p-52;
    }
    return o;
}

// Values that no option string may have are not accepted as options either.
static void bounds_of_fractions(void **state) {
    (void)state;
    static const struct {
        double garbage, share;
        bool good;
    } cases[] = {{0, 1, true},    {0.5, 0, true}, {0x1.fffffffffffffp-1, 1, true}, {1, 1, false}, {-0.5, 1, false},
                 {0, 1.5, false}, {0, -1, false}};
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        struct vr_options options = parsed("");
        options.garbage_collection_threshold = cases[i].garbage;
        options.per_process_memory_fraction = cases[i].share;
        assert_int_equal(vr_options_check(&options), cases[i].good);
    }
}

static void any_options_survive_printing(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 4000; round++) {
        const struct vr_options options = random_options(&seed);
        struct vr_text printed = {0};
        vr_options_print(&options, &printed);
        const struct vr_options again = parsed(vr_text_string(&printed));
        assert_true(vr_options_check(&again));
        if (memcmp(&options, &again, sizeof options) != 0) fail_msg("round %d: %s", round, vr_text_string(&printed));
        vr_text_release(&printed);
    }
}

// Truncated and mutated valid strings break nothing: every result is a status, and all fields stay in range.
static void broken_strings_only_fail(void **state) {
    (void)state;
    uint64_t seed = 2;
    for (int round = 0; round < 4000; round++) {
        const struct vr_options source = random_options(&seed);
        struct vr_text printed = {0};
        vr_options_print(&source, &printed);
        for (int i = 0; i < 3 && printed.length > 0; i++)
            printed.bytes[vr_random_next(&seed) % printed.length] = ",:[]>x0 9."[vr_random_next(&seed) % 10];
        if (printed.length > 0 && (seed & 1)) printed.bytes[vr_random_next(&seed) % printed.length] = '\0';
        struct vr_options options;
        struct vram_error error = {.offset = VRAM_NO_OFFSET};
        vr_options_init(&options);
        if (vr_options_parse(&options, vr_text_string(&printed), &error) == VRAM_OK) {
            assert_true(options.max_split_bytes >= options.large_segment_bytes);
            assert_true(options.max_non_split_rounding_bytes >= options.large_segment_bytes);
            assert_true(options.large_segment_bytes > 10 * VR_MIB);
            assert_true(options.reserve_class_count <= VR_RESERVE_CLASSES);
        } else {
            assert_true(error.offset <= strlen(vr_text_string(&printed)));
        }
        vr_text_release(&printed);
    }
}

static bool count_option(const struct vram_option *option, void *user) {
    unsigned *counts = user;
    counts[0]++;
    counts[1] += !option->is_default;
    if (strcmp(option->key, "max_split_size_mb") == 0) {
        assert_string_equal(option->value, "128");
        assert_string_equal(option->default_value, "unlimited");
    }
    if (strcmp(option->key, "max_non_split_rounding_mb") == 0) assert_string_equal(option->default_value, "24");
    if (strcmp(option->key, "expandable_segments_reserve") == 0) assert_string_equal(option->value, "unset");
    assert_int_not_equal(strlen(option->summary), 0);
    return counts[0] < counts[2];
}

enum {
    OPTIONS = 0
#define VR_OPTION(...) +1
#define VR_OPTION_ALIAS(...)
#define VR_RECORDED(...)
#include "config/options.def"
#undef VR_OPTION
#undef VR_OPTION_ALIAS
#undef VR_RECORDED
};

static void options_can_be_listed(void **state) {
    (void)state;
    unsigned counts[3] = {0, 0, 1000};
    const char *text = "max_split_size_mb:128,large_segment_size_mb:24";
    assert_int_equal(vram_options_list(text, count_option, counts, NULL), VRAM_OK);
    assert_int_equal(counts[0], OPTIONS);
    assert_int_equal(counts[1], 2);
    unsigned few[3] = {0, 0, 3};
    assert_int_equal(vram_options_list(text, count_option, few, NULL), VRAM_OK);
    assert_int_equal(few[0], 3);
    assert_int_equal(vram_options_list("x:1", count_option, counts, NULL), VRAM_BAD_OPTION);
    assert_int_equal(counts[0], OPTIONS);
}

static void the_environment_has_an_order(void **state) {
    (void)state;
    static const char *const names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "VRAM_ALLOC_CONF"};
    const char *variable = "untouched";
    for (size_t i = 0; i < VR_COUNT_OF(names); i++) unsetenv(names[i]);
    assert_null(vr_options_environment(&variable));
    assert_string_equal(variable, "untouched");
    for (size_t i = 0; i < VR_COUNT_OF(names); i++) {
        assert_int_equal(setenv(names[i], i == 2 ? "" : names[i], 1), 0);
        assert_string_equal(vr_options_environment(&variable), i == 2 ? "" : names[i]);
        assert_string_equal(variable, names[i]);
    }
    for (size_t i = 0; i < VR_COUNT_OF(names); i++) unsetenv(names[i]);
}

// A program may have set a locale with a decimal comma.
static void numbers_ignore_the_locale(void **state) {
    (void)state;
    if (!begin_decimal_comma()) skip();
    assert_printed("garbage_collection_threshold:0.25", "garbage_collection_threshold:0.25");
    assert_int_equal(vram_options_check("garbage_collection_threshold:0;25", NULL), VRAM_BAD_OPTION);
    assert_non_null(setlocale(LC_NUMERIC, "C"));
}

static void the_distance_of_words(void **state) {
    (void)state;
    static const struct {
        const char *word, *known;
        size_t distance;
    } rows[] = {{"", "", 0},
                {"", "abc", 3},
                {"abc", "", 3},
                {"report", "report", 0},
                {"reprot", "report", 2},
                {"rport", "report", 1},
                {"kitten", "sitting", 3},
                {"flaw", "lawn", 2},
                {"repport", "report", 1}};
    char longest[129] = "";
    for (size_t i = 0; i < VR_COUNT_OF(rows); i++) {
        assert_int_equal(vram_edit_distance(rows[i].word, rows[i].known), rows[i].distance);
        assert_int_equal(vram_edit_distance(rows[i].known, rows[i].word), rows[i].distance);
    }
    memset(longest, 'a', 127);
    assert_int_equal(vram_edit_distance("", longest), 127);
    longest[127] = 'a';
    assert_true(vram_edit_distance("", longest) == SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_distance_of_words),
        cmocka_unit_test(defaults_are_pytorchs),
        cmocka_unit_test(requests_can_be_padded),
        cmocka_unit_test(large_requests_can_be_aligned),
        cmocka_unit_test(every_size_key_is_in_mib),
        cmocka_unit_test(a_version_says_whose_rules),
        cmocka_unit_test(sizes_too_large_mean_the_largest),
        cmocka_unit_test(booleans_have_four_spellings),
        cmocka_unit_test(other_keys_are_read),
        cmocka_unit_test(reservations_are_fractions_or_bytes),
        cmocka_unit_test(divisions_follow_pytorch),
        cmocka_unit_test(divisor_is_chosen_by_the_power_of_two),
        cmocka_unit_test(white_space_and_trailing_commas_are_dropped),
        cmocka_unit_test(the_last_of_a_key_wins),
        cmocka_unit_test(the_large_segment_is_read_first),
        cmocka_unit_test(sizes_are_checked_against_the_last_large_segment),
        cmocka_unit_test(a_parse_resets_what_pytorch_resets),
        cmocka_unit_test(minus_one_is_no_limit),
        cmocka_unit_test(mistakes_name_the_character),
        cmocka_unit_test(words_have_a_limit),
        cmocka_unit_test(options_print_as_they_are_read),
        cmocka_unit_test(any_options_survive_printing),
        cmocka_unit_test(bounds_of_fractions),
        cmocka_unit_test(broken_strings_only_fail),
        cmocka_unit_test(options_can_be_listed),
        cmocka_unit_test(the_environment_has_an_order),
        cmocka_unit_test(numbers_ignore_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
