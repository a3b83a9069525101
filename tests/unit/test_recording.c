// Tests recordings as a whole: format detection, input in pieces, files, pages, missing parts of old files, the getters.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "model/recording.h"
#include "snapshot/formats.h"

static struct vram_error error;

static void expect_refused(const char *bytes, size_t size, enum vram_status status, const char *what) {
    struct vram_recording *recording = NULL;
    assert_int_equal(vram_recording_read_memory(bytes, size, "f", &recording, &error), status);
    if (strstr(error.message, what) == NULL) fail_msg("%s", error.message);
}
#define REFUSED(literal, what) expect_refused("" literal, sizeof(literal) - 1, VRAM_BAD_INPUT, (what))

static struct vram_recording *read_bytes(const char *bytes, size_t size) {
    struct vram_recording *recording = NULL;
    if (vram_recording_read_memory(bytes, size, NULL, &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(vr_model_check(vr_recording_model(recording), NULL), VRAM_OK);
    return recording;
}

static void other_files_are_named(void **state) {
    (void)state;
    REFUSED("", "f: the file is empty");
    REFUSED(" \n", "the file is empty");
    REFUSED("\x1f\x8b\x08", "gzip");
    REFUSED("\x28\xb5\x2f\xfd\x00\x00", "zstd");
    REFUSED("\xfd"
            "7zXZ\x00",
            "xz");
    REFUSED("PK\x03\x04", "ZIP");
    REFUSED("BZh9", "bzip2");
    REFUSED("\x7f"
            "ELF",
            "a program");
    REFUSED("7z\xbc\xaf\x27\x1c", "7z");
    REFUSED("\x93NUMPY\x01", "NumPy");
    REFUSED("version https://git-lfs.github.com/spec/v1\n", "git lfs pull");
    REFUSED("\xff\xfe{", "UTF-16");
    REFUSED("[{\"segments\": []}, {\"segments\": []}]", "a list of 2");
    REFUSED("{\"step\": 3, \"rank0\": {\"segments\": [], \"device_traces\": []}}", "a dictionary that contains one in `rank0`");
    REFUSED("[{\"action\": \"alloc\", \"addr\": 512, \"size\": 512, \"stream\": 0}]", "events without their segments");
    REFUSED("[[{\"action\": \"alloc\", \"addr\": 512, \"size\": 512, \"stream\": 0}]]", "events without their segments");
    REFUSED("(dp0\n.", "neither `segments` nor `device_traces`"); // a pickle of protocol 0
    REFUSED("SQLite format 3\0.", "an SQLite database");
    REFUSED("\x0a\x04\x08\x01\x10\x02\x0a\x04", "a pprof profile, such as JAX's memory.prof");
    REFUSED("[  4242][12:00:00:000001][info  ] ----- RMM LOG BEGIN [PTDS DISABLED] -----\n", "RMM's debug log");
    REFUSED("step 3\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n",
            "the log of a program that ran out of memory");
    REFUSED("?dp0\n.", "unrecognized format (first byte 0x3f)");
}

struct pieces {
    const char *data;
    size_t left, step;
    size_t fail_at; // read() fails with this many bytes left; SIZE_MAX: never
};

static size_t read_piece(void *context, void *buffer, size_t capacity) {
    struct pieces *pieces = context;
    if (pieces->left <= pieces->fail_at && pieces->fail_at != SIZE_MAX) return SIZE_MAX;
    size_t count = pieces->step < capacity ? pieces->step : capacity;
    if (count > pieces->left) count = pieces->left;
    memcpy(buffer, pieces->data, count);
    pieces->data += count;
    pieces->left -= count;
    return count;
}

static const char old_file[] =
    "{\"segments\": [{\"device\": 1, \"address\": 4096, \"total_size\": 2048, \"blocks\": ["
    "{\"size\": 512, \"state\": \"active_allocated\", \"history\": [{\"addr\": 4096, \"real_size\": 400, \"frames\": "
    "[{\"name\": \"f\", \"filename\": \"x.py\", \"line\": 3}]}, {\"real_size\": 9}]},"
    "{\"size\": 1024, \"state\": \"a new state\"}, {\"size\": 512, \"state\": \"inactive\", \"requested_size\": 7}]}],"
    "\"device_traces\": [[], [{\"action\": \"oom\", \"device_free\": 77, \"size\": 5, \"stream\": 0}], []]}";

static void pieces_of_any_size_are_the_same(void **state) {
    (void)state;
    for (size_t step = 1; step < 40; step += 3) {
        struct pieces pieces = {old_file, sizeof old_file - 1, step, SIZE_MAX};
        struct vram_input input = {.read = read_piece, .context = &pieces, .name = "pieces"};
        struct vram_recording *recording = NULL;
        if (vram_recording_read(&input, &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
        assert_int_equal(vram_recording_block_count(recording), 3);
        vram_recording_destroy(recording);
    }
}

static void a_failing_input_is_reported(void **state) {
    (void)state;
    struct pieces pieces = {old_file, sizeof old_file - 1, 64, 100};
    struct vram_input input = {.read = read_piece, .context = &pieces, .name = "pieces"};
    struct vram_recording *recording = NULL;
    assert_int_equal(vram_recording_read(&input, &recording, &error), VRAM_IO);
    assert_non_null(strstr(error.message, "pieces: "));
    assert_int_equal(vram_recording_read(NULL, &recording, &error), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_recording_read_memory(NULL, 1, NULL, &recording, NULL), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_recording_read_file("/there/is/no/such/file", &recording, &error), VRAM_IO);
    assert_non_null(strstr(error.message, "/there/is/no/such/file"));
    assert_null(recording);
}

static void what_old_files_lack_is_filled_in(void **state) {
    (void)state;
    struct vram_recording *recording = read_bytes(old_file, sizeof old_file - 1);
    const struct vr_model *model = vr_recording_model(recording);
    static const uint64_t addresses[] = {4096, 4608, 5632}, requested[] = {400, 1024, 7};
    static const uint8_t states[] = {VR_STATE_ALLOCATED, VR_STATE_UNKNOWN, VR_STATE_INACTIVE};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(model->blocks.address[i], addresses[i]);
        assert_int_equal(model->blocks.requested_bytes[i], requested[i]);
        assert_int_equal(model->blocks.state[i], states[i]);
        assert_int_equal(model->blocks.has[i] & VR_HAS_ADDRESS, 0);
    }
    assert_int_equal(model->stacks.offset[model->blocks.stack[0] + 1] - model->stacks.offset[model->blocks.stack[0]], 1);
    assert_int_equal(model->blocks.stack[1], 0);
    assert_int_equal(model->histories[1].action[0], VR_ACTION_OOM);
    assert_int_equal(model->histories[1].address[0], 77);
    assert_int_equal(vr_entry_has(&model->histories[1], 0) & VR_HAS_DEVICE_FREE, VR_HAS_DEVICE_FREE);
    assert_int_equal(model->history_count, 3);
    assert_int_equal(vram_get_recording_form(recording), VRAM_RECORDING_DICT);
    assert_int_equal(vram_recording_device_count(recording), 2);
    assert_int_equal(vram_recording_event_count(recording, 1), 1);
    assert_int_equal(vram_recording_event_count(recording, 9), 0);
    assert_int_equal(vram_recording_event_count(recording, VRAM_ALL_DEVICES), 1);
    assert_int_equal(vram_recording_segment_count(recording), 1);
    assert_null(vram_recording_setting(recording, "max_split_size"));
    vram_recording_destroy(recording);
}

static void a_bare_list_is_segments(void **state) {
    static const char list[] = "[{\"device\": 2, \"address\": 1, \"total_size\": 0, \"blocks\": []}]";
    (void)state;
    struct vram_recording *recording = read_bytes(list, sizeof list - 1);
    assert_int_equal(vram_get_recording_form(recording), VRAM_RECORDING_SEGMENT_LIST);
    assert_int_equal(vram_recording_device_count(recording), 3);
    vram_recording_destroy(recording);
    recording = read_bytes("[]", 2);
    assert_int_equal(vram_recording_device_count(recording), 0);
    vram_recording_destroy(recording);
    vram_recording_destroy(NULL);
}

// b"\x80\x04}\x8c\x08segments]s." in base64 is gAR9jAhzZWdtZW50c11zLg==
#define BASE64 "gAR9jAhzZWdtZW50c11zLg=="

static void pages_are_opened(void **state) {
    static const char *const pages[] = {
        ("<html>\"base64\": \"" BASE64 "\""),
        "  <!DOCTYPE html> \"base64\" no \"base64\"\n:\n\"gAR9jAhzZWdt\nZW50c11zLg\"</html>",
        ("<a href=\"x\">{\"name\":\"y\",\"base64\":\"" BASE64),
    };
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(pages); i++) {
        struct vram_recording *recording = read_bytes(pages[i], strlen(pages[i]));
        assert_int_equal(vr_recording_model(recording)->top_level_key_count, 1);
        vram_recording_destroy(recording);
    }
    REFUSED("<html>no data</html>", "contains no recording");
    REFUSED("<html>\"base64\": \"\"", "empty");
    REFUSED("<html>\"base64\": \"gAR9!\"", "not valid base64");
    REFUSED("<html>\"base64\": \"gAR9\"", "cut short");
    REFUSED("<html>\"base64\": \"PGh0bWw+\"", "contains another");
}

// A page with data longer than every buffer, and newlines at odd places.
static void long_pages_are_read(void **state) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    enum { SPACES = 700000 };
    (void)state;
    char *inner = malloc(SPACES + 32), *page = malloc(2 * SPACES + 100);
    memset(inner, ' ', SPACES);
    strcpy(inner + SPACES, "{\"segments\": []}");
    size_t length = strlen(inner);
    while (length % 3 != 0) inner[length++] = '\n';
    char *at = page + sprintf(page, "<html> \"base64\": \"");
    for (size_t i = 0; i < length; i += 3) {
        uint32_t bits = (uint32_t)(unsigned char)inner[i] << 16 | (uint32_t)(unsigned char)inner[i + 1] << 8 | (unsigned char)inner[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6) *at++ = digits[bits >> shift & 63];
        if (i % 57 == 0) *at++ = '\n';
    }
    at += sprintf(at, "\"</html>");
    struct pieces pieces = {page, (size_t)(at - page), 4099, SIZE_MAX};
    struct vram_input input = {.read = read_piece, .context = &pieces, .name = NULL};
    struct vram_recording *recording = NULL;
    if (vram_recording_read(&input, &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    vram_recording_destroy(recording);
    free(inner);
    free(page);
}

static void events_of_devices_are_kept_apart(void **state) {
    static const char text[] = "{\"device_traces\": [[{\"action\": \"alloc\", \"size\": 1}], null, [{\"action\": \"free\", \"size\": 2},"
                               "{\"action\": \"new\", \"size\": 3, \"user_metadata\": {\"a\": [1]}, \"compile_context\": \"N/A\"}]]}";
    (void)state;
    struct vram_recording *recording = read_bytes(text, sizeof text - 1);
    const struct vr_model *model = vr_recording_model(recording);
    assert_int_equal(model->history_count, 3);
    assert_int_equal(model->histories[0].count, 1);
    assert_int_equal(model->histories[1].count, 0);
    assert_int_equal(model->histories[2].count, 2);
    assert_int_equal(model->histories[2].size_bytes[0], 2);
    assert_int_equal(model->histories[2].action[1], VR_ACTION_UNKNOWN);
    assert_string_equal(vr_model_string(model, model->histories[2].unknown[1]), "new");
    assert_string_equal(vr_model_string(model, model->histories[2].metadata[1]), "{\"a\": [1]}");
    assert_string_equal(vr_model_string(model, model->histories[2].context[1]), "N/A");
    vram_recording_destroy(recording);
}

// Segments written in another order than their blocks, and blocks shared by two segments.
static void rows_follow_the_lists(void **state) {
    static const char bytes[] = "\x80\x04}(\x8c\x01x](](}(\x8c\x04sizeK\x05\x8c\x05stateVinactive\nue\x94}(\x8c\x04sizeK\x06\x8c\x05state"
                                "Vinactive\nu\x94"
                                "e\x8c\x08segments](}(\x8c\x07"
                                "addressK\x01\x8c\x06"
                                "blocks]h\x01"
                                "au}(\x8c\x07"
                                "addressK\x02\x8c\x06"
                                "blocks](}(\x8c\x04sizeK\x07\x8c\x05stateVinactive\nu}(\x8c\x04sizeK\x08\x8c\x05stateV"
                                "inactive\nuee}(\x8c\x07"
                                "addressK\x03\x8c\x06"
                                "blocksh\x00ueu.";
    struct vram_recording *recording = NULL;
    (void)state;
    // A value under a key that is not read is not kept; using it elsewhere is refused, not misread.
    assert_int_equal(vram_recording_read_memory(bytes, sizeof bytes - 1, NULL, &recording, &error), VRAM_BAD_INPUT);
    static const char kept[] = "\x80\x04](}(\x8c\x04sizeK\x05\x8c\x05stateVinactive\nu}(\x8c\x04sizeK\x06\x8c\x05stateVinactive\nue\x94"
                               "0"
                               "](}(\x8c\x07"
                               "addressK\x01\x8c\x06"
                               "blocks](}(\x8c\x04sizeK\x07\x8c\x05stateVinactive\nueu"
                               "}(\x8c\x07"
                               "addressK\x03\x8c\x06"
                               "blocksh\x00u}(\x8c\x07"
                               "addressK\x04\x8c\x06"
                               "blocksh\x00ue.";
    recording = read_bytes(kept, sizeof kept - 1);
    const struct vr_model *model = vr_recording_model(recording);
    static const uint64_t sizes[] = {7, 5, 6, 5, 6}, addresses[] = {1, 3, 8, 4, 9};
    assert_int_equal(model->segments.count, 3);
    assert_int_equal(model->blocks.count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(model->blocks.size_bytes[i], sizes[i]);
        assert_int_equal(model->blocks.address[i], addresses[i]);
    }
    vram_recording_destroy(recording);
}

static size_t load(const char *name, char *bytes, size_t capacity) {
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/tests/fuzz/corpus/recording/%s", VRAM_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, capacity, file);
    (void)fclose(file);
    return size;
}

// Any array that cannot grow, at any moment, leads to a status and leaves nothing behind.
static void every_refused_growth_is_survived(void **state) {
    static const char *const names[] = {"newest.p4", "newest.cpp", "newest.json", "generation_1.p2"};
    static char bytes[16384];
    (void)state;
    for (size_t i = 0; i < VR_COUNT_OF(names); i++) {
        size_t size = load(names[i], bytes, sizeof bytes), refused = 0;
        enum vram_status status = VRAM_LIMIT;
        for (uint64_t limit = 0; status != VRAM_OK; limit += 61) {
            struct vr_machine machine;
            struct vr_input source;
            struct vr_model model = {0};
            vr_input_on_memory(&source, bytes, size);
            status = vr_machine_init(&machine, &error, limit);
            if (status != VRAM_OK) continue;
            status = strstr(names[i], "json") != NULL ? vr_json_read(&source, &machine) : vr_pickle_read(&source, &machine);
            if (status == VRAM_OK) status = vr_finish(&machine, &model);
            if (status != VRAM_OK) assert_int_equal(status, VRAM_LIMIT);
            refused += status != VRAM_OK;
            vr_machine_release(&machine);
            vr_model_release(&model);
        }
        assert_true(refused > 20);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_refused_growth_is_survived),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(pieces_of_any_size_are_the_same),
        cmocka_unit_test(a_failing_input_is_reported),
        cmocka_unit_test(what_old_files_lack_is_filled_in),
        cmocka_unit_test(a_bare_list_is_segments),
        cmocka_unit_test(pages_are_opened),
        cmocka_unit_test(long_pages_are_read),
        cmocka_unit_test(events_of_devices_are_kept_apart),
        cmocka_unit_test(rows_follow_the_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
