// reads.c: the counting half of standins/common/reads.h, and what reads give by standins/common/read_values.h. Frames come from libvram
// where VRAM_SIM_STACKS names it, Python's too; else they are modules and offsets.
#define _GNU_SOURCE // dladdr()
#include <dlfcn.h>
#include <execinfo.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/read_values.h"
#include "../common/reads.h"
#include "../common/shared_file.h"
#include "base/map.h"
#include "libcuda.h"
#include "vram/stack.h"

enum { FRAMES_MOST = 64, LINES_MOST = 16, API_FRAMES = 24 };

static struct vr_reads_file *file; // set before the simulator is known to anyone
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vr_read_values values; // as the file
static struct vr_map rows;           // under the lock: a stack's number -> its row's + 1
static struct vr_map rules;          // under the lock: a stack's number -> the rule that it is at + 1, or NO_RULE
enum { NO_RULE = 1 };

// libvram, where it is there.
static struct vram_stacks *stacks;
static uint32_t (*take)(struct vram_stacks *, enum vram_stack_kind, uint32_t);
static size_t (*frames_of)(struct vram_stacks *, uint32_t, struct vram_frame *, size_t);

// --- text -----------------------------------------------------------------------------------------------------------

struct place {
    char text[sizeof((struct vr_reads_row *)0)->place];
    size_t length, lines;
};

static void add_line(struct place *place, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_line(struct place *place, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const size_t rest = sizeof place->text - place->length;
    const int length = vsnprintf(place->text + place->length, rest, format, arguments);
    va_end(arguments);
    if (place->lines >= LINES_MOST || length < 0 || (size_t)length + 1 >= rest) {
        place->text[place->length] = '\0'; // whole lines only
        place->lines = LINES_MOST;
        return;
    }
    place->length += (size_t)length;
    place->text[place->length++] = '\n';
    place->text[place->length] = '\0';
    place->lines++;
}

// cuMemcpyDtoH_v2, cudaMemcpyAsync: a function of the driver or the runtime.
static bool is_api(const char *name) {
    const char first = strncmp(name, "cuda", 4) == 0 ? name[4] : strncmp(name, "cu", 2) == 0 ? name[2] : '\0';
    return first >= 'A' && first <= 'Z';
}

// Machine code is told from the caller of the outermost function of the API on.
static void describe(uint32_t stack, struct place *place) {
    struct vram_frame frames[FRAMES_MOST];
    size_t count = frames_of(stacks, stack, frames, FRAMES_MOST), first = 0;
    if (count > FRAMES_MOST) count = FRAMES_MOST;
    for (size_t i = 0; i < count && i < API_FRAMES; i++)
        if (is_api(frames[i].name)) first = i + 1;
    for (size_t i = first; i < count; i++) {
        const char *name = frames[i].name[0] == '\0' ? "?" : frames[i].name;
        if (frames[i].line > 0)
            add_line(place, "%s at %s:%" PRId64, name, frames[i].filename, frames[i].line);
        else
            add_line(place, "%s in %s", name, frames[i].filename[0] == '\0' ? "?" : frames[i].filename);
    }
}

// Without libvram: from the first frame that is not of this library on.
static void describe_plainly(struct place *place) {
    void *frames[FRAMES_MOST];
    Dl_info own, facts;
    const int count = backtrace(frames, FRAMES_MOST);
    if (dladdr((void *)&lock, &own) == 0) return;
    for (int i = 0; i < count; i++) {
        if (dladdr(frames[i], &facts) == 0 || facts.dli_fbase == own.dli_fbase) continue;
        const uintptr_t offset = (uintptr_t)frames[i] - (uintptr_t)facts.dli_fbase;
        if (facts.dli_sname != NULL)
            add_line(place, "%s in %s+0x%" PRIxPTR, facts.dli_sname, facts.dli_fname, offset);
        else
            add_line(place, "%s+0x%" PRIxPTR, facts.dli_fname, offset);
    }
}

// --- rows -----------------------------------------------------------------------------------------------------------

static uint64_t find_row(const char *place) {
    uint64_t used = atomic_load_explicit(&file->used, memory_order_acquire);
    for (uint64_t i = 0; i < used && i < VR_READS_ROWS; i++) {
        const struct vr_reads_row *row = &file->rows[i];
        if (atomic_load_explicit(&row->state, memory_order_acquire) == VR_READS_READY && strcmp(row->place, place) == 0) return i;
    }
    used = atomic_fetch_add(&file->used, 1);
    if (used >= VR_READS_ROWS) return VR_READS_ROWS;
    struct vr_reads_row *row = &file->rows[used];
    (void)snprintf(row->place, sizeof row->place, "%s", place);
    atomic_store_explicit(&row->state, VR_READS_READY, memory_order_release);
    return used;
}

// Frames of Python say more than the machine's below them, which are the interpreter's.
static uint32_t take_stack(void) {
    if (stacks == NULL) return 0;
    const uint32_t python = take(stacks, VRAM_STACK_PYTHON, 0);
    return python != 0 ? python : take(stacks, VRAM_STACK_C, 0);
}

static uint64_t known_row(uint32_t stack) {
    (void)pthread_mutex_lock(&lock);
    const uint64_t row = stack == 0 ? 0 : vr_map_get(&rows, stack);
    (void)pthread_mutex_unlock(&lock);
    return row;
}

static uint64_t new_row(uint32_t stack) {
    struct place place = {.text = ""};
    if (stack != 0)
        describe(stack, &place);
    else
        describe_plainly(&place);
    const uint64_t row = find_row(place.text) + 1;
    (void)pthread_mutex_lock(&lock);
    // Without memory for it, it is described and found again the next time.
    if (stack != 0) (void)!vr_map_set(&rows, stack, row);
    (void)pthread_mutex_unlock(&lock);
    return row;
}

static void count_read(uint32_t stack, const struct vr_sim_read *read) {
    uint64_t row = known_row(stack);
    if (row == 0) row = new_row(stack);
    struct vr_reads_count *count = row > VR_READS_ROWS ? &file->elsewhere : &file->rows[row - 1].count;
    (void)atomic_fetch_add_explicit(&count->calls, 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&count->unwritten_bytes, read->unwritten_bytes, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&count->passed_bytes, read->passed_bytes, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&count->not_kept_bytes, read->not_kept_bytes, memory_order_relaxed);
}

// --- values ---------------------------------------------------------------------------------------------------------

static bool is_at(const struct vr_read_rule *rule, const struct vram_frame *frames, size_t count) {
    if (rule->kind == VR_READ_ANYWHERE) return true;
    for (size_t i = 0; i < count; i++)
        if (vr_read_rule_matches(rule, frames[i].name, frames[i].filename, frames[i].line)) return true;
    return false;
}

// The first rule that a frame of the stack is at; NULL: none.
static struct vr_read_rule *match(uint32_t stack) {
    struct vram_frame frames[FRAMES_MOST];
    size_t count = stack == 0 ? 0 : frames_of(stacks, stack, frames, FRAMES_MOST);
    if (count > FRAMES_MOST) count = FRAMES_MOST;
    for (size_t i = 0; i < values.rule_count; i++)
        if (is_at(&values.rules[i], frames, count)) return &values.rules[i];
    return NULL;
}

// The same, once a stack.
static struct vr_read_rule *find_rule(uint32_t stack) {
    (void)pthread_mutex_lock(&lock);
    const uint64_t known = stack == 0 ? 0 : vr_map_get(&rules, stack);
    (void)pthread_mutex_unlock(&lock);
    if (known != 0) return known == NO_RULE ? NULL : &values.rules[known - NO_RULE - 1];
    struct vr_read_rule *rule = match(stack);
    if (stack == 0) return rule;
    (void)pthread_mutex_lock(&lock);
    (void)!vr_map_set(&rules, stack, rule == NULL ? NO_RULE : (uint64_t)(rule - values.rules) + 1 + NO_RULE);
    (void)pthread_mutex_unlock(&lock);
    return rule;
}

// --- watching -------------------------------------------------------------------------------------------------------

static void come(struct vr_sim_reader *reader) {
    reader->place = take_stack();
    if (values.rule_count > 0) reader->rule = find_rule((uint32_t)reader->place);
}

// All copies of a call are one read of its rule.
static void give(struct vr_sim_reader *reader, const struct vr_sim_read *read) {
    if (reader->rule == NULL) return;
    if (reader->value == NULL) reader->value = vr_read_rule_next(&values, reader->rule);
    for (size_t i = 0; i < read->gap_count; i++) vr_read_value_fill(reader->value, read->gaps[i].bytes, read->gaps[i].size_bytes);
}

static void tell(const struct vr_sim_reader *reader, const struct vr_sim_read *read) {
    if (file != NULL) count_read((uint32_t)reader->place, read);
}

static const struct vr_sim_watch watch = {come, give, tell};

// --- opening --------------------------------------------------------------------------------------------------------

static void open_stacks(void) {
    const char *path = vr_os_getenv("VRAM_SIM_STACKS");
    void *library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return;
    enum vram_status (*create)(const struct vram_stack_options *, struct vram_stacks **);
    void *const found[] = {dlsym(library, "vram_stacks_create"), dlsym(library, "vram_stack_take"), dlsym(library, "vram_stack_frames")};
    if (found[0] == NULL || found[1] == NULL || found[2] == NULL) return;
    memcpy(&create, &found[0], sizeof create);
    memcpy(&take, &found[1], sizeof take);
    memcpy(&frames_of, &found[2], sizeof frames_of);
    if (create(NULL, &stacks) != VRAM_OK) stacks = NULL;
}

static bool open_values(void) {
    const char *text = vr_os_getenv("VRAM_SIM_VALUES");
    struct vr_read_wrong wrong;
    if (text == NULL || vr_read_values_parse(text, &values, &wrong)) return true;
    (void)fprintf(stderr, "vram sim: VRAM_SIM_VALUES: line %zu: %s\n", wrong.line, wrong.why);
    return false;
}

bool vr_libcuda_watch_reads(struct vr_sim *sim) {
    static bool opened; // under the lock
    bool good = true;
    (void)pthread_mutex_lock(&lock);
    if (!opened) {
        good = opened = open_values();
        if (good) file = vr_shared_file("VRAM_SIM_READS", sizeof *file, VR_READS_MAGIC);
        if (file != NULL || values.rule_count > 0) open_stacks();
    }
    if (file != NULL || values.rule_count > 0) sim->watch = &watch;
    (void)pthread_mutex_unlock(&lock);
    return good;
}
