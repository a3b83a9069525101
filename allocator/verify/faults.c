// faults.c: the report of a fault: one sentence, the block, and the stacks. It is passed to the program's handler or printed.
#include "base/text.h"
#include "verify/verify.h"

// Maximum number of the library's frames before the public function's: in a call, and in a check of all blocks.
enum { MOST_FRAMES = 64, FRAMES_OF_CALL = 4, FRAMES_OF_CHECK = 12 };

static const char *const names[] = {
#define NAME(constant, name, sentence) [VRAM_FAULT_##constant] = name,
    VRAM_FAULT_MAP(NAME)
#undef NAME
};
static const char *const sentences[] = {
#define SENTENCE(constant, name, sentence) [VRAM_FAULT_##constant] = sentence,
    VRAM_FAULT_MAP(SENTENCE)
#undef SENTENCE
};

const char *vram_fault_name(enum vram_fault_kind kind) { return (unsigned)kind < VRAM_FAULT_KINDS ? names[kind] : "unknown"; }

uint32_t vr_verify_stack(const struct vr_verify *verify) { return vram_stack_take(verify->stacks, VRAM_STACK_ALL, 1); }

// Returns whether the frame is of the library's own source, whose path is absolute or relative depending on the compiler.
static bool is_own(const struct vram_frame *frame) {
    return strncmp(frame->name, "vr_", 3) == 0 || strstr(frame->filename, "allocator/core/") != NULL ||
           strstr(frame->filename, "allocator/verify/") != NULL;
}

// Returns the first frame to print: that of the public function that the program called. If a compiler left it out, returns the first frame
// of the program.
static size_t first_frame(const struct vram_frame *frames, size_t count, size_t own) {
    size_t first = 0;
    for (size_t i = 0; i < count && i < own; i++)
        if (strncmp(frames[i].name, "vram_", 5) == 0) return i;
    while (first < count && is_own(&frames[first])) first++;
    return first < count ? first : 0;
}

// The frames of a stack that are printed.
struct fault_stack {
    struct vram_frame frames[MOST_FRAMES];
    size_t first, count;
};

static void find_frames(struct fault_stack *shown, struct vram_stacks *stacks, uint32_t stack, size_t own) {
    const size_t all = stack == 0 ? 0 : vram_stack_frames(stacks, stack, shown->frames, MOST_FRAMES);
    shown->count = all < MOST_FRAMES ? all : MOST_FRAMES;
    shown->first = first_frame(shown->frames, shown->count, own);
}

// Returns whether two frames show the same call. A public function takes its stacks at several lines.
static bool are_one_call(const struct vram_frame *one, const struct vram_frame *other) {
    const bool is_public = strncmp(one->name, "vram_", 5) == 0;
    return strcmp(one->name, other->name) == 0 && (is_public || (one->line == other->line && strcmp(one->filename, other->filename) == 0));
}

static bool are_equal(const struct fault_stack *a, const struct fault_stack *b) {
    if (a->count - a->first != b->count - b->first) return false;
    for (size_t i = 0; i < a->count - a->first; i++)
        if (!are_one_call(&a->frames[a->first + i], &b->frames[b->first + i])) return false;
    return true;
}

static void put_stack(struct vr_text *text, const char *title, const struct fault_stack *shown) {
    if (shown->count == 0) return;
    vr_text_printf(text, "  %s\n", title);
    for (size_t i = shown->first; i < shown->count; i++) {
        const struct vram_frame *frame = &shown->frames[i];
        vr_text_printf(text, "    #%zu %s %s", i - shown->first, frame->name[0] == '\0' ? "?" : frame->name, frame->filename);
        if (frame->line > 0) vr_text_printf(text, ":%lld", (long long)frame->line);
        vr_text_puts(text, "\n");
    }
}

// Prints where the address is, relative to the block.
static void put_place(struct vr_text *text, const struct vram_fault *fault) {
    const uint64_t begin = fault->block_address, end = begin + fault->block_bytes;
    const char *unit = "bytes";
    if (fault->address >= end) {
        vr_text_printf(text, "%llu %s after the end of", (unsigned long long)(fault->address - end), unit);
    } else if (fault->address >= begin) {
        vr_text_printf(text, "%llu %s inside", (unsigned long long)(fault->address - begin), unit);
    } else {
        vr_text_printf(text, "%llu %s before the start of", (unsigned long long)(begin - fault->address), unit);
    }
}

static void put_fault(struct vr_text *text, const struct vram_fault *fault) {
    vr_text_printf(text, "vram: %s: %s\n", vram_fault_name(fault->kind), sentences[fault->kind]);
    if (fault->kind == VRAM_FAULT_LEAK) {
        vr_text_printf(text, "  %llu bytes in %llu blocks on device %u, the first at 0x%llx\n", (unsigned long long)fault->block_bytes,
                       (unsigned long long)fault->blocks, fault->device, (unsigned long long)fault->address);
        return;
    }
    if (fault->wrong_bytes != 0) {
        vr_text_printf(text, "  changed: 0x%llx to 0x%llx (%llu bytes)\n", (unsigned long long)fault->address,
                       (unsigned long long)(fault->address + fault->wrong_bytes - 1), (unsigned long long)fault->wrong_bytes);
    } else {
        vr_text_printf(text, "  address: 0x%llx\n", (unsigned long long)fault->address);
    }
    if (fault->block_address == 0) return;
    vr_text_puts(text, "  this is ");
    put_place(text, fault);
    vr_text_printf(text, " the block of %llu bytes at 0x%llx (device %u, stream 0x%llx)\n", (unsigned long long)fault->block_bytes,
                   (unsigned long long)fault->block_address, fault->device, (unsigned long long)fault->stream);
}

// The call that finds a fault is often the free itself: its stack is printed once.
static void put_stacks(struct vr_text *text, const struct vram_fault *fault) {
    const bool found = fault->wrong_bytes != 0;
    struct fault_stack allocated, freed, current;
    find_frames(&allocated, fault->stacks, fault->allocated, FRAMES_OF_CALL);
    find_frames(&freed, fault->stacks, fault->freed, FRAMES_OF_CALL);
    find_frames(&current, fault->stacks, fault->current, found ? FRAMES_OF_CHECK : FRAMES_OF_CALL);
    const bool same = freed.count > 0 && found && are_equal(&freed, &current);
    put_stack(text, "allocated by", &allocated);
    put_stack(text, same ? "freed by, and found there" : "freed by", &freed);
    if (!same) put_stack(text, found ? "found by" : "called by", &current);
}

static void deliver_fault(struct vr_verify *verify, const struct vram_fault *fault) {
    const vram_fault_handler handler = atomic_load_explicit(&verify->handler, memory_order_acquire);
    if (handler != NULL) {
        handler(fault, atomic_load_explicit(&verify->user, memory_order_relaxed));
        return;
    }
    vr_os_print_error(fault->text);
    if (verify->halts) vr_os_abort();
}

void vr_fault_report(struct vr_verify *verify, struct vram_fault *fault, const struct vr_verified_block *block) {
    struct vr_text text = {0};
    fault->stacks = verify->stacks;
    if (block != NULL) {
        fault->device = block->device;
        fault->stream = block->stream;
        fault->block_address = block->address;
        fault->allocated = block->allocated;
        fault->freed = block->freed;
        if (fault->blocks == 0) fault->blocks = 1, fault->block_bytes = block->requested;
    }
    atomic_fetch_add_explicit(&verify->faults, 1, memory_order_relaxed);
    put_fault(&text, fault);
    put_stacks(&text, fault);
    fault->text = vr_text_status(&text) == VRAM_OK ? vr_text_string(&text) : "vram: a fault, and no memory for its report\n";
    deliver_fault(verify, fault);
    vr_text_release(&text);
}

enum vram_status vram_set_fault_handler(struct vram_allocator *allocator, vram_fault_handler handler, void *user) {
    VR_REQUIRE(allocator);
    struct vr_verify *verify = vr_verify_of(allocator);
    if (verify == NULL) return VRAM_UNSUPPORTED;
    atomic_store_explicit(&verify->user, user, memory_order_relaxed);
    atomic_store_explicit(&verify->handler, handler, memory_order_release);
    return VRAM_OK;
}
