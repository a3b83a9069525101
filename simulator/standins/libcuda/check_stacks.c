// The stacks of the checker's findings, and their frames as lines (check_lines.h).
#include "check_stacks.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../common/check_lines.h"
#include "base/hash.h"
#include "libcuda.h"
#include "sim/sim.h"
#include "stacks.h"

EXPORT uint32_t vram_sim_check_call(void);
EXPORT void vram_sim_check_return(uint32_t before);

enum { API_FRAMES = 24, FRAMES_MOST = 512 };

// Appends a field without the characters that separate fields and lines.
void vr_libcuda_check_field(struct vr_text *text, const char *field) {
    vr_text_puts(text, "\t");
    for (; *field != '\0'; field++) vr_text_append(text, *field == '\t' || *field == '\n' ? " " : field, 1);
}

// ---- Stacks.

static uint32_t take(enum vram_stack_kind kind) {
    const struct vr_libcuda_stacks *stacks = vr_libcuda_stacks();
    return stacks->table == NULL ? 0 : stacks->take(stacks->table, kind, 0);
}

// PyTorch's engine runs the backward pass on threads of its own, whose stacks have no Python. The thread that called it waits meanwhile, so
// its stack is the rest of theirs. A stack with such a rest is a row of `joined`; its number has JOINED_BIT.
#define JOINED_BIT  0x80000000u
#define JOINED_MOST 65536 // with more, stacks have no rest

static struct joined { uint32_t stack, rest; } * joined;
static size_t joined_count, joined_capacity;
static struct vr_map joined_rows; // stack and rest -> row + 1
static pthread_mutex_t joined_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t caller;             // the stack that called the engine; 0: it does not run
static _Thread_local unsigned calls_engine; // calls in progress of this thread

static bool add_joined(uint32_t stack, uint32_t rest) {
    struct joined *wider = joined;
    if (joined_count == JOINED_MOST) return false;
    if (joined_count == joined_capacity) {
        const size_t capacity = joined_capacity == 0 ? 64 : 2 * joined_capacity;
        if ((wider = realloc(joined, capacity * sizeof *joined)) == NULL) return false;
        joined = wider;
        joined_capacity = capacity;
    }
    if (vr_map_set(&joined_rows, (uint64_t)stack << 32 | rest, joined_count + 1) != VRAM_OK) return false;
    joined[joined_count++] = (struct joined){.stack = stack, .rest = rest};
    return true;
}

// Returns the number of a stack with its rest, or the stack itself if there is no room.
static uint32_t join(uint32_t stack, uint32_t rest) {
    (void)pthread_mutex_lock(&joined_lock);
    uint64_t row = vr_map_get(&joined_rows, (uint64_t)stack << 32 | rest);
    if (row == 0 && add_joined(stack, rest)) row = joined_count;
    (void)pthread_mutex_unlock(&joined_lock);
    return row == 0 ? stack : JOINED_BIT | (uint32_t)(row - 1);
}

static struct joined parts_of(uint32_t stack) {
    struct joined parts = {.stack = 0};
    if ((stack & JOINED_BIT) == 0) return (struct joined){.stack = stack};
    (void)pthread_mutex_lock(&joined_lock);
    if ((stack & ~JOINED_BIT) < joined_count) parts = joined[stack & ~JOINED_BIT];
    (void)pthread_mutex_unlock(&joined_lock);
    return parts;
}

static _Thread_local bool is_hidden; // the thread's calls are a library's own

bool vr_libcuda_check_hide(bool hidden) {
    const bool before = is_hidden;
    is_hidden = hidden;
    return before;
}

bool vr_libcuda_check_is_hidden(void) { return is_hidden; }

bool vr_libcuda_runs_python(void) { return vr_libcuda_stacks()->table == NULL || take(VRAM_STACK_PYTHON) != 0; }

uint32_t vr_libcuda_check_stack(void) {
    if (is_hidden) return VR_SIM_STACK_HIDDEN;
    const uint32_t stack = take(VRAM_STACK_ALL), rest = atomic_load(&caller);
    return rest == 0 || stack == 0 || calls_engine > 0 ? stack : join(stack, rest);
}

// Returns what vram_sim_check_return() needs: calls may be nested.
uint32_t vram_sim_check_call(void) {
    calls_engine++;
    return atomic_exchange(&caller, take(VRAM_STACK_PYTHON));
}

void vram_sim_check_return(uint32_t before) {
    calls_engine--;
    atomic_store(&caller, before);
}

// ---- Frames.

// Returns whether the frame is one of adapters/fit/vram_check.py, which reports PyTorch's blocks, or of PyTorch's call of it.
static bool is_own(const struct vram_frame *frame) {
    const char *name = strrchr(frame->filename, '/');
    return (name != NULL && strncmp(name, "/vram_", sizeof "/vram_" - 1) == 0) || strcmp(frame->name, "fire_callbacks") == 0;
}

// Returns whether the frame is one of the stand-ins, or of the signal that a guard raised.
static bool is_of_standins(const struct vram_frame *frame) {
    static const char *const parts[] = {"simulator/standins/", "simulator/sim/", "/libcuda.so", "/libcudart.so"};
    for (size_t i = 0; i < VR_COUNT_OF(parts); i++)
        if (strstr(frame->filename, parts[i]) != NULL) return true;
    return strcmp(frame->name, "__restore_rt") == 0;
}

static bool is_python(const struct vram_frame *frame) {
    const size_t length = strlen(frame->filename);
    return frame->filename[0] == '<' || (length > 3 && strcmp(frame->filename + length - 3, ".py") == 0);
}

// Returns the first frame after those of the driver, the runtime and the reports of blocks.
static size_t first_frame(const struct vram_frame *frames, size_t count) {
    size_t first = 0;
    for (size_t i = 0; i < count && i < API_FRAMES; i++)
        if (vr_libcuda_is_api(frames[i].name) || is_of_standins(&frames[i])) first = i + 1;
    for (size_t i = first; i < count && i < first + API_FRAMES && (!is_python(&frames[i]) || is_own(&frames[i])); i++)
        if (is_own(&frames[i])) first = i + 1;
    return first;
}

// Appends at most VR_CHECK_LINES_FRAMES frames of machine code, and as many Python frames, which follow them. Returns whether there are any
// Python frames.
static bool put_part(struct vr_text *text, uint32_t stack) {
    const struct vr_libcuda_stacks *stacks = vr_libcuda_stacks();
    struct vram_frame frames[FRAMES_MOST];
    size_t put[2] = {0};
    if (stack == 0 || stacks->table == NULL) return false;
    size_t count = stacks->frames_of(stacks->table, stack, frames, FRAMES_MOST);
    if (count > FRAMES_MOST) count = FRAMES_MOST;
    for (size_t i = first_frame(frames, count); i < count; i++) {
        if (is_own(&frames[i]) || put[is_python(&frames[i])]++ >= VR_CHECK_LINES_FRAMES) continue;
        vr_text_puts(text, "frame");
        vr_libcuda_check_field(text, frames[i].name);
        vr_libcuda_check_field(text, frames[i].filename);
        vr_text_printf(text, "\t%" PRId64 "\n", frames[i].line);
    }
    return put[true] > 0;
}

void vr_libcuda_check_frames(struct vr_text *text, uint32_t stack) {
    const struct joined parts = parts_of(stack);
    if (!put_part(text, parts.stack)) (void)put_part(text, parts.rest); // other threads with Python may run meanwhile
}
