// reads.c: counts reads (simulator/standins/common/reads.h) and answers them (simulator/standins/common/read_values.h). If VRAM_SIM_STACKS
// names libvram, frames come from it and include Python's; otherwise they are modules and offsets.
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
#include "base/hash.h"
#include "libcuda.h"
#include "stacks.h"

enum { FRAMES_MOST = 64, OPERATION_FRAMES = 128, LINES_MOST = 16, API_FRAMES = 24 };

static struct vr_reads_file *file; // set before other threads can use the simulator
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vr_read_values values; // set at the same time as `file`
static struct vr_map rows;           // guarded by `lock`: id of a stack -> index of its row + 1
static struct vr_map rules;          // guarded by `lock`: ids of stacks -> index of the matching rule + 1, or NO_RULE
enum { NO_RULE = 1 };

static const struct vr_libcuda_stacks *stacks; // set at the same time as `file`

#define NOT_COUNTED UINT64_MAX // as a row: not counted

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

// Returns whether the frame is one of adapters/fit/vram_values.py, which replaces PyTorch's kernels.
static bool is_own(const struct vram_frame *frame) {
    const char *name = strrchr(frame->filename, '/');
    return name != NULL && strncmp(name, "/vram_values", sizeof "/vram_values" - 1) == 0;
}

// Returns whether the frame is PyTorch's method by which such a replacement calls the kernel, in versions where that method is in Python.
static bool is_way_to_kernel(const struct vram_frame *frame) {
    const char *name = strrchr(frame->filename, '/');
    return name != NULL && strcmp(name, "/_ops.py") == 0;
}

// Returns whether the frame is not the program's: a replacement of a kernel, or its call of the kernel.
static bool is_hidden(const struct vram_frame *frames, size_t count, size_t i) {
    return is_own(&frames[i]) || (i + 1 < count && is_own(&frames[i + 1]) && is_way_to_kernel(&frames[i]));
}

// Returns whether the name is that of a function of NVIDIA's libraries which the program called.
static bool is_call(const char *name) {
    return vr_libcuda_is_api(name) || (strncmp(name, "nccl", 4) == 0 && name[4] >= 'A' && name[4] <= 'Z');
}

// Describes a stack. Machine frames start at the caller of the outermost API function.
static void describe_place(uint32_t stack, struct place *place) {
    struct vram_frame frames[FRAMES_MOST];
    size_t count = stacks->frames_of(stacks->table, stack, frames, FRAMES_MOST), first = 0;
    if (count > FRAMES_MOST) count = FRAMES_MOST;
    for (size_t i = 0; i < count && i < API_FRAMES; i++)
        if (is_call(frames[i].name)) first = i + 1;
    for (size_t i = first; i < count; i++) {
        if (is_hidden(frames, count, i)) continue;
        const char *name = frames[i].name[0] == '\0' ? "?" : frames[i].name;
        if (frames[i].line > 0)
            add_line(place, "%s at %s:%" PRId64, name, frames[i].filename, frames[i].line);
        else
            add_line(place, "%s in %s", name, frames[i].filename[0] == '\0' ? "?" : frames[i].filename);
    }
}

// Describes the stack without libvram, starting at the first frame outside of this library.
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

// Prefers Python frames, because the machine frames below them are the interpreter's.
static uint32_t take_stack(void) {
    if (stacks == NULL || stacks->table == NULL) return 0;
    const uint32_t python = stacks->take(stacks->table, VRAM_STACK_PYTHON, 0);
    return python != 0 ? python : stacks->take(stacks->table, VRAM_STACK_C, 0);
}

EXPORT uint32_t vram_sim_stack_take(void);
EXPORT void vram_sim_stack_text(uint32_t stack, char *text, size_t capacity);

uint32_t vram_sim_stack_take(void) { return take_stack(); }

void vram_sim_stack_text(uint32_t stack, char *text, size_t capacity) {
    struct place place = {.text = ""};
    describe_place(stack, &place);
    while (place.length >= capacity) { // whole lines only
        place.text[--place.length] = '\0';
        while (place.length > 0 && place.text[place.length - 1] != '\n') place.text[--place.length] = '\0';
    }
    (void)snprintf(text, capacity, "%s", place.text);
}

// --- operations -----------------------------------------------------------------------------------------------------

// Operations on one machine stack, innermost first, separated by blanks.
struct operations {
    char text[400];
};
static struct vr_map operations_of_stack; // guarded by `lock`: id of a stack -> index of its row + 1
static struct operations *operation_rows;
static size_t operation_count, operation_capacity;

static void find_operations(uint32_t stack, struct operations *found) {
    struct vram_frame frames[OPERATION_FRAMES];
    size_t count = stacks->frames_of(stacks->table, stack, frames, OPERATION_FRAMES);
    if (count > OPERATION_FRAMES) count = OPERATION_FRAMES;
    for (size_t i = 0; i < count; i++) vr_read_operations_add(frames[i].name, found->text, sizeof found->text);
}

// Gets the operations on the current stack, cached if memory allows. Returns the stack's id, or 0 if no stack could be captured.
static uint32_t take_operations(struct operations *found) {
    *found = (struct operations){.text = ""};
    const uint32_t stack = stacks->table == NULL ? 0 : stacks->take(stacks->table, VRAM_STACK_C, 0);
    if (stack == 0) return 0;
    (void)pthread_mutex_lock(&lock);
    const uint64_t row = vr_map_get(&operations_of_stack, stack);
    if (row != 0) *found = operation_rows[row - 1];
    (void)pthread_mutex_unlock(&lock);
    if (row != 0) return stack;
    find_operations(stack, found);
    (void)pthread_mutex_lock(&lock);
    if (vr_grow((void **)&operation_rows, &operation_capacity, operation_count + 1, sizeof *operation_rows) == VRAM_OK) {
        operation_rows[operation_count++] = *found;
        (void)!vr_map_set(&operations_of_stack, stack, operation_count);
    }
    (void)pthread_mutex_unlock(&lock);
    return stack;
}

// --- rows -----------------------------------------------------------------------------------------------------------

static uint64_t find_read_row(const char *place) {
    struct operations operations;
    uint64_t used = atomic_load_explicit(&file->used, memory_order_acquire);
    for (uint64_t i = 0; i < used && i < VR_READS_ROWS; i++) {
        const struct vr_reads_row *row = &file->rows[i];
        if (atomic_load_explicit(&row->state, memory_order_acquire) == VR_READS_READY && strcmp(row->place, place) == 0) return i;
    }
    used = atomic_fetch_add(&file->used, 1);
    if (used >= VR_READS_ROWS) return VR_READS_ROWS;
    struct vr_reads_row *row = &file->rows[used];
    (void)snprintf(row->place, sizeof row->place, "%s", place);
    (void)take_operations(&operations);
    size_t length;
    const char *operation = vr_read_operations_main(operations.text, &length);
    (void)snprintf(row->operation, sizeof row->operation, "%.*s", (int)(length < 200 ? length : 200), operation);
    atomic_store_explicit(&row->state, VR_READS_READY, memory_order_release);
    return used;
}

static uint64_t known_row(uint32_t stack) {
    (void)pthread_mutex_lock(&lock);
    const uint64_t row = stack == 0 ? 0 : vr_map_get(&rows, stack);
    (void)pthread_mutex_unlock(&lock);
    return row;
}

// Returns whether NCCL's stand-in is reading. It reads the data that a collective sends, which the program itself does not see.
static bool is_collective(void) {
    static const char *const below[] = {"libcuda.so", "libvram.so"};
    const uint32_t stack = stacks->table == NULL ? 0 : stacks->take(stacks->table, VRAM_STACK_C, 0);
    return stack != 0 && strncmp(stacks->module_of(stacks->table, stack, below, sizeof below / sizeof *below), "libnccl.so",
                                 sizeof "libnccl.so" - 1) == 0;
}

static uint64_t new_row(uint32_t stack) {
    struct place place = {.text = ""};
    if (is_collective()) {
        (void)pthread_mutex_lock(&lock);
        if (stack != 0) (void)!vr_map_set(&rows, stack, NOT_COUNTED);
        (void)pthread_mutex_unlock(&lock);
        return NOT_COUNTED;
    }
    if (stack != 0)
        describe_place(stack, &place);
    else
        describe_plainly(&place);
    const uint64_t row = find_read_row(place.text) + 1;
    (void)pthread_mutex_lock(&lock);
    // If the host is out of memory, it is described and found again next time.
    if (stack != 0) (void)!vr_map_set(&rows, stack, row);
    (void)pthread_mutex_unlock(&lock);
    return row;
}

static void count_read(uint32_t stack, const struct vr_sim_read *read) {
    uint64_t row = known_row(stack);
    if (row == 0) row = new_row(stack);
    if (row == NOT_COUNTED) return;
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

// Returns the first rule that matches a frame of the stack or an operation, or NULL.
static struct vr_read_rule *match_rule(uint32_t stack, const struct operations *operations) {
    struct vram_frame frames[FRAMES_MOST];
    size_t count = stack == 0 ? 0 : stacks->frames_of(stacks->table, stack, frames, FRAMES_MOST);
    if (count > FRAMES_MOST) count = FRAMES_MOST;
    for (size_t i = 0; i < values.rule_count; i++)
        if (vr_read_rule_is_of(&values.rules[i], operations->text) || is_at(&values.rules[i], frames, count)) return &values.rules[i];
    return NULL;
}

// Like match_rule(), with results cached by the two stacks of a place.
static struct vr_read_rule *find_rule(uint32_t stack, uint32_t machine_stack, const struct operations *operations) {
    const uint64_t place = (uint64_t)machine_stack << 32 | stack;
    (void)pthread_mutex_lock(&lock);
    const uint64_t known = place == 0 ? 0 : vr_map_get(&rules, place);
    (void)pthread_mutex_unlock(&lock);
    if (known != 0) return known == NO_RULE ? NULL : &values.rules[known - NO_RULE - 1];
    struct vr_read_rule *rule = match_rule(stack, operations);
    if (place == 0) return rule;
    (void)pthread_mutex_lock(&lock);
    (void)!vr_map_set(&rules, place, rule == NULL ? NO_RULE : (uint64_t)(rule - values.rules) + 1 + NO_RULE);
    (void)pthread_mutex_unlock(&lock);
    return rule;
}

// --- watching -------------------------------------------------------------------------------------------------------

static void come_to_read(struct vr_sim_reader *reader) {
    struct operations operations = {.text = ""};
    reader->place = take_stack();
    if (values.rule_count == 0) return;
    const uint32_t machine_stack = values.by_operation ? take_operations(&operations) : 0;
    reader->rule = find_rule((uint32_t)reader->place, machine_stack, &operations);
    reader->counts = vr_read_operations_count(operations.text);
}

// Fills the gaps of a read. All copies of one call count as one read of the rule.
static void give_value(struct vr_sim_reader *reader, const struct vr_sim_read *read) {
    if (reader->rule == NULL) return;
    if (reader->value == NULL) reader->value = vr_read_rule_next(&values, reader->rule);
    const struct vr_read_value *value = reader->value;
    // A percentage needs a counting operation.
    if (value->part && !reader->counts) return;
    for (size_t i = 0; i < read->gap_count; i++) vr_read_value_fill(value, read->counted, read->gaps[i].bytes, read->gaps[i].size_bytes);
}

static void notify_read(const struct vr_sim_reader *reader, const struct vr_sim_read *read) {
    if (file != NULL) count_read((uint32_t)reader->place, read);
}

static const struct vr_sim_watch watch = {come_to_read, give_value, notify_read};

// --- opening --------------------------------------------------------------------------------------------------------

static bool open_values(void) {
    const char *text = vr_os_getenv("VRAM_SIM_VALUES");
    struct vr_read_wrong wrong;
    if (text == NULL || vr_read_values_parse(text, &values, &wrong)) return true;
    (void)fprintf(stderr, "vram sim: VRAM_SIM_VALUES: line %zu: %s\n", wrong.line, wrong.why);
    return false;
}

bool vr_libcuda_watch_reads(struct vr_sim *sim) {
    static bool opened; // guarded by `lock`
    bool good = true;
    (void)pthread_mutex_lock(&lock);
    if (!opened) {
        good = opened = open_values();
        if (good) file = vr_shared_file("VRAM_SIM_READS", sizeof *file, VR_READS_MAGIC);
        if (file != NULL || values.rule_count > 0) stacks = vr_libcuda_stacks();
    }
    if (file != NULL || values.rule_count > 0) sim->watch = &watch;
    (void)pthread_mutex_unlock(&lock);
    return good;
}
