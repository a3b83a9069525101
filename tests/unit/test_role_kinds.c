// Tests roles by kind of program: what each kind's allocations must get, and that programs without a model get none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/text.h"
#include "vram/recording.h"
#include "vram/roles.h"

#define P(file, name) "{\"filename\": \"" file "\", \"line\": 7, \"name\": \"" name "\"}"
#define C(name)       P("??", name)
#define MAIN          P("/home/me/run.py", "<module>")
#define CALL          P("/env/torch/nn/modules/module.py", "_call_impl")
#define MODULE        P("/home/me/model.py", "forward") "," CALL "," MAIN
#define APPLY         P("/env/torch/nn/modules/module.py", "_apply") "," MAIN
#define STEP          P("/env/torch/optim/adamw.py", "step") "," MAIN
#define STATE         P("/env/torch/optim/adamw.py", "_init_group") "," STEP
#define ENGINE        C("torch::autograd::Engine::thread_main(...)")
#define BARE          ""

enum { MOST_EVENTS = 8 };

// `frees`: number, from 1, of the allocation that is freed after this one; 0: none.
struct allocation {
    const char *frames;
    enum vram_role role;
    int frees;
};

static const struct program_kind {
    const char *kind;
    bool whole_program; // recorded as by `vram run`
    struct allocation of[MOST_EVENTS];
} kinds[] = {
    {"C, one function in a loop",
     false,
     {{P("heat.c", "stencil"), VRAM_ROLE_UNKNOWN, 0},
      {P("heat.c", "stencil"), VRAM_ROLE_UNKNOWN, 1},
      {P("heat.c", "stencil"), VRAM_ROLE_UNKNOWN, 0}}},
    {"CUDA under vram run, stacks lost in places",
     true,
     {{C("cuMemAlloc_v2") "," C("main"), VRAM_ROLE_UNKNOWN, 0},
      {BARE, VRAM_ROLE_UNKNOWN, 1},
      {C("cuMemAlloc_v2") "," C("main"), VRAM_ROLE_UNKNOWN, 0}}},
    {"CuPy under vram run, a class of the program",
     true,
     {{P("/home/me/solver.py", "__init__") "," MAIN, VRAM_ROLE_UNKNOWN, 0},
      {BARE, VRAM_ROLE_UNKNOWN, 0},
      {P("/home/me/solver.py", "step") "," MAIN, VRAM_ROLE_UNKNOWN, 2}}},
    {"CuPy, arrays made in a constructor, none without a stack",
     false,
     {{P("/home/me/solver.py", "__init__") "," MAIN, VRAM_ROLE_UNKNOWN, 0},
      {P("/home/me/solver.py", "solve") "," MAIN, VRAM_ROLE_UNKNOWN, 0}}},
    {"a C++ program that uses cuBLAS: its scratch alone has a role",
     false,
     {{C("getCUDABlasWorkspace()") "," C("solve"), VRAM_ROLE_WORKSPACES, 0}, {C("solve"), VRAM_ROLE_UNKNOWN, 0}}},
    {"a C++ server: what load_model() makes are weights, of the rest nothing is known",
     false,
     {{P("serve.c", "load_model") "," P("serve.c", "main"), VRAM_ROLE_PARAMETERS, 0},
      {P("serve.c", "answer"), VRAM_ROLE_UNKNOWN, 0},
      {P("serve.c", "answer"), VRAM_ROLE_UNKNOWN, 2}}},
    {"training in Python frames",
     false,
     {{APPLY, VRAM_ROLE_PARAMETERS, 0},
      {MODULE, VRAM_ROLE_ACTIVATIONS, 0},
      {BARE, VRAM_ROLE_GRADIENTS, 2},
      {STATE, VRAM_ROLE_OPTIMIZER_STATE, 0},
      {STEP, VRAM_ROLE_TEMPORARIES, 5},
      {MODULE, VRAM_ROLE_ACTIVATIONS, 3}}},
    {"training by functions, with C++ frames",
     false,
     {{C("at::_ops::mm::call(...)") "," MAIN, VRAM_ROLE_ACTIVATIONS, 0},
      {C("at::_ops::mm::call(...)") "," ENGINE, VRAM_ROLE_GRADIENTS, 1},
      {STEP, VRAM_ROLE_TEMPORARIES, 3}}},
    {"autocast: a copy of half a parameter's size is one, a cast input is none",
     false,
     {{APPLY, VRAM_ROLE_PARAMETERS, 0},
      {C("at::autocast::cached_cast(c10::ScalarType)") "," MODULE, VRAM_ROLE_CASTS, 0},
      {C("at::autocast::cached_cast(c10::ScalarType)") "," MODULE, VRAM_ROLE_ACTIVATIONS, 0}}},
    {"inference without gradients",
     false,
     {{APPLY, VRAM_ROLE_PARAMETERS, 0}, {MODULE, VRAM_ROLE_ACTIVATIONS, 2}, {MODULE, VRAM_ROLE_ACTIVATIONS, 3}}},
    {"tensor parallelism: DTensors are parameters",
     false,
     {{P("/env/torch/distributed/tensor/placement_types.py", "_shard_tensor") "," P("/env/torch/distributed/tensor/_api.py",
                                                                                    "distribute_tensor") "," MAIN,
       VRAM_ROLE_PARAMETERS, 0},
      {MODULE, VRAM_ROLE_ACTIVATIONS, 0}}},
    {"weights in 4 bits, and the copies they are computed with",
     false,
     {{P("/env/bitsandbytes/functional.py", "quantize_4bit") "," P("/env/bitsandbytes/nn/modules.py", "_quantize") "," MAIN,
       VRAM_ROLE_PARAMETERS, 0},
      {P("/env/bitsandbytes/functional.py", "dequantize_4bit") "," MODULE, VRAM_ROLE_TEMPORARIES, 2},
      {MODULE, VRAM_ROLE_ACTIVATIONS, 0}}},
    {"weights in 8 bits, by torchao",
     false,
     {{P("/env/torchao/quantization/quant_api.py", "quantize_") "," MAIN, VRAM_ROLE_PARAMETERS, 0}, {MODULE, VRAM_ROLE_ACTIVATIONS, 0}}},
};

static void put(struct vr_text *json, const char *action, int number, int bytes, const char *frames) {
    vr_text_printf(json, "%s{\"action\": \"%s\", \"addr\": %d, \"size\": %d, \"stream\": 0, \"frames\": [",
                   json->bytes[json->length - 1] == '[' ? "" : ",", action, number << 20, bytes);
    vr_text_puts(json, frames);
    vr_text_puts(json, "]}");
}

// A copy in half precision has half the size of a parameter.
static int bytes_of(const struct allocation *of) { return of->role == VRAM_ROLE_CASTS ? 512 : 1024; }

static struct vram_recording *record(const struct program_kind *kind) {
    struct vr_text json = {0};
    struct vram_recording *recording = NULL;
    struct vram_error error;
    vr_text_printf(&json, "{\"segments\": [], \"allocator_settings\": {%s}, \"device_traces\": [[",
                   kind->whole_program ? "\"vram_run_process\": \"1\"" : "");
    for (int i = 0; i < MOST_EVENTS && kind->of[i].frames != NULL; i++) {
        put(&json, "alloc", i + 1, bytes_of(&kind->of[i]), kind->of[i].frames);
        if (kind->of[i].frees != 0) put(&json, "free_requested", kind->of[i].frees, bytes_of(&kind->of[kind->of[i].frees - 1]), MAIN);
    }
    vr_text_puts(&json, "]]}");
    if (vram_recording_read_memory(json.bytes, json.length, "made", &recording, &error) != VRAM_OK) fail_msg("%s", error.message);
    vr_text_release(&json);
    return recording;
}

static void roles_by_kind_of_program(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct vram_recording *recording = record(&kinds[k]);
        struct vram_roles *roles = NULL;
        assert_int_equal(vram_roles_create(recording, NULL, &roles, NULL), VRAM_OK);
        size_t event = 0;
        for (int i = 0; i < MOST_EVENTS && kinds[k].of[i].frames != NULL; i++) {
            const struct allocation *of = &kinds[k].of[i];
            if (roles->of_event[event] != of->role) {
                print_error("%s: allocation %d is %s, not %s\n", kinds[k].kind, i + 1, vram_role_word(roles->of_event[event]),
                            vram_role_word(of->role));
                wrong++;
            }
            event += of->frees != 0 ? 2 : 1;
        }
        vram_roles_destroy(roles);
        vram_recording_destroy(recording);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(roles_by_kind_of_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
