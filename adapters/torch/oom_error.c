// Throws torch.OutOfMemoryError from C. An object of PyTorch's class c10::OutOfMemoryError is built with functions that PyTorch's libraries
// and the C++ runtime export, and thrown as C++ does. The class adds only its name to c10::Error, so a c10::Error with the other class's
// virtual table is one.
#include "inside.h"
#include "vram_torch.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

enum { OBJECT_BYTES = 1024 /* many times the class's size */, STRING_BYTES = 64, PATH_BYTES = 4096 };

// c10::SourceLocation
struct location {
    const char *function;
    const char *file;
    uint32_t line;
};

static struct {
    void *(*allocate)(size_t size);                                             // __cxa_allocate_exception
    void (*throw_object)(void *object, void *type, void (*destroy)(void *));    // __cxa_throw
    void (*make_string)(void *string, const char *text, const void *allocator); // for PyTorch's ABI
    void (*make_error)(void *object, struct location location, void *string);   // c10::Error; passing a string by value passes its address
    void *type;
    void **table; // virtual functions, the destructor first
} oom_class;

// The symbol names show which std::string PyTorch was built with.
static const struct {
    const char *make_string, *make_error;
} by_abi[] = {
    {"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1EPKcRKS3_",
     "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"},
    {"_ZNSsC1EPKcRKSaIcE", "_ZN3c105ErrorC1ENS_14SourceLocationESs"},
};

// Returns a handle of the named library if it is already loaded. The handle is kept.
static void *find_loaded_library(const char *folder, const char *name) {
    char path[PATH_BYTES];
    const int length = snprintf(path, sizeof path, "%s%s%s", folder, folder[0] == '\0' ? "" : "/", name);
    return length < 0 || (size_t)length >= sizeof path ? NULL : dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

static void *find_symbol(void *const libraries[3], const char *name) {
    void *found = NULL;
    for (int i = 0; i < 3 && found == NULL; i++)
        if (libraries[i] != NULL) found = dlsym(libraries[i], name);
    return found;
}

// Stores an object's address in a function pointer, as POSIX allows.
static bool find_function(void *const libraries[3], const char *name, void *function) {
    void *found = find_symbol(libraries, name);
    *(void **)function = found;
    return found != NULL;
}

int vram_torch_use_oom_error(const char *folder) {
    if (folder == NULL) return false;
    void *const libraries[3] = {find_loaded_library(folder, "libc10.so"), find_loaded_library(folder, "libc10_cuda.so"),
                                find_loaded_library("", "libstdc++.so.6")};
    bool complete = false;
    for (size_t i = 0; i < sizeof by_abi / sizeof *by_abi && !complete; i++)
        complete = find_function(libraries, by_abi[i].make_error, &oom_class.make_error) &&
                   find_function(libraries, by_abi[i].make_string, &oom_class.make_string);
    complete = complete && find_function(libraries, "__cxa_allocate_exception", &oom_class.allocate) &&
               find_function(libraries, "__cxa_throw", &oom_class.throw_object);
    oom_class.type = find_symbol(libraries, "_ZTIN3c1016OutOfMemoryErrorE");
    void **const table = find_symbol(libraries, "_ZTVN3c1016OutOfMemoryErrorE");
    if (!complete || oom_class.type == NULL || table == NULL) return false;
    oom_class.table = table + 2; // skip the offset and the type
    return true;
}

void vr_torch_raise_oom(const char *function, const char *message) {
    if (oom_class.table == NULL) return;
    // Aligned for any class. The string is short, or its text is on the heap and is freed with the exception.
    _Alignas(16) unsigned char string[STRING_BYTES] = {0};
    const char no_allocator = 0;
    oom_class.make_string(string, message, &no_allocator);
    void *object = oom_class.allocate(OBJECT_BYTES);
    oom_class.make_error(object, (struct location){function, "vram_torch.c", 0}, string);
    *(void ***)object = oom_class.table;
    void (*destroy)(void *) = NULL;
    *(void **)(void *)&destroy = oom_class.table[0];
    oom_class.throw_object(object, oom_class.type, destroy);
}
