// Tests the same program in another folder: which files correspond, and that `diff` pairs their allocations.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analyze/site_match.h"
#include "base/text.h"
#include "vram/profile.h"
#include "vram/recording.h"

enum { MOST = 8 };

struct case_of_paths {
    const char *from[MOST], *to[MOST];
    uint32_t match[MOST];
};

static size_t count_of(const char *const *path) {
    size_t count = 0;
    while (count < MOST && path[count] != NULL) count++;
    return count;
}

static void a_tree_goes_together(void **state) {
    (void)state;
    static const struct case_of_paths cases[] = {
        {{"/a/train.py", "/b/c.py"}, {"/b/c.py", "/a/train.py"}, {1, 0}},
        {{"/home/me/proj/train.py", "/home/me/proj/pkg/utils.py", "/home/me/proj/other/utils.py"},
         {"/tmp/x/other/utils.py", "/tmp/x/pkg/utils.py", "/tmp/x/train.py"},
         {2, 1, 0}},
        // Two files of one name: prefer those in the tree that most files indicate.
        {{"/v1/a.py", "/v1/b.py", "/v1/utils.py"}, {"/v2/a.py", "/v2/b.py", "/v2/utils.py", "/lib/utils.py"}, {0, 1, 2}},
        {{"C:\\work\\proj\\train.py"}, {"/srv/proj/train.py"}, {0}},
        {{"/a/model.py"}, {"/a/my_model.py"}, {VR_NO_PATH}},
        {{"train.py"}, {"/deep/in/train.py"}, {0}},
        {{"/deep/in/train.py"}, {"train.py"}, {0}},
        {{"train.py"}, {"/train.py"}, {0}},
        {{"/train.py"}, {"train.py"}, {0}},
        // The shorter name is a suffix of the longer one, but not a whole component.
        {{"train.py"}, {"/deep/in/_train.py"}, {VR_NO_PATH}},
        {{"/deep/in/_train.py"}, {"train.py"}, {VR_NO_PATH}},
        {{"/a/train.py", "/b/train.py"}, {"/c/train.py"}, {0, VR_NO_PATH}},
        {{"/a/train.py"}, {NULL}, {VR_NO_PATH}},
        {{""}, {"/a/train.py"}, {VR_NO_PATH}},
    };
    for (size_t i = 0; i < VR_COUNT_OF(cases); i++) {
        uint32_t match[MOST];
        const struct vr_paths from = {.path = cases[i].from, .count = count_of(cases[i].from)};
        const struct vr_paths to = {.path = cases[i].to, .count = count_of(cases[i].to)};
        assert_int_equal(vr_paths_match(from, to, match), VRAM_OK);
        for (size_t k = 0; k < from.count; k++) assert_int_equal(match[k], cases[i].match[k]);
    }
}

static struct vram_recording *program_in(const char *folder, int shift, unsigned long long bytes) {
    struct vr_text text = {0};
    struct vram_recording *recording = NULL;
    vr_text_puts(&text, "{\"segments\": [], \"device_traces\": [[");
    static const char *const files[] = {"train.py", "net/model.py", "net/utils.py", "data/utils.py"};
    for (size_t i = 0; i < VR_COUNT_OF(files); i++) {
        vr_text_printf(&text,
                       "%s{\"action\": \"alloc\", \"addr\": %zu, \"size\": %llu, \"stream\": 0, \"frames\": [{\"filename\": \"%s/%s\", "
                       "\"line\": %d, \"name\": \"make\"}]}",
                       i == 0 ? "" : ",", (i + 1) << 30, i == 1 ? bytes : 4096, folder, files[i], 10 + shift);
    }
    vr_text_puts(&text, "]]}");
    assert_int_equal(vram_recording_read_memory(text.bytes, text.length, folder, &recording, NULL), VRAM_OK);
    vr_text_release(&text);
    return recording;
}

static bool append(void *user, const char *bytes, size_t length) {
    vr_text_append(user, bytes, length);
    return true;
}

// Only one call site differs, whatever the folder and the line numbers.
static void two_checkouts_are_compared(void **state) {
    (void)state;
    static const char *const kinds[] = {"site", "file"};
    struct vram_recording *before = program_in("/home/me/proj", 0, 1 << 20), *after = program_in("/tmp/checkout", 7, 3 << 20);
    for (size_t i = 0; i < VR_COUNT_OF(kinds); i++) {
        struct vr_text text = {0};
        const struct vram_diff diff = {.recording = {before, after}, .options = {{.device = -1}, {.device = -1, .by = kinds[i]}}};
        assert_int_equal(vram_diff_text(&diff, NULL, append, &text, NULL, NULL), VRAM_OK);
        assert_non_null(strstr(vr_text_string(&text), "1.0 MiB  3.0 MiB  +2.0 MiB"));
        assert_non_null(strstr(vr_text_string(&text), "/tmp/checkout/net/model.py"));
        assert_null(strstr(vr_text_string(&text), "/home/me"));
        assert_null(strstr(vr_text_string(&text), "utils.py"));
        vr_text_release(&text);
    }
    vram_recording_destroy(before);
    vram_recording_destroy(after);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_goes_together),
        cmocka_unit_test(two_checkouts_are_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
