// Loads an interpreter privately: its frames are in stacks nevertheless.
#include "support/expect.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "vram/stack.h"

static void *python;
static struct vram_stacks *table;
static uint32_t taken;

// A function of the interpreter's library.
#define PYTHON(name, result, ...) ((result(*)(__VA_ARGS__))(uintptr_t)dlsym(python, #name))

static void *take(void *self, void *arguments) {
    (void)self;
    (void)arguments;
    taken = vram_stack_take(table, VRAM_STACK_PYTHON, 0);
    return PYTHON(PyLong_FromLong, void *, long)(1);
}

// The interpreter's PyMethodDef.
static struct {
    const char *name;
    void *(*call)(void *self, void *arguments);
    int flags;
    const char *text;
} method = {"take", take, 4 /* METH_NOARGS */, NULL};

static bool load(void) {
    for (int minor = 9; minor < 16 && python == NULL; minor++) {
        char name[64];
        (void)snprintf(name, sizeof name, "libpython3.%d.so.1.0", minor);
        python = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    return python != NULL;
}

static void frames_of_an_own_interpreter(void **state) {
    (void)state;
    EXPECT_OK(vram_stacks_create(NULL, &table));
    assert_int_equal(vram_stack_take(table, VRAM_STACK_PYTHON, 0), 0); // there is no interpreter yet
    if (!load()) skip();
    PYTHON(Py_InitializeEx, void, int)(0);
    void *function = PYTHON(PyCFunction_NewEx, void *, void *, void *, void *)(&method, NULL, NULL);
    void *module = PYTHON(PyImport_AddModule, void *, const char *)("__main__");
    assert_int_equal(PYTHON(PyObject_SetAttrString, int, void *, const char *, void *)(module, "take", function), 0);
    assert_int_equal(PYTHON(PyRun_SimpleStringFlags, int, const char *, void *)("def inner():\n    take()\ninner()\n", NULL), 0);
    struct vram_frame frames[8];
    assert_int_equal(vram_stack_frames(table, taken, frames, VR_COUNT_OF(frames)), 2);
    assert_string_equal(frames[0].name, "inner");
    assert_int_equal(frames[0].line, 2);
    assert_string_equal(frames[1].name, "<module>");
    assert_int_equal(frames[1].line, 3);
    assert_int_equal(PYTHON(Py_FinalizeEx, int, void)(), 0);
    vram_stacks_destroy(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(frames_of_an_own_interpreter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
