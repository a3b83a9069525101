// Tests which frame of a stack is its call site: the innermost of the user's own, never one that unwinds, starts or wraps the program.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "vram/recording.h"

enum { MOST_FRAMES = 6 };

#define UNWINDER                                                                                                                           \
    { .filename = "??", .name = "torch::unwind::unwind()" }
#define MODULE                                                                                                                             \
    { .filename = "/env/lib/python3.12/site-packages/torch/nn/modules/module.py", .line = 1, .name = "_call_impl" }
#define SCRIPT                                                                                                                             \
    { .filename = "/home/me/train.py", .line = 90, .name = "<module>" }
#define LAUNCHER                                                                                                                           \
    { .filename = "/env/bin/litgpt", .line = 8, .name = "<module>" }
#define COMPILED                                                                                                                           \
    { .filename = "/tmp/torchinductor_me/ab/cabc.py", .line = 300, .name = "call" }

static const struct site_case {
    const char *what;
    struct vram_frame frames[MOST_FRAMES]; // innermost first
    size_t site;
} cases[] = {
    {"the program's line, not PyTorch's", {MODULE, {.filename = "/home/me/model.py", .line = 7, .name = "forward"}, MODULE, SCRIPT}, 1},
    {"a library's line that a launcher began",
     {MODULE, {.filename = "/env/lib/python3.12/site-packages/litgpt/model.py", .line = 7, .name = "forward"}, LAUNCHER},
     1},
    {"PyTorch's line rather than the launcher's", {MODULE, LAUNCHER}, 0},
    {"an operator rather than the launcher", {UNWINDER, {.filename = "??", .name = "at::_ops::bmm::call(at::Tensor const&)"}, LAUNCHER}, 1},
    {"a script without its extension is the program's", {MODULE, {.filename = "/home/me/train", .line = 8, .name = "<module>"}}, 1},
    {"a library's line inside of what reads the arguments",
     {{.filename = "/env/lib/python3.12/site-packages/jsonargparse/_cli.py", .line = 7, .name = "CLI"},
      {.filename = "/env/lib/python3.12/site-packages/litgpt/__main__.py", .line = 9, .name = "main"}},
     1},
    {"the program's own bin/", {MODULE, {.filename = "/home/me/bin/train.py", .line = 8, .name = "<module>"}}, 1},
    {"the line that called what was compiled", {COMPILED, MODULE, SCRIPT}, 2},
    {"what was compiled, where no line of the program is there", {MODULE, COMPILED, MODULE}, 1},
    {"autograd's node, not the unwinder",
     {UNWINDER, {.filename = "??", .name = "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)"}},
     1},
};

static void each_stack_has_its_site(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t count = 0;
        while (count < MOST_FRAMES && cases[i].frames[count].name != NULL) count++;
        const size_t site = vram_site_of_frames(cases[i].frames, count);
        if (site != cases[i].site) fail_msg("%s: frame %zu, not %zu", cases[i].what, site, cases[i].site);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_stack_has_its_site)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
