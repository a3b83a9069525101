// Tests that a wrong input length only affects how early tables become large.
#define _DEFAULT_SOURCE // wait4()

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "model/recording.h"
#include "support/expect.h"
#include "vram/export.h"

enum { ROWS = 160000, FORMATS = 4 };

// A recording in one of the formats.
struct sample {
    const char *name;
    struct vr_text text;
};

struct reading {
    const struct vr_text *text;
    size_t at;
};

static struct sample samples[FORMATS];

static size_t read_some(void *context, void *buffer, size_t capacity) {
    struct reading *reading = context;
    const size_t left = reading->text->length - reading->at, count = left < capacity ? left : capacity;
    memcpy(buffer, reading->text->bytes + reading->at, count);
    reading->at += count;
    return count;
}

static enum vram_status read_as(const struct vr_text *text, uint64_t bytes, struct vram_recording **recording) {
    struct reading reading = {.text = text};
    const struct vram_input input = {.read = read_some, .context = &reading, .bytes = bytes};
    return vram_recording_read(&input, recording, NULL);
}

static bool append(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

static int make_samples(void **state) {
    static const enum vram_recording_format formats[] = {VRAM_FORMAT_JSON, VRAM_FORMAT_PICKLE, VRAM_FORMAT_VRAM};
    static const char *const names[] = {"JSON", "pickle", "vram"};
    struct vram_recording *recording = NULL;
    (void)state;
    samples[0].name = "RMM";
    vr_text_printf(&samples[0].text, "Thread,Time,Action,Pointer,Size,Stream\n");
    uint32_t random = 1;
    for (unsigned i = 0; i < ROWS; i++) {
        random = random * 1664525u + 1013904223u;
        const char *action = i % 2 == 0 ? "allocate" : "free";
        vr_text_printf(&samples[0].text, "%u,00:%02u:%02u.%06u,%s,0x%x,%u,0x0\n", 1 + i % 3, i / 60000, i / 1000 % 60, i % 1000 * 1000,
                       action, 4096 * (1 + i / 2), 1 + (i / 2 * 2654435761u >> 12));
    }
    EXPECT_OK(read_as(&samples[0].text, 0, &recording));
    for (size_t i = 0; i < VR_COUNT_OF(formats); i++) {
        samples[i + 1].name = names[i];
        EXPECT_OK(vram_recording_write(recording, formats[i], append, &samples[i + 1].text, NULL));
        EXPECT_OK(vr_text_status(&samples[i + 1].text));
    }
    vram_recording_destroy(recording);
    return 0;
}

static int release_samples(void **state) {
    (void)state;
    for (size_t i = 0; i < FORMATS; i++) vr_text_release(&samples[i].text);
    return 0;
}

static uint64_t sum_of(const struct vram_recording *recording) {
    const struct vr_model *model = vr_recording_model(recording);
    uint64_t sum = model->history_count;
    for (size_t h = 0; h < model->history_count; h++) {
        const struct vr_history *history = &model->histories[h];
        for (size_t i = 0; i < history->count; i++)
            sum = vr_mix64(sum ^ history->address[i]) + history->size_bytes[i] + history->action[i] + history->thread[i];
    }
    return sum;
}

// Returns the peak memory of reading it in a separate process; 0 if reading fails or gives another result.
static uint64_t peak_bytes(const struct vr_text *text, uint64_t bytes, uint64_t sum) {
    struct rusage usage;
    int result = 0;
    const pid_t child = fork();
    if (child == 0) {
        struct vram_recording *recording = NULL;
        const enum vram_status status = read_as(text, bytes, &recording);
        _exit(status != VRAM_OK ? 1 : sum_of(recording) != sum ? 2 : 0);
    }
    assert_true(child > 0);
    assert_int_equal(wait4(child, &result, 0, &usage), child);
    return WIFEXITED(result) && WEXITSTATUS(result) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

static void a_wrong_length_changes_nothing(void **state) {
    (void)state;
    for (size_t s = 0; s < FORMATS; s++) {
        const struct vr_text *text = &samples[s].text;
        const uint64_t length = text->length;
        // Three of the last overflow when multiplied by 3, 9 or 160.
        const uint64_t said[] = {1,
                                 length / 2,
                                 length - 1,
                                 length,
                                 length + 1,
                                 100 * length,
                                 (uint64_t)1 << 40,
                                 UINT64_MAX / 9 + 1,
                                 UINT64_MAX / 3 + 1,
                                 UINT64_MAX / 160 + 1,
                                 UINT64_MAX};
        struct vram_recording *recording = NULL;
        EXPECT_OK(read_as(text, 0, &recording));
        const uint64_t sum = sum_of(recording);
        vram_recording_destroy(recording);
        const uint64_t usual = peak_bytes(text, 0, sum);
        assert_true(usual != 0);
        for (size_t i = 0; i < VR_COUNT_OF(said); i++) {
            const uint64_t peak = peak_bytes(text, said[i], sum);
            if (peak == 0 || peak > usual + usual / 2)
                fail_msg("%s of %llu bytes, said to be %llu: %llu bytes of memory, usually %llu", samples[s].name,
                         (unsigned long long)length, (unsigned long long)said[i], (unsigned long long)peak, (unsigned long long)usual);
        }
    }
}

// A list repeats one event, with two bytes for each: the limit applies to the actual bytes.
static void a_bomb_stays_one_however_long_it_is_said_to_be(void **state) {
    enum { TIMES = 4000000 };
    static const char head[] = "\x80\x04}(\x8c\x08segments]\x8c\x0d"
                               "device_traces](](";
    static const char event[] = "}(\x8c\x06"
                                "action\x8c\x05"
                                "alloc\x8c\x04"
                                "addrK\x01\x8c\x04sizeK\x01u\x94";
    static const char tail[] = "eeu.";
    (void)state;
    struct vr_text text = {0};
    vr_text_append(&text, head, sizeof head - 1);
    vr_text_append(&text, event, sizeof event - 1);
    for (size_t i = 0; i < TIMES; i++) vr_text_append(&text, "h\0", 2);
    vr_text_append(&text, tail, sizeof tail - 1);
    EXPECT_OK(vr_text_status(&text));
    static const uint64_t said[] = {0, 1 << 20, (uint64_t)1 << 33, (uint64_t)1 << 40, UINT64_MAX};
    for (size_t i = 0; i < VR_COUNT_OF(said); i++) {
        struct vram_recording *recording = NULL;
        const enum vram_status status = read_as(&text, said[i], &recording);
        vram_recording_destroy(recording);
        assert_int_equal(status, VRAM_LIMIT);
    }
    vr_text_release(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_length_changes_nothing),
        cmocka_unit_test(a_bomb_stays_one_however_long_it_is_said_to_be),
    };
    return cmocka_run_group_tests(tests, make_samples, release_samples);
}
