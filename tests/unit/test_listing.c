// Tests listings: the rows as text and as JSON.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "vram/profile.h"
#include "vram/recording.h"

// A segment of 60 MiB: 30 MiB of one block, 5 MiB of another, 25 MiB free.
static const char story[] =
    "{\"segments\": [{\"device\": 0, \"address\": 4194304, \"total_size\": 62914560, \"stream\": 9, \"segment_type\": \"large\", "
    "\"blocks\": ["
    "{\"address\": 4194304, \"size\": 31457280, \"requested_size\": 31457000, \"state\": \"active_allocated\", \"frames\": [{\"name\": "
    "\"in;ner\", "
    "\"filename\": \"/a/b.py\", \"line\": 3}, {\"name\": \"outer\", \"filename\": \"c.py\", \"line\": 4}]}, {\"address\": 35651584, "
    "\"size\": "
    "5242880, \"requested_size\": 5242880, \"state\": \"active_pending_free\", \"frames\": []}, {\"address\": 40894464, \"size\": "
    "26214400, "
    "\"state\": \"inactive\", \"frames\": []}]}], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 4194304, \"size\": 5, \"stream\": "
    "9}, "
    "{\"action\": \"free_requested\", \"addr\": 4194304, \"size\": 5, \"stream\": 9}, {\"action\": \"alloc\", \"addr\": 4194304, \"size\": "
    "31457000, \"stream\": 9}, {\"action\": \"oom\", \"device_free\": 1024, \"size\": 2048, \"stream\": 0}]]}";

static bool append(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

static bool refuse(void *user, const char *bytes, size_t length) {
    (void)user;
    (void)bytes;
    (void)length;
    return false;
}

static struct vram_recording *read_story(void) {
    struct vram_recording *recording = NULL;
    assert_int_equal(VRAM_OK, vram_recording_read_memory(story, sizeof story - 1, "story", &recording, NULL));
    return recording;
}

static void expect(enum vram_listing listing, bool json, const char *const *parts) {
    struct vram_recording *recording = read_story();
    struct vr_text text = {0};
    if (json)
        assert_int_equal(VRAM_OK, vram_listing_json(recording, listing, "story", append, &text, NULL));
    else
        assert_int_equal(VRAM_OK, vram_listing_text(recording, listing, NULL, append, &text, NULL));
    for (size_t i = 0; parts[i] != NULL; i++) {
        if (strstr(vr_text_string(&text), parts[i]) == NULL) fail_msg("no '%s' in:\n%s", parts[i], vr_text_string(&text));
    }
    vr_text_release(&text);
    vram_recording_destroy(recording);
}

static void people_read_rows(void **state) {
    (void)state;
    // 20 MiB of a; 10 of a and 5 of b; nothing.
    expect(VRAM_LISTING_STATS, false,
           (const char *const[]){"[a7 ] 60.0 MiB, 25.0 MiB free, 280 B rounding, 5.0 MiB pending, stream 9\n",
                                 "1 segment: 60.0 MiB reserved = 30.0 MiB allocated", NULL});
    expect(VRAM_LISTING_SEGMENTS, false, (const char *const[]){"400000", "60.0 MiB", "large", NULL});
    expect(VRAM_LISTING_MEMORY, false,
           (const char *const[]){"stream_9;active_allocated;c.py:4:outer;b.py:3:in,ner 31457000\n",
                                 "stream_9;active_allocated;<gaps> 280\n", "stream_9;active_pending_free;<no frames> 5242880\n",
                                 "stream_9;inactive;<no frames> 26214400\n", NULL});
    expect(VRAM_LISTING_TRACE, false,
           (const char *const[]){"alloc          b400000_0                   5 B  stream 9\n", "free_requested b400000_0",
                                 "alloc          b400000_1              30.0 MiB", "out of memory: 2.0 KiB requested, 1.0 KiB free", NULL});
}

static void programs_read_objects(void **state) {
    (void)state;
    expect(
        VRAM_LISTING_STATS, true,
        (const char *const[]){"\"segments\": 1, \"reserved_bytes\": 62914560, \"allocated_bytes\": 31457280, \"pending_bytes\": 5242880, "
                              "\"free_bytes\": 26214400, \"rounding_bytes\": 280",
                              NULL});
    expect(VRAM_LISTING_SEGMENTS, true, (const char *const[]){"\"largest_free_bytes\": 26214400", "\"kind\": \"large\"", NULL});
    expect(VRAM_LISTING_MEMORY, true, (const char *const[]){"\"frames\": [\"/a/b.py:3:in;ner\", \"c.py:4:outer\"]", NULL});
    expect(
        VRAM_LISTING_TRACE, true,
        (const char *const[]){"\"label\": \"b400000_1\", \"address\": 4194304, \"bytes\": 31457000", "\"device_free_bytes\": 1024", NULL});
}

static void what_goes_wrong_is_said(void **state) {
    (void)state;
    struct vram_recording *recording = read_story();
    struct vram_error error = {0};
    assert_int_equal(VRAM_IO, vram_listing_text(recording, VRAM_LISTING_TRACE, NULL, refuse, NULL, &error));
    assert_int_equal(VRAM_IO, vram_listing_json(recording, VRAM_LISTING_MEMORY, NULL, refuse, NULL, &error));
    assert_int_equal(VRAM_INVALID_ARGUMENT, vram_listing_text(recording, VRAM_LISTING_COUNT, NULL, refuse, NULL, &error));
    assert_int_equal(VRAM_INVALID_ARGUMENT, vram_listing_text(NULL, VRAM_LISTING_STATS, NULL, refuse, NULL, NULL));
    assert_string_equal(vram_listing_name(VRAM_LISTING_MEMORY), "memory");
    assert_null(vram_listing_name(VRAM_LISTING_COUNT));
    vram_recording_destroy(recording);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(people_read_rows),
        cmocka_unit_test(programs_read_objects),
        cmocka_unit_test(what_goes_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
