// Names of C++ functions, as people write them.
#include <stdatomic.h>

#include "history/symbols.h"
#include "os/os.h"

static char *demangle(const char *name) {
    static char *(*_Atomic function)(const char *, char *, size_t *, int *);
    static _Atomic bool looked;
    if (strncmp(name, "_Z", 2) != 0) return NULL;
    if (!atomic_load_explicit(&looked, memory_order_acquire)) {
        void *symbol = vr_os_dlsym(NULL, "__cxa_demangle");
        if (symbol == NULL) {
            void *library = vr_os_dlopen("libstdc++.so.6", NULL);
            if (library != NULL) symbol = vr_os_dlsym(library, "__cxa_demangle");
        }
        char *(*found)(const char *, char *, size_t *, int *);
        memcpy(&found, &symbol, sizeof found);
        atomic_store_explicit(&function, found, memory_order_relaxed);
        atomic_store_explicit(&looked, true, memory_order_release);
    }
    char *(*call)(const char *, char *, size_t *, int *) = atomic_load_explicit(&function, memory_order_relaxed);
    int status = 0;
    return call == NULL ? NULL : call(name, NULL, NULL, &status);
}

enum vram_status vr_symbol_emit(const struct vr_symbol_sink *sink, size_t index, const char *name, const char *filename, int64_t line) {
    char *plain = demangle(name);
    const enum vram_status status = sink->frame(sink->context, index, plain != NULL ? plain : name, filename, line);
    free(plain);
    return status;
}
