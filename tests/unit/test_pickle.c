// Tests pickles: every data opcode, every refusal, and hostile input.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/recording.h"

static struct vram_error error;

static struct vram_recording *read_bytes(const char *bytes, size_t size) {
    struct vram_recording *recording = NULL;
    enum vram_status status = vram_recording_read_memory(bytes, size, NULL, &recording, &error);
    if (status != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(vr_model_check(vr_recording_model(recording), NULL), VRAM_OK);
    return recording;
}
// The bytes of a string literal, NULs included.
#define READ(literal) read_bytes("" literal, sizeof(literal) - 1)

static void expect_refused(const char *bytes, size_t size, enum vram_status status, uint64_t offset, const char *what) {
    struct vram_recording *recording = NULL;
    char *copy = malloc(size); // exact size, so that sanitizers detect reads beyond it
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    assert_int_equal(vram_recording_read_memory(copy, size, "f.pickle", &recording, &error), status);
    free(copy);
    assert_null(recording);
    if (strstr(error.message, what) == NULL || strstr(error.message, "f.pickle: ") == NULL) fail_msg("%s", error.message);
    assert_int_equal(error.status, status);
    if (offset != VRAM_NO_OFFSET) assert_int_equal(error.offset, offset);
}
#define REFUSED(literal, status, offset, what) expect_refused("" literal, sizeof(literal) - 1, (status), (offset), (what))

#define KEY_SEGMENTS "\x8c\x08segments"
#define KEY_TRACES                                                                                                                         \
    "\x8c\x0d"                                                                                                                             \
    "device_traces"
#define KEY_SETTINGS                                                                                                                       \
    "\x8c\x12"                                                                                                                             \
    "allocator_settings"
#define KEY_ACTION                                                                                                                         \
    "\x8c\x06"                                                                                                                             \
    "action"

// Reads a recording with one setting `k` made by the opcodes.
#define SETTING(opcodes)                                                                                                                   \
    READ("\x80\x04}(" KEY_SEGMENTS "]" KEY_SETTINGS "}(\x8c\x01k" opcodes "\x8c\x01z"                                                      \
         "Nuu.")

static void expect_setting(struct vram_recording *recording, const char *wanted) {
    assert_string_equal(vram_recording_setting(recording, "k"), wanted);
    vram_recording_destroy(recording);
}

static void every_number_opcode_is_read(void **state) {
    (void)state;
    expect_setting(SETTING("K\xff"), "255");
    expect_setting(SETTING("M\xfe\xff"), "65534");
    expect_setting(SETTING("J\xff\xff\xff\xff"), "-1");
    expect_setting(SETTING("\x8a\x00"), "0");
    expect_setting(SETTING("\x8a\x01\x80"), "-128");
    expect_setting(SETTING("\x8a\x06\x00\x00\x00\x00\x00\x7f"), "139637976727552");
    expect_setting(SETTING("\x8a\x07\xff\xff\xff\xff\xff\xff\x7f"), "36028797018963967");
    expect_setting(SETTING("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"), "-9223372036854775808");
    expect_setting(SETTING("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"), "9223372036854775807");
    expect_setting(SETTING("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00"), "18446744073709551615");
    expect_setting(SETTING("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\xff"), "-9223372036854775808");
    expect_setting(SETTING("\x8b\x02\x00\x00\x00\x01\x02"), "513");
    expect_setting(SETTING("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01"), "18446744073709551616");
    expect_setting(SETTING("\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff"), "-9223372036854775809");
    expect_setting(SETTING("\x8a\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"), "1208925819614629174706176");
    expect_setting(SETTING("G\x3f\xe8\x00\x00\x00\x00\x00\x00"), "0.75");
    expect_setting(SETTING("G\x7f\xf8\x00\x00\x00\x00\x00\x00"), "{\"$float\": \"nan\"}");
    expect_setting(SETTING("I-12\n"), "-12");
    expect_setting(SETTING("I01\n"), "true");
    expect_setting(SETTING("L18446744073709551615L\n"), "18446744073709551615");
    expect_setting(SETTING("F2.5e-1\n"), "0.25");
    expect_setting(SETTING("F3\n"), "3.0");
}

// Protocols 0 and 1 have no opcode that identifies a pickle.
static void old_protocols_are_known_by_their_beginning(void **state) {
    (void)state;
    vram_recording_destroy(READ("(dp0\nVsegments\np1\n(lp2\ns."));
    vram_recording_destroy(READ("}q\x00X\x08\x00\x00\x00segmentsq\x01]q\x02s."));
    vram_recording_destroy(READ("(lp0\n."));
    vram_recording_destroy(READ("]q\x00."));
    REFUSED("(text)", VRAM_BAD_INPUT, 0, "not a recording");
}

static void every_other_opcode_is_read(void **state) {
    (void)state;
    expect_setting(SETTING("N"), "null");
    expect_setting(SETTING("\x88"), "true");
    expect_setting(SETTING("\x89"), "false");
    expect_setting(SETTING("Va\\u00e9\n"), "\"a\\u00e9\"");
    expect_setting(SETTING("X\x01\x00\x00\x00x"), "\"x\"");
    expect_setting(SETTING("\x8d\x01\x00\x00\x00\x00\x00\x00\x00x"), "\"x\"");
    expect_setting(SETTING("T\x01\x00\x00\x00x"), "\"x\"");
    expect_setting(SETTING("U\x01x"), "\"x\"");
    expect_setting(SETTING("C\x02xy"), "{\"$bytes\":\"7879\"}");
    expect_setting(SETTING("B\x02\x00\x00\x00xy"), "{\"$bytes\":\"7879\"}");
    expect_setting(SETTING("\x8e\x02\x00\x00\x00\x00\x00\x00\x00xy"), "{\"$bytes\":\"7879\"}");
    expect_setting(SETTING("\x96\x02\x00\x00\x00\x00\x00\x00\x00xy"), "{\"$bytearray\":\"7879\"}");
    expect_setting(SETTING("\x95\x02\x00\x00\x00\x00\x00\x00\x00K\x07"), "7");
    expect_setting(SETTING(")"), "{\"$tuple\": []}");
    expect_setting(SETTING("K\x01\x85"), "{\"$tuple\": [1]}");
    expect_setting(SETTING("K\x01K\x02\x86"), "{\"$tuple\": [1, 2]}");
    expect_setting(SETTING("K\x01K\x02K\x03\x87"), "{\"$tuple\": [1, 2, 3]}");
    expect_setting(SETTING("(K\x01K\x02K\x03K\x04t"), "{\"$tuple\": [1, 2, 3, 4]}");
    expect_setting(SETTING("(K\x01l"), "[1]");
    expect_setting(SETTING("\x8f"), "{\"$set\": []}");
    expect_setting(SETTING("\x8f\x94(K\x01K\x02\x90"), "{\"$set\": [1, 2]}");
    expect_setting(SETTING("(K\x01K\x02\x91"), "{\"$frozenset\": [1, 2]}");
    expect_setting(SETTING("(\x8c\x01xK\x01"
                           "d"),
                   "{\"x\": 1}");
    expect_setting(SETTING("}K\x05K\x01s"), "{\"$dict\": [[5, 1]]}");
    expect_setting(SETTING("]K\x01"
                           "aK\x02"
                           "a"),
                   "[1, 2]");
    expect_setting(SETTING("K\x01K\x02"
                           "0"),
                   "1");
    expect_setting(SETTING("K\x01(K\x02K\x03"
                           "1"),
                   "1");
    expect_setting(SETTING("]K\x01"
                           "a2\x85"
                           "0"),
                   "[1]");
    // DUP gives the same list, not a copy.
    expect_setting(SETTING("]2K\x09"
                           "a0"),
                   "[9]");
    expect_setting(SETTING("]q\x05K\x01"
                           "ah\x05K\x02"
                           "a0"),
                   "[1, 2]");
    expect_setting(SETTING("]r\x05\x00\x00\x00"
                           "0j\x05\x00\x00\x00"),
                   "[]");
    expect_setting(SETTING("K\x03p9\n0g9\n"), "3");
    expect_setting(SETTING("K\x03\x94"
                           "0h\x00"),
                   "3");
}

static void what_runs_code_is_refused_by_name(void **state) {
    (void)state;
    static const struct {
        char code;
        const char *name;
    } refused[] = {{'c', "GLOBAL"},  {'R', "REDUCE"},       {'b', "BUILD"},           {'i', "INST"},          {'o', "OBJ"},
                   {'P', "PERSID"},  {'Q', "BINPERSID"},    {'\x81', "NEWOBJ"},       {'\x82', "EXT1"},       {'\x83', "EXT2"},
                   {'\x84', "EXT4"}, {'\x92', "NEWOBJ_EX"}, {'\x93', "STACK_GLOBAL"}, {'\x97', "NEXT_BUFFER"}};
    for (size_t i = 0; i < VR_COUNT_OF(refused); i++) {
        char bytes[] = "\x80\x04}?os\nsystem\n0000.";
        char wanted[64];
        bytes[3] = refused[i].code;
        (void)snprintf(wanted, sizeof wanted, "opcode %s is refused", refused[i].name);
        expect_refused(bytes, sizeof bytes - 1, VRAM_BAD_INPUT, 3, wanted);
        assert_non_null(strstr(error.message, "(at byte 3)"));
    }
    REFUSED("\x80\x04\xff", VRAM_BAD_INPUT, 2, "0xff is not an opcode");
    REFUSED("\x80\x06N.", VRAM_BAD_INPUT, 0, "protocol 6");
}

static void damage_is_refused_with_its_place(void **state) {
    (void)state;
    REFUSED("\x80\x04}", VRAM_BAD_INPUT, 3, "cut short");
    REFUSED("\x80\x04K", VRAM_BAD_INPUT, 2, "cut short");
    REFUSED("\x80\x04X\x05\x00\x00\x00"
            "abc",
            VRAM_BAD_INPUT, 2, "cut short");
    REFUSED("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff", VRAM_BAD_INPUT, 2, "cut short");
    REFUSED("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff", VRAM_BAD_INPUT, 2, "cut short");
    REFUSED("\x80\x04I12", VRAM_BAD_INPUT, 2, "cut short");
    REFUSED("\x80\x04.", VRAM_BAD_INPUT, 2, "without a value");
    REFUSED("\x80\x04h\x00.", VRAM_BAD_INPUT, 2, "memo 0 is read before it is set");
    REFUSED("\x80\x04j\xff\xff\xff\xff.", VRAM_BAD_INPUT, 2, "memo 4294967295 is read before it is set");
    REFUSED("\x80\x04K\x01s.", VRAM_BAD_INPUT, 4, "needs more values than the stack has");
    REFUSED("\x80\x04"
            "a.",
            VRAM_BAD_INPUT, 2, "needs more values than the stack has");
    REFUSED("\x80\x04u.", VRAM_BAD_INPUT, 2, "needs a mark that the stack lacks");
    REFUSED("\x80\x04}(Nu.", VRAM_BAD_INPUT, 5, "needs more values than the stack has");
    REFUSED("\x80\x04]N(K\x01s.", VRAM_BAD_INPUT, 7, "needs more values than the stack has");
    REFUSED("\x80\x04((\x94.", VRAM_BAD_INPUT, 4, "needs more values than the stack has");
    REFUSED("\x80\x04(((((.", VRAM_BAD_INPUT, 7, "without a value");
    REFUSED("\x80\x04NN"
            "a.",
            VRAM_BAD_INPUT, 4, "items are appended to None");
    REFUSED("\x80\x04]NNs.", VRAM_BAD_INPUT, 5, "keys are set in an empty list");
    REFUSED("\x80\x04U\x01\xff.", VRAM_BAD_INPUT, 2, "not UTF-8");
    REFUSED("\x80\x04\x8b\xff\xff\xff\xff.", VRAM_BAD_INPUT, 2, "cut short");
    REFUSED("\x80\x04L18446744073709551616L\n.", VRAM_BAD_INPUT, VRAM_NO_OFFSET, "it contains a number with more than 64 bits");
    REFUSED("\x80\x04Itwo\n.", VRAM_BAD_INPUT, 2, "malformed");
    REFUSED("\x80\x04V\\u12\n.", VRAM_BAD_INPUT, 2, "malformed escape");
}

static void what_is_no_recording_is_refused(void **state) {
    (void)state;
    REFUSED("\x80\x04K\x01.", VRAM_BAD_INPUT, VRAM_NO_OFFSET, "it contains a number");
    REFUSED("\x80\x04}.", VRAM_BAD_INPUT, VRAM_NO_OFFSET, "neither `segments` nor `device_traces`");
    REFUSED("\x80\x04]K\x01"
            "a.",
            VRAM_BAD_INPUT, VRAM_NO_OFFSET, "element 0 of `segments` is a number, not a segment");
    REFUSED("\x80\x04}" KEY_SEGMENTS "K\x01s.", VRAM_BAD_INPUT, VRAM_NO_OFFSET, "`segments` is a number, not a list");
    // The last has a recording: the right key is named, whatever precedes it.
    REFUSED("\x80\x04}(\x8c\x01"
            "a}(\x8c\x01"
            "xK\x01u\x8c\x01"
            "b}(" KEY_SEGMENTS "]" KEY_TRACES "]uu.",
            VRAM_BAD_INPUT, VRAM_NO_OFFSET, "not a recording but a dictionary that contains one in `b`");
    REFUSED("\x80\x04}" KEY_TRACES "](NK\x01"
            "es.",
            VRAM_BAD_INPUT, VRAM_NO_OFFSET, "`device_traces` is a number, not a list");
    REFUSED("\x80\x04}(" KEY_SEGMENTS "]" KEY_TRACES "]]}(" KEY_ACTION "\x8c\x05"
            "alloc\x8c\x04size\x8c\x01xuaau.",
            VRAM_BAD_INPUT, VRAM_NO_OFFSET, "`size` is a string; expected a size in bytes");
}

static void rows_that_come_bit_by_bit_are_recognised(void **state) {
    (void)state;
    struct vram_recording *recording = READ("\x80\x04}" KEY_TRACES "]]}" KEY_ACTION "\x8c\x05"
                                            "allocs\x8c\x04sizeK\x07s\x8c\x06"
                                            "frames]}\x8c\x04name\x8c\x01"
                                            "fs\x8c\x04line"
                                            "K\x03s\x8c\x08"
                                            "filename\x8c\x01xsasaas.");
    const struct vr_model *model = vr_recording_model(recording);
    assert_int_equal(model->histories[0].count, 1);
    assert_int_equal(model->histories[0].size_bytes[0], 7);
    assert_int_equal(vr_entry_has(&model->histories[0], 0), VR_HAS_ACTION | VR_HAS_SIZE | VR_HAS_FRAMES);
    assert_int_equal(model->frames.count, 1);
    assert_int_equal(model->frames.line[0], 3);
    vram_recording_destroy(recording);
}

static void the_last_of_repeated_keys_counts(void **state) {
    (void)state;
    struct vram_recording *recording =
        READ("\x80\x04}(" KEY_SEGMENTS "K\x01" KEY_TRACES "](]}(" KEY_ACTION "\x8c\x04oops" KEY_ACTION "\x8c\x04"
             "free\x8c\x04sizeK\x01\x8c\x04sizeK\x02ua"
             "e" KEY_SEGMENTS "]u.");
    const struct vr_model *model = vr_recording_model(recording);
    assert_int_equal(model->histories[0].action[0], VR_ACTION_FREE);
    assert_int_equal(model->histories[0].unknown[0], 0);
    assert_int_equal(model->histories[0].size_bytes[0], 2);
    assert_int_equal(model->top_level_key_count, 2);
    vram_recording_destroy(recording);
}

static void containers_in_themselves_are_refused(void **state) {
    (void)state;
    REFUSED("\x80\x04}" KEY_SEGMENTS "]\x94h\x00"
            "as.",
            VRAM_BAD_INPUT, VRAM_NO_OFFSET, "element 0 of `segments` is a list");
    REFUSED("\x80\x04}\x94" KEY_SEGMENTS "]h\x00"
            "as.",
            VRAM_BAD_INPUT, VRAM_NO_OFFSET, "element 0 of `segments` is a dictionary");
    REFUSED("\x80\x04}(" KEY_SEGMENTS "]" KEY_SETTINGS "}(\x8c\x01k]\x94h\x00"
            "a\x8c\x01zNuu.",
            VRAM_LIMIT, VRAM_NO_OFFSET, "nests deeper");
    // A dictionary under a key that is not read would be lost silently, because text cannot represent it.
    REFUSED("\x80\x04}" KEY_TRACES "]]}\x94\x8c\x01xh\x00s" KEY_ACTION "\x8c\x05"
            "allocsaas.",
            VRAM_LIMIT, VRAM_NO_OFFSET, "nests deeper");
}

static void trailing_bytes_are_ignored(void **state) {
    (void)state;
    struct vram_recording *recording = READ("\x80\x04}" KEY_SEGMENTS "]s.\0\0garbage");
    assert_int_equal(vram_recording_segment_count(recording), 0);
    vram_recording_destroy(recording);
}

static char *put(char *at, const char *bytes, size_t size) {
    memcpy(at, bytes, size);
    return at + size;
}
#define PUT(at, literal) put((at), "" literal, sizeof(literal) - 1)

// One list of 10,000 events as the history of 4,000 devices: 12 kB that would become 2.7 GB of rows.
static void shared_lists_do_not_multiply(void **state) {
    (void)state;
    enum { EVENTS = 10000, DEVICES = 4000 };
    char *bytes = malloc(64 + 2 * (EVENTS + DEVICES)), *at = bytes;
    struct vram_recording *recording = NULL;
    at = PUT(at, "\x80\x04}" KEY_TRACES "]("
                 "]\x94(}(" KEY_ACTION "\x8c\x05"
                 "alloc\x8c\x04sizeK\x01u\x94");
    for (int i = 1; i < EVENTS; i++) at = PUT(at, "h\x01");
    at = PUT(at, "e");
    for (int i = 1; i < DEVICES; i++) at = PUT(at, "h\x00");
    at = PUT(at, "es.");
    assert_int_equal(vram_recording_read_memory(bytes, (size_t)(at - bytes), NULL, &recording, &error), VRAM_LIMIT);
    assert_non_null(strstr(error.message, "far more than its size"));
    free(bytes);
}

// 40 lists, each twice in the next: 2^40 numbers as JSON.
static void nested_sharing_does_not_explode(void **state) {
    (void)state;
    char bytes[1024], *at = bytes;
    at = PUT(at, "\x80\x04]\x94K\x01"
                 "a0");
    for (int i = 1; i < 40; i++) {
        const char level[] = {']', '(', 'h', (char)(i - 1), 'h', (char)(i - 1), 'e', '\x94', '0'};
        at = put(at, level, sizeof level);
    }
    at = PUT(at, "}(" KEY_SEGMENTS "]" KEY_SETTINGS "}(\x8c\x01kh\x27\x8c\x01zNuu.");
    struct vram_recording *recording = NULL;
    assert_int_equal(vram_recording_read_memory(bytes, (size_t)(at - bytes), NULL, &recording, &error), VRAM_LIMIT);
}

// A list of a million numbers under an unknown key, in one batch as in the C++ writer, does not make the file invalid.
static void unread_lists_cost_nothing(void **state) {
    (void)state;
    enum { ITEMS = 1000000 };
    char *bytes = malloc(2 * ITEMS + 64), *at = bytes;
    at = PUT(at, "\x80\x02}(X\x04\x00\x00\x00news](");
    for (int i = 0; i < ITEMS; i++) at = PUT(at, "K\x01");
    at = PUT(at, "e" KEY_SEGMENTS "](eu.");
    vram_recording_destroy(read_bytes(bytes, (size_t)(at - bytes)));
    free(bytes);
}

// The smallest events of any writer (C++, before times were recorded) stay within the budget at every size.
static void the_smallest_events_are_read(void **state) {
    (void)state;
    enum { EVENTS = 300000 };
    static const char event[] = "}(h\x01h\x02h\x03\x8a\x08\x00\x02\x03\x04\x05\x7f\x00\x00h\x04M\x00\x02h\x05K\x00u";
    char *bytes = malloc(EVENTS * sizeof event + 256), *at = bytes;
    at = PUT(at, "\x80\x02}(" KEY_TRACES "](](}(" KEY_ACTION "q\x01\x8c\x05"
                 "allocq\x02\x8c\x04"
                 "addrq\x03K\x00\x8c\x04sizeq\x04K\x00\x8c\x06"
                 "streamq\x05K\x00u");
    for (int i = 1; i < EVENTS; i++) at = put(at, event, sizeof event - 1);
    at = PUT(at, "eeu.");
    struct vram_recording *recording = read_bytes(bytes, (size_t)(at - bytes));
    assert_int_equal(vram_recording_event_count(recording, 0), EVENTS);
    assert_int_equal(vr_recording_model(recording)->histories[0].address[EVENTS - 1], 0x7f0504030200);
    vram_recording_destroy(recording);
    free(bytes);
}

// A dictionary or list of one item comes without a mark; its contents are not at the top level.
static void single_items_are_not_taken_for_the_top(void **state) {
    (void)state;
    struct vram_recording *recording = READ("\x80\x04}(" KEY_SEGMENTS "]" KEY_SETTINGS "}\x8c\x01k}(\x8c\x01"
                                            "aK\x01\x8c\x01"
                                            "bK\x02usu.");
    expect_setting(recording, "{\"a\": 1, \"b\": 2}");
    recording = READ("\x80\x04]}(\x8c\x0atotal_sizeK\x01\x8c\x06"
                     "blocks](}(\x8c\x04sizeK\x01\x8c\x05stateNue\x8c\x06"
                     "frames]ua.");
    assert_int_equal(vram_recording_block_count(recording), 1);
    vram_recording_destroy(recording);
}

static void the_memo_stays_near_the_input(void **state) {
    (void)state;
    REFUSED("\x80\x04Nr\xf0\xff\xff\xff.", VRAM_LIMIT, 3, "far more than its size");
}

static void a_used_list_of_frames_is_fixed(void **state) {
    (void)state;
    REFUSED("\x80\x04}" KEY_TRACES "]](}(\x8c\x06"
            "frames](}(\x8c\x08"
            "filename\x8c\x01x\x8c\x04lineK\x01ueq\x01" KEY_ACTION "\x8c\x05"
            "alloc"
            "uh\x01}(\x8c\x08"
            "filename\x8c\x01x\x8c\x04lineK\x01ua0eas.",
            VRAM_BAD_INPUT, VRAM_NO_OFFSET, "is changed after its use");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_opcode_is_read),
        cmocka_unit_test(every_other_opcode_is_read),
        cmocka_unit_test(old_protocols_are_known_by_their_beginning),
        cmocka_unit_test(what_runs_code_is_refused_by_name),
        cmocka_unit_test(damage_is_refused_with_its_place),
        cmocka_unit_test(what_is_no_recording_is_refused),
        cmocka_unit_test(rows_that_come_bit_by_bit_are_recognised),
        cmocka_unit_test(the_last_of_repeated_keys_counts),
        cmocka_unit_test(containers_in_themselves_are_refused),
        cmocka_unit_test(trailing_bytes_are_ignored),
        cmocka_unit_test(shared_lists_do_not_multiply),
        cmocka_unit_test(nested_sharing_does_not_explode),
        cmocka_unit_test(unread_lists_cost_nothing),
        cmocka_unit_test(single_items_are_not_taken_for_the_top),
        cmocka_unit_test(the_smallest_events_are_read),
        cmocka_unit_test(the_memo_stays_near_the_input),
        cmocka_unit_test(a_used_list_of_frames_is_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
