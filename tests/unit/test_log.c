// Tests the recording file: appended events are read back, even from a killed program, a truncated file, and while it grows.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
// cmocka.h needs these first.
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "history/logblock.h"
#include "model/recording.h"
#include "vram/log.h"
#include "vram/report.h"

static char folder[] = "/tmp/vram_log_XXXXXX";
static char path[64];

static int make_folder(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL) return -1;
    (void)snprintf(path, sizeof path, "%s/recording.vram", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

static struct vram_log *open_log(uint64_t block_events) {
    struct vram_log *log;
    struct vram_error error;
    struct vram_log_options options = {.block_events = block_events, .replace = true, .producer = "test"};
    assert_int_equal(vram_log_create(path, &options, &log, &error), VRAM_OK);
    return log;
}

static struct vram_recording *read_back(void) {
    struct vram_recording *recording = NULL;
    struct vram_error error = {.message = ""};
    if (vram_recording_read_file(path, &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    assert_int_equal(vr_model_check(vr_recording_model(recording), &error), VRAM_OK);
    return recording;
}

// Returns event i of a made-up program: three events per round, over 100 addresses.
static struct vram_log_event event_of(uint64_t i, uint32_t device) {
    uint64_t round = i / 3;
    return (struct vram_log_event){
        .address = 0x7f0000000000u + round % 100 * 4096,
        .size_bytes = 100 + round % 7 * 512,
        .stream = round % 3,
        .time_ns = 1700000000000000000u + i * 1234,
        .pool = {round % 5 == 0, 0},
        .device = device,
        .action = i % 3 == 0   ? VRAM_LOG_ALLOC
                  : i % 3 == 1 ? VRAM_LOG_FREE_REQUESTED
                               : VRAM_LOG_FREE_COMPLETED,
        .thread = 1000 + (uint32_t)(round % 4),
    };
}

static void append(struct vram_log *log, uint64_t from, uint64_t to, uint32_t device) {
    for (uint64_t i = from; i < to; i++) {
        struct vram_log_event event = event_of(i, device);
        assert_int_equal(vram_log_append(log, &event, 1), VRAM_OK);
    }
}

static void check_events(const struct vr_model *model, uint32_t device, uint64_t count) {
    assert_true(device < model->history_count);
    const struct vr_history *history = &model->histories[device];
    assert_int_equal(history->count, count);
    for (uint64_t i = 0; i < count; i++) {
        struct vram_log_event event = event_of(i, device);
        assert_int_equal(history->action[i], event.action);
        assert_int_equal(history->address[i], event.address);
        assert_int_equal(history->size_bytes[i], event.size_bytes);
        assert_int_equal(vr_entry_stream(history, i), event.stream);
        assert_int_equal(history->time_us[i], event.time_ns / 1000);
        assert_int_equal(history->pool_first[i], event.pool.first);
        assert_int_equal(history->thread[i], event.thread);
    }
}

static void test_events_come_back(void **state) {
    (void)state;
    for (uint64_t count = 0; count < 3000; count = count * 2 + 1) {
        struct vram_log *log = open_log(256);
        append(log, 0, count, 0);
        struct vram_log_counts counts;
        vram_get_log_counts(log, &counts);
        assert_int_equal(counts.events, count);
        assert_int_equal(vram_log_close(log), VRAM_OK);
        struct vram_recording *recording = read_back();
        assert_int_equal(vr_recording_model(recording)->ending, VR_ENDING_WHOLE);
        if (count != 0) check_events(vr_recording_model(recording), 0, count);
        vram_recording_destroy(recording);
    }
}

// Makes an event of a run: columns that seldom change do so one at a time, occasionally, even at a block boundary.
static struct vram_log_event changed(struct vram_log_event event, unsigned what, uint32_t text) {
    event.action = VRAM_LOG_ALLOC;
    switch (what % 9) {
    case 0: event.stream ^= 7; break;
    case 1: event.pool.first ^= 1; break;
    case 2: event.pool.second ^= 1; break;
    case 3: event.thread ^= 3; break;
    case 4: event.context ^= text; break;
    case 5: event.metadata ^= text; break;
    case 6: event.tag ^= text; break;
    case 7: event.device ^= 1; break;
    default: event.action = VRAM_LOG_OOM; break;
    }
    return event;
}

static void assert_has(const struct vr_model *model, const struct vr_history *history, size_t row, const struct vram_log_event *event) {
    assert_int_equal(history->action[row], event->action);
    assert_int_equal(history->address[row], event->address);
    assert_int_equal(history->size_bytes[row], event->size_bytes);
    assert_int_equal(vr_entry_stream(history, row), event->stream);
    assert_int_equal(history->time_us[row], event->time_ns / 1000);
    assert_int_equal(history->pool_first[row], event->pool.first);
    assert_int_equal(history->pool_second[row], event->pool.second);
    assert_int_equal(history->thread[row], event->thread);
    assert_string_equal(vr_model_string(model, history->context[row]), event->context == 0 ? "" : "text");
    assert_string_equal(vr_model_string(model, history->metadata[row]), event->metadata == 0 ? "" : "text");
    assert_string_equal(vr_model_string(model, history->tag[row]), event->tag == 0 ? "" : "text");
    assert_int_equal((vr_entry_has(history, row) & VR_HAS_DEVICE_FREE) != 0, event->action == VRAM_LOG_OOM);
    assert_int_equal((vr_entry_has(history, row) & VR_HAS_POOL_ID) != 0, event->pool.first != 0 || event->pool.second != 0);
}

static void test_runs_of_alike_events(void **state) {
    (void)state;
    enum { EVENTS = 4000, BLOCK = 32 };
    static struct vram_log_event events[EVENTS];
    struct vram_log *log;
    struct vram_error error;
    const struct vram_log_options options = {.block_events = BLOCK, .replace = true, .serialized = true};
    assert_int_equal(vram_log_create(path, &options, &log, &error), VRAM_OK);
    uint32_t text;
    assert_int_equal(vram_log_string(log, "text", 4, &text), VRAM_OK);
    struct vram_log_event event = {.time_ns = 1700000000000000000u, .size_bytes = 512};
    uint64_t random = 1;
    size_t left = 0;
    for (size_t i = 0; i < EVENTS; i++, left--) {
        if (left == 0) {
            random = vr_mix64(random + 1);
            event = changed(event, (unsigned)(random >> 32), text);
            left = random % 3 == 0 ? 1 : 1 + random % (3 * BLOCK); // single events, and runs over several blocks
        }
        event.address += 4096;
        event.time_ns += 1001 * (i % 7);
        events[i] = event;
        assert_int_equal(vram_log_append(log, &event, 1), VRAM_OK);
    }
    assert_int_equal(vram_log_close(log), VRAM_OK);
    struct vram_recording *recording = read_back();
    const struct vr_model *model = vr_recording_model(recording);
    size_t rows[2] = {0, 0};
    for (size_t i = 0; i < EVENTS; i++) assert_has(model, &model->histories[events[i].device], rows[events[i].device]++, &events[i]);
    assert_int_equal(model->histories[0].count, rows[0]);
    assert_int_equal(model->histories[1].count, rows[1]);
    assert_true(rows[0] > EVENTS / 8 && rows[1] > EVENTS / 8);
    vram_recording_destroy(recording);
}

static void test_tables_come_back(void **state) {
    (void)state;
    struct vram_log *log = open_log(64);
    uint32_t name, file, again, module, frames[3], stack, other, note;
    assert_int_equal(vram_log_string(log, "malloc", 6, &name), VRAM_OK);
    assert_int_equal(vram_log_string(log, "a.c", 3, &file), VRAM_OK);
    assert_int_equal(vram_log_string(log, "malloc", 6, &again), VRAM_OK);
    assert_int_equal(name, again);
    assert_int_equal(vram_log_string(log, "bad \xff byte", 10, &note), VRAM_OK);
    assert_int_equal(vram_log_module(log, "/lib/x.so", "abcd", &module), VRAM_OK);
    assert_int_equal(vram_log_frame(log, name, file, -1, &frames[0]), VRAM_OK);
    assert_int_equal(vram_log_code(log, module, 0x1234, &frames[1]), VRAM_OK);
    frames[2] = 77;
    assert_int_equal(vram_log_stack(log, frames, 3, &stack), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_log_stack(log, frames, 2, &stack), VRAM_OK);
    assert_int_equal(vram_log_stack(log, frames, 2, &other), VRAM_OK);
    assert_int_equal(stack, other);
    struct vram_log_event event = event_of(0, 2);
    event.stack = stack;
    event.metadata = note;
    assert_int_equal(vram_log_append(log, &event, 1), VRAM_OK);
    event.stack = 99;
    assert_int_equal(vram_log_append(log, &event, 1), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_log_annotation(log, 2, "START", "step", 5000000), VRAM_OK);
    assert_int_equal(vram_log_setting(log, "a", "1"), VRAM_OK);
    assert_int_equal(vram_log_setting(log, "b", "true"), VRAM_OK);
    assert_int_equal(vram_log_setting(log, "a", "2"), VRAM_OK);
    assert_int_equal(vram_log_close(log), VRAM_OK);
    struct vram_recording *recording = read_back();
    const struct vr_model *model = vr_recording_model(recording);
    uint32_t got = model->histories[2].stack[0];
    const uint32_t *row = model->stacks.frame + model->stacks.offset[got];
    assert_int_equal(model->stacks.offset[got + 1] - model->stacks.offset[got], 2);
    assert_string_equal(vr_model_string(model, model->frames.name[row[0]]), "malloc");
    assert_true(model->frames.line[row[0]] == -1);
    assert_string_equal(vr_model_string(model, model->frames.name[row[1]]), "0x1234");
    assert_string_equal(vr_model_string(model, model->frames.filename[row[1]]), "/lib/x.so");
    assert_string_equal(vr_model_string(model, model->histories[2].metadata[0]), "bad ? byte");
    assert_int_equal(model->module_count, 1);
    assert_string_equal(vr_model_string(model, model->modules[0].build_id), "abcd");
    assert_int_equal(model->annotation_count, 1);
    assert_int_equal(model->annotations[0].time_us, 5000);
    assert_string_equal(vr_model_setting(model, "a"), "2");
    assert_int_equal(model->setting_count, 2);
    vram_recording_destroy(recording);
}

// A string too long for a record of the tail gets its own block.
static void test_long_strings(void **state) {
    (void)state;
    struct vram_log *log = open_log(16);
    size_t length = 1 << 20;
    char *text = malloc(length + 1);
    uint32_t id;
    for (size_t i = 0; i < length; i++) text[i] = (char)('a' + i % 23);
    text[length] = '\0';
    assert_int_equal(vram_log_string(log, text, length, &id), VRAM_OK);
    struct vram_log_event event = event_of(0, 0);
    event.metadata = id;
    assert_int_equal(vram_log_append(log, &event, 1), VRAM_OK);
    struct vram_recording *recording = read_back();
    assert_string_equal(vr_model_string(vr_recording_model(recording), vr_recording_model(recording)->histories[0].metadata[0]), text);
    vram_recording_destroy(recording);
    free(text);
    assert_int_equal(vram_log_close(log), VRAM_OK);
}

static void test_state(void **state) {
    (void)state;
    struct vram_log *log = open_log(64);
    const struct vram_log_block blocks[] = {{0x1200, 512, 500, 0, VRAM_BLOCK_ALLOCATED}, {0x1400, 1024, 1000, 0, VRAM_BLOCK_PENDING}};
    struct vram_log_segment segment = {
        .address = 0x1000, .size_bytes = 4096, .device = 1, .small = true, .blocks = blocks, .block_count = 2};
    append(log, 0, 10, 1);
    assert_int_equal(vram_log_state(log, &segment, 1), VRAM_OK);
    segment.size_bytes = 1024;
    assert_int_equal(vram_log_state(log, &segment, 1), VRAM_INVALID_ARGUMENT);
    assert_int_equal(vram_log_close(log), VRAM_OK);
    struct vram_recording *recording = read_back();
    const struct vr_model *model = vr_recording_model(recording);
    assert_int_equal(model->segments.count, 1);
    assert_int_equal(model->segments.allocated_bytes[0], 512);
    assert_int_equal(model->segments.active_bytes[0], 1536);
    assert_int_equal(model->segments.kind[0], VR_KIND_SMALL);
    const uint64_t sizes[] = {512, 512, 1024, 2048};
    assert_int_equal(model->blocks.count, 4);
    assert_memory_equal(model->blocks.size_bytes, sizes, sizeof sizes);
    check_events(model, 1, 10);
    vram_recording_destroy(recording);
}

static void add(struct vram_log *log, uint32_t action, uint64_t address, uint64_t size_bytes) {
    struct vram_log_event event = {.action = action, .address = address, .size_bytes = size_bytes, .time_ns = 1000};
    assert_int_equal(vram_log_append(log, &event, 1), VRAM_OK);
}

// A killed program leaves no state, so it is computed from the events.
static void test_state_of_a_killed_program(void **state) {
    (void)state;
    const uint64_t mib = 1 << 20;
    struct vram_log *log = open_log(64);
    add(log, VRAM_LOG_SEGMENT_ALLOC, 16 * mib, 2 * mib);
    add(log, VRAM_LOG_SEGMENT_MAP, 32 * mib, 20 * mib);
    add(log, VRAM_LOG_SEGMENT_UNMAP, 36 * mib, 4 * mib);
    add(log, VRAM_LOG_ALLOC, 16 * mib, 1000);
    add(log, VRAM_LOG_ALLOC, 16 * mib + 4096, 512);
    add(log, VRAM_LOG_ALLOC, 16 * mib + 8192, 512);
    add(log, VRAM_LOG_FREE_REQUESTED, 16 * mib + 4096, 512);
    add(log, VRAM_LOG_FREE_REQUESTED, 16 * mib + 8192, 512);
    add(log, VRAM_LOG_FREE_COMPLETED, 16 * mib + 8192, 512);
    add(log, VRAM_LOG_ALLOC, 99 * mib, 700);
    vram_log_abandon(log);
    struct vram_recording *recording = read_back();
    const struct vr_model *model = vr_recording_model(recording);
    assert_int_equal(model->ending, VR_ENDING_OPEN);
    const uint64_t addresses[] = {16 * mib, 32 * mib, 40 * mib, 99 * mib}, totals[] = {2 * mib, 4 * mib, 12 * mib, 1024};
    assert_int_equal(model->segments.count, 4);
    assert_memory_equal(model->segments.address, addresses, sizeof addresses);
    assert_memory_equal(model->segments.total_bytes, totals, sizeof totals);
    assert_int_equal(model->segments.allocated_bytes[0], 1024);
    assert_int_equal(model->segments.active_bytes[0], 1536);
    assert_int_equal(model->blocks.requested_bytes[0], 1000);
    vram_recording_destroy(recording);
}

// A child that appends and is killed at once: everything it appended is there.
static void test_killed(void **state) {
    (void)state;
    for (uint64_t count = 1; count < 2000; count = count * 3 + 1) {
        struct vram_log *log = open_log(256);
        vram_log_abandon(log);
        int told[2];
        assert_int_equal(pipe(told), 0);
        pid_t child = fork();
        if (child == 0) {
            struct vram_log_options options = {.block_events = 256, .replace = true};
            if (vram_log_create(path, &options, &log, NULL) != VRAM_OK) _exit(1);
            for (uint64_t i = 0; i < count; i++) {
                struct vram_log_event event = event_of(i, 0);
                if (vram_log_append(log, &event, 1) != VRAM_OK) _exit(1);
            }
            if (write(told[1], "x", 1) != 1) _exit(1);
            for (;;) pause();
        }
        char byte;
        assert_int_equal(read(told[0], &byte, 1), 1);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        (void)close(told[0]);
        (void)close(told[1]);
        struct vram_recording *recording = read_back();
        assert_int_equal(vram_get_recording_ending(recording), VRAM_RECORDING_OPEN);
        check_events(vr_recording_model(recording), 0, count);
        vram_recording_destroy(recording);
    }
}

static unsigned char *file_bytes(size_t *size) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    unsigned char *bytes = malloc(*size);
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    (void)fclose(file);
    return bytes;
}

// Cuts at every `step`th byte: the events before the cut are there, in order, and never fewer than in a shorter file.
static void check_cuts(size_t size, const unsigned char *bytes, uint64_t count, size_t step) {
    uint64_t before = 0;
    for (size_t length = VR_LOG_MAGIC_BYTES; length < size; length += step) {
        struct vram_recording *recording = NULL;
        struct vram_error error = {.message = ""};
        if (vram_recording_read_memory(bytes, length, "cut", &recording, &error) != VRAM_OK) fail_msg("%zu: %s", length, error.message);
        const struct vr_model *model = vr_recording_model(recording);
        uint64_t events = model->history_count == 0 ? 0 : model->histories[0].count;
        assert_true(events >= before && events <= count);
        if (events != 0) check_events(model, 0, events);
        before = events;
        vram_recording_destroy(recording);
    }
    assert_int_equal(before, count);
}

static void test_cut_anywhere(void **state) {
    (void)state;
    size_t size;
    struct vram_log *log = open_log(16);
    append(log, 0, 100, 0);
    assert_int_equal(vram_log_close(log), VRAM_OK);
    unsigned char *bytes = file_bytes(&size);
    check_cuts(size, bytes, 100, 1);
    free(bytes);
    log = open_log(16);
    append(log, 0, 100, 0);
    vram_log_abandon(log);
    bytes = file_bytes(&size);
    check_cuts(size < 300000 ? size : 300000, bytes, 100, 61);
    free(bytes);
}

// Checks that the report gives the place of the damage.
static void expect_damage_said(const struct vram_recording *recording) {
    struct vram_report *report = NULL;
    bool said = false;
    assert_int_equal(vram_report_create(recording, NULL, &report, NULL), VRAM_OK);
    for (size_t i = 0; i < report->note_count; i++) said |= strcmp(report->notes[i].code, "damaged") == 0;
    assert_true(said);
    vram_report_destroy(report);
}

// Damages every byte in turn: a damaged header is refused; the events before a damaged block are read, and no made-up ones.
static void test_damage(void **state) {
    (void)state;
    size_t size;
    struct vram_log *log = open_log(16);
    append(log, 0, 50, 0);
    assert_int_equal(vram_log_close(log), VRAM_OK);
    unsigned char *bytes = file_bytes(&size);
    uint64_t before = 0, cut = 0, said = 0;
    for (size_t i = VR_LOG_MAGIC_BYTES; i < size; i++) {
        struct vram_recording *recording = NULL;
        struct vram_error error = {.message = ""};
        bytes[i] ^= 0x41;
        enum vram_status status = vram_recording_read_memory(bytes, size, "damaged", &recording, &error);
        bytes[i] ^= 0x41;
        assert_int_equal(status, i < VR_LOG_HEADER_BYTES ? VRAM_BAD_INPUT : VRAM_OK);
        if (status != VRAM_OK) continue;
        const uint64_t events = vram_recording_event_count(recording, VRAM_ALL_DEVICES);
        if (events != 0) check_events(vr_recording_model(recording), 0, events);
        const enum vram_recording_ending ending = vram_get_recording_ending(recording);
        if (ending == VRAM_RECORDING_WHOLE) {
            assert_int_equal(events, 50);
        } else {
            assert_int_equal(ending, VRAM_RECORDING_CUT);
            assert_true(events % 16 == 0 || events == 50);
            assert_true(events >= before);
            before = events;
            cut++;
            if (vr_recording_model(recording)->damaged_at != 0 && said++ % 100 == 0) expect_damage_said(recording);
        }
        vram_recording_destroy(recording);
    }
    assert_int_equal(before, 50);
    // All but the four bytes that begin each block.
    assert_true(said < cut && said * 10 > cut * 9);
    free(bytes);
}

// Recording a free and its completion in one call gives the bytes of two calls, across blocks and other events.
static void test_frees_in_one(void **state) {
    (void)state;
    unsigned char *bytes[2];
    size_t sizes[2];
    for (int in_one = 0; in_one < 2; in_one++) {
        struct vram_log *log = open_log(64);
        for (uint64_t i = 0; i < 1000; i++) {
            struct vram_log_event event = event_of(i, i % 7 == 0);
            uint32_t id;
            if (i % 50 == 0) assert_int_equal(vram_log_string(log, (char[2]){(char)('0' + i / 50), 0}, 1, &id), VRAM_OK);
            event.action = VRAM_LOG_FREE_REQUESTED;
            if (in_one == 1) {
                assert_int_equal(vram_log_append_free(log, &event), VRAM_OK);
                continue;
            }
            assert_int_equal(vram_log_append(log, &event, 1), VRAM_OK);
            event.action = VRAM_LOG_FREE_COMPLETED;
            assert_int_equal(vram_log_append(log, &event, 1), VRAM_OK);
        }
        assert_int_equal(vram_log_close(log), VRAM_OK);
        bytes[in_one] = file_bytes(&sizes[in_one]);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0] + VR_LOG_HEADER_BYTES, bytes[1] + VR_LOG_HEADER_BYTES, sizes[0] - VR_LOG_HEADER_BYTES);
    free(bytes[0]);
    free(bytes[1]);
}

// If there was no room for a block earlier, but there is when the file is closed, no accepted event is missing.
static void test_room_comes_late(void **state) {
    (void)state;
    struct rlimit before, small = {.rlim_cur = 2 << 20};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct vram_log *log = open_log(256);
    uint64_t count = 0;
    enum vram_status status = VRAM_OK;
    while (status == VRAM_OK && count < 3000000) {
        const struct vram_log_event event = event_of(count, 0);
        status = vram_log_append(log, &event, 1);
        count += status == VRAM_OK;
    }
    assert_int_equal(status, VRAM_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(vram_log_close(log), VRAM_OK);
    struct vram_recording *recording = read_back();
    assert_int_equal(vram_get_recording_ending(recording), VRAM_RECORDING_WHOLE);
    check_events(vr_recording_model(recording), 0, count);
    vram_recording_destroy(recording);
}

static void test_limits(void **state) {
    (void)state;
    struct vram_log *log;
    struct vram_error error;
    struct vram_log_options options = {.block_events = 64, .max_bytes = 4096, .replace = true};
    assert_int_equal(vram_log_create(path, &options, &log, &error), VRAM_OK);
    uint64_t count = 0;
    enum vram_status status;
    do {
        struct vram_log_event event = event_of(count, 0);
        status = vram_log_append(log, &event, 1);
        count += status == VRAM_OK;
    } while (status == VRAM_OK && count < 100000);
    assert_int_equal(status, VRAM_LIMIT);
    assert_int_equal(vram_log_close(log), VRAM_OK);
    size_t size;
    free(file_bytes(&size));
    assert_true(size <= 4096);
    struct vram_recording *recording = read_back();
    check_events(vr_recording_model(recording), 0, count);
    vram_recording_destroy(recording);
    options.replace = false;
    assert_int_equal(vram_log_create(path, &options, &log, &error), VRAM_IO);
    assert_int_equal(vram_log_create("/nowhere/at/all", &options, &log, &error), VRAM_IO);
}

// Two recordings under one name would be confused: a reader would see sometimes one, sometimes the other.
static void a_file_that_is_written_is_not_replaced(void **state) {
    (void)state;
    const struct vram_log_options options = {.replace = true};
    struct vram_log *first = NULL, *second = NULL;
    struct vram_error error;
    assert_int_equal(vram_log_create(path, &options, &first, &error), VRAM_OK);
    assert_int_equal(vram_log_create(path, &options, &second, &error), VRAM_IO);
    assert_non_null(strstr(error.message, "another process is writing a recording to it"));
    assert_int_equal(vram_log_close(first), VRAM_OK);
    assert_int_equal(vram_log_create(path, &options, &second, &error), VRAM_OK);
    assert_int_equal(vram_log_close(second), VRAM_OK);
}

// Four threads, each for its own device: nothing is lost, and the order within each is kept.
static struct vram_log *shared_log;

static void *append_thread(void *argument) {
    uint32_t device = (uint32_t)(uintptr_t)argument;
    for (uint64_t i = 0; i < 5000; i++) {
        struct vram_log_event event = event_of(i, device);
        if (vram_log_append(shared_log, &event, 1) != VRAM_OK) return argument;
        if (i % 1000 == 0 && vram_log_flush(shared_log) != VRAM_OK) return argument;
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[4];
    shared_log = open_log(512);
    for (uintptr_t i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, append_thread, (void *)i), 0);
    for (uintptr_t i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(vram_log_close(shared_log), VRAM_OK);
    struct vram_recording *recording = read_back();
    for (uint32_t i = 0; i < 4; i++) check_events(vr_recording_model(recording), i, 5000);
    vram_recording_destroy(recording);
}

// Reads and compares new events. Returns the total so far.
static uint64_t follow_on(struct vram_follow *follow, uint64_t seen, size_t capacity) {
    struct vram_log_event events[64];
    struct vram_error error = {.message = ""};
    size_t count;
    do {
        if (vram_follow_next(follow, events, capacity, &count, &error) != VRAM_OK) fail_msg("%s", error.message);
        for (size_t i = 0; i < count; i++, seen++) {
            struct vram_log_event event = event_of(seen, 0);
            assert_true(events[i].address == event.address && events[i].time_ns == event.time_ns && events[i].action == event.action);
            assert_true(events[i].size_bytes == event.size_bytes && events[i].thread == event.thread);
        }
    } while (count != 0);
    return seen;
}

static void test_follow(void **state) {
    (void)state;
    struct vram_log *log = open_log(64);
    struct vram_follow *follow;
    uint64_t seen = 0;
    assert_int_equal(vram_follow_open(path, 0, &follow, NULL), VRAM_OK);
    for (uint64_t i = 0; i < 1000; i++) {
        append(log, i, i + 1, 0);
        if (i % 200 == 150) assert_int_equal(vram_log_flush(log), VRAM_OK);
        if (i % 37 != 0) continue;
        seen = follow_on(follow, seen, 1 + i % 64);
        assert_int_equal(seen, i + 1);
        assert_false(vram_follow_ended(follow));
    }
    assert_int_equal(vram_log_close(log), VRAM_OK);
    assert_int_equal(follow_on(follow, seen, 64), 1000);
    assert_true(vram_follow_ended(follow));
    vram_follow_close(follow);
    // Starting at a time skips earlier blocks.
    struct vram_log_event from = event_of(777, 0);
    assert_int_equal(vram_follow_open(path, from.time_ns, &follow, NULL), VRAM_OK);
    assert_int_equal(follow_on(follow, 777, 64), 1000);
    vram_follow_close(follow);
}

// The writer runs while the reader reads; each event is seen once. The file is all they share.
static void test_follow_a_running_writer(void **state) {
    (void)state;
    const uint64_t count = 50000;
    struct vram_follow *follow;
    uint64_t seen = 0;
    struct vram_log *log = open_log(64);
    assert_int_equal(vram_follow_open(path, 0, &follow, NULL), VRAM_OK);
    pid_t child = fork();
    if (child == 0) {
        for (uint64_t i = 0; i < count; i++) {
            struct vram_log_event event = event_of(i, 0);
            if (vram_log_append(log, &event, 1) != VRAM_OK) _exit(1);
        }
        _exit(vram_log_close(log) == VRAM_OK ? 0 : 1);
    }
    vram_log_abandon(log);
    while (!vram_follow_ended(follow)) seen = follow_on(follow, seen, 64);
    assert_int_equal(seen, count);
    vram_follow_close(follow);
    int left;
    assert_int_equal(waitpid(child, &left, 0), child);
    assert_int_equal(left, 0);
}

static void test_follow_names(void **state) {
    (void)state;
    struct vram_log *log = open_log(64);
    struct vram_follow *follow;
    struct vram_frame frame;
    struct vram_log_event event = event_of(0, 0);
    assert_int_equal(vram_follow_open(path, 0, &follow, NULL), VRAM_OK);
    for (uint32_t i = 0; i < 300; i++) {
        char name[16];
        uint32_t id, frame_id;
        size_t count;
        int length = snprintf(name, sizeof name, "f%u", i);
        assert_int_equal(vram_log_string(log, name, (size_t)length, &id), VRAM_OK);
        assert_int_equal(vram_log_frame(log, id, 0, i, &frame_id), VRAM_OK);
        assert_int_equal(vram_log_stack(log, &frame_id, 1, &event.stack), VRAM_OK);
        assert_int_equal(vram_log_append(log, &event, 1), VRAM_OK);
        assert_int_equal(vram_follow_next(follow, &event, 1, &count, NULL), VRAM_OK);
        assert_int_equal(count, 1);
        assert_int_equal(vram_follow_stack(follow, event.stack, &frame, 1), 1);
        assert_string_equal(frame.name, name);
        assert_int_equal(frame.line, i);
    }
    assert_int_equal(vram_log_close(log), VRAM_OK);
    vram_follow_close(follow);
    assert_int_equal(vram_follow_open("/nowhere/at/all", 0, &follow, NULL), VRAM_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_written_is_not_replaced),
        cmocka_unit_test(test_events_come_back),
        cmocka_unit_test(test_tables_come_back),
        cmocka_unit_test(test_runs_of_alike_events),
        cmocka_unit_test(test_long_strings),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_state_of_a_killed_program),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_frees_in_one),
        cmocka_unit_test(test_room_comes_late),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_follow_a_running_writer),
        cmocka_unit_test(test_follow_names),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
