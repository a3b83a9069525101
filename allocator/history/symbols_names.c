// Demangles names of C++ functions.

#include <stdatomic.h>

#include "base/hash.h"
#include "history/symbols.h"
#include "os/os.h"

static char *demangle_name(const char *name) {
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
    char *plain = demangle_name(name);
    const enum vram_status status = sink->frame(sink->context, index, plain != NULL ? plain : name, filename, line);
    free(plain);
    return status;
}

enum { CHUNK_BYTES = 65536 };

struct text_chunk {
    struct text_chunk *older;
    size_t used;
    size_t capacity;
    char bytes[];
};

struct vr_names {
    struct text_chunk *chunk;
    const char **strings; // distinct
    size_t strings_capacity;
    struct vr_hash_index index; // of strings
    struct vram_frame *frames;
    size_t frame_count;
    size_t frames_capacity;
    uint64_t bytes;
};

enum vram_status vr_names_create(struct vr_names **names) {
    struct vr_names *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    vr_hash_index_init(&made->index);
    made->bytes = sizeof *made;
    *names = made;
    return VRAM_OK;
}

void vr_names_destroy(struct vr_names *names) {
    if (names == NULL) return;
    for (struct text_chunk *chunk = names->chunk, *older; chunk != NULL; chunk = older) {
        older = chunk->older;
        free(chunk);
    }
    vr_hash_index_release(&names->index);
    free(names->strings);
    free(names->frames);
    free(names);
}

static char *copy_text(struct vr_names *names, const char *text, size_t bytes) {
    struct text_chunk *chunk = names->chunk;
    if (chunk == NULL || chunk->capacity - chunk->used < bytes) {
        const size_t capacity = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        chunk = malloc(sizeof *chunk + capacity);
        if (chunk == NULL) return NULL;
        *chunk = (struct text_chunk){.older = names->chunk, .capacity = capacity};
        names->chunk = chunk;
        names->bytes += capacity;
    }
    char *copy = memcpy(chunk->bytes + chunk->used, text, bytes);
    chunk->used += bytes;
    return copy;
}

const char *vr_names_string(struct vr_names *names, const char *text) {
    if (text[0] == '\0') return "";
    const size_t length = strlen(text), growth = vr_hash_index_growth_bytes(&names->index), count = names->index.count;
    const uint64_t hash = vr_hash_bytes(names->index.secret, text, length);
    uint32_t row = 0;
    bool found;
    VR_HASH_INDEX_FIND(&names->index, hash, row, strcmp(names->strings[row], text) == 0, found);
    if (found) return names->strings[row];
    if (count >= UINT32_MAX - 1 || vr_hash_index_reserve(&names->index) != VRAM_OK) return NULL;
    names->bytes += growth;
    if (VR_GROW(names, strings, count + 1) != VRAM_OK) return NULL;
    const char *copy = copy_text(names, text, length + 1);
    if (copy == NULL) return NULL;
    names->strings[count] = copy;
    vr_hash_index_add(&names->index, hash, (uint32_t)count);
    return copy;
}

enum vram_status vr_names_add(struct vr_names *names, struct vram_frame frame, uint32_t *index) {
    if (names->frame_count >= UINT32_MAX - 1) return VRAM_LIMIT;
    VR_TRY(VR_GROW(names, frames, names->frame_count + 1));
    names->frames[names->frame_count] = frame;
    *index = (uint32_t)names->frame_count++;
    return VRAM_OK;
}

const struct vram_frame *vr_names_frame(const struct vr_names *names, uint32_t index) { return &names->frames[index]; }

uint64_t vr_names_bytes(const struct vr_names *names) {
    return names == NULL
               ? 0
               : names->bytes + names->strings_capacity * sizeof names->strings[0] + names->frames_capacity * sizeof names->frames[0];
}
