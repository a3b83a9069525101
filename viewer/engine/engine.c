// The page's engine: the explorer as a WebAssembly module. The page's worker calls the exported functions; the two imported ones read a
// file and take answers. Addresses are offsets in the module's memory. The module has no other access to the outside.
#include <stdint.h>
#include <stdlib.h>

#include "base/hash.h"
#include "vram/explorer.h"

#define EXPORT(name) __attribute__((export_name(#name))) name
#define IMPORT(name) __attribute__((import_module("page"), import_name(#name))) name

// Reads at most `capacity` bytes of the file being opened. Returns 0 at its end, SIZE_MAX if it cannot be read.
size_t IMPORT(page_read)(void *buffer, size_t capacity);
// Takes an answer; the bytes are valid during the call.
void IMPORT(page_answer)(const char *bytes, size_t length);

static struct vram_explorer *explorer;
static struct vram_explorer *preview; // if set, answers instead of `explorer`: the beginning of a file that is still being read
static struct vram_error last_error;

static size_t read_file(void *context, void *buffer, size_t capacity) {
    (void)context;
    return page_read(buffer, capacity);
}

static bool take_answer(void *user, const char *bytes, size_t length) {
    (void)user;
    page_answer(bytes, length);
    return true;
}

// Sets the secret of our hash tables: 64 random bits, in two halves, because WebAssembly has no random memory layout. Call before anything
// is opened. Answers do not depend on it.
void EXPORT(engine_seed)(uint32_t low, uint32_t high);
void engine_seed(uint32_t low, uint32_t high) { vr_hash_seed((uint64_t)high << 32 | low); }

// Allocates memory for a text from the page; engine_free() frees it. Returns NULL if memory runs out.
char *EXPORT(engine_room)(size_t bytes);
char *engine_room(size_t bytes) { return malloc(bytes); }

void EXPORT(engine_free)(char *room);
void engine_free(char *room) { free(room); }

static int read_into(struct vram_explorer **into, const char *name, double bytes) {
    struct vram_recording *recording = NULL;
    const struct vram_input input = {.read = read_file, .name = name, .bytes = (uint64_t)bytes};
    if (*into == NULL && vram_explorer_create(into) != VRAM_OK) return 1;
    if (vram_recording_read(&input, &recording, &last_error) != VRAM_OK) return 1;
    if (vram_explorer_add(*into, recording, name, (uint64_t)bytes, &last_error) == VRAM_OK) return 0;
    vram_recording_destroy(recording);
    return 1;
}

static void end_preview(void) {
    vram_explorer_destroy(preview);
    preview = NULL;
}

// Reads a file to its end and adds it; ends a preview. Returns 0, or 1 with engine_error().
int EXPORT(engine_open)(const char *name, double bytes);
int engine_open(const char *name, double bytes) {
    end_preview();
    return read_into(&explorer, name, bytes);
}

// Reads the given beginning of a file. Queries answer only about it until the next engine_open(). Returns 0, or 1 with engine_error().
int EXPORT(engine_preview)(const char *name, double bytes);
int engine_preview(const char *name, double bytes) {
    end_preview();
    const int failed = read_into(&preview, name, bytes);
    if (failed != 0) end_preview();
    return failed;
}

// Answers a query through page_answer(). Returns 0, or 1 with engine_error().
int EXPORT(engine_ask)(const char *query);
int engine_ask(const char *query) {
    if (explorer == NULL && vram_explorer_create(&explorer) != VRAM_OK) return 1;
    return vram_explorer_ask(preview != NULL ? preview : explorer, query, take_answer, NULL, &last_error) == VRAM_OK ? 0 : 1;
}

// Returns the message of the last failure.
const char *EXPORT(engine_error)(void);
const char *engine_error(void) { return last_error.message; }
