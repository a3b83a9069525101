// stack.c: taking a stack.
#include "vram/stack.h"

#include "history/stack_python.h"
#include "history/stack_table.h"
#include "history/stack_walk.h"

// What is being taken: the words so far and their hash.
struct taking {
    uint64_t *words;
    size_t count;
    size_t limit;
    uint64_t hash;
};

VR_INLINE void put(struct taking *taking, uint64_t word) {
    taking->words[taking->count++] = word;
    taking->hash = vr_stack_hash(taking->hash, word);
}

VR_INLINE void put_group(struct taking *taking, struct vr_python_walk *python) {
    const size_t before = taking->count;
    taking->count += vr_python_group(python, taking->words + before, taking->limit - before);
    for (size_t i = before; i < taking->count; i++) taking->hash = vr_stack_hash(taking->hash, taking->words[i]);
}

// Python alone: `skip` counts frames of machine code only.
static void take_python(struct taking *taking) {
    struct vr_python_walk python;
    if (!vr_python_begin(&python)) return;
    while (python.frame != 0 && taking->count < taking->limit) put_group(taking, &python);
}

// Machine code, and before each frame of the interpreter's loop the Python frames that it runs.
VR_INLINE void take_code(struct taking *taking, struct vr_walk *walk, struct vr_python_walk *python, uint32_t skip) {
    uint64_t anchor = python->frame == 0 ? 0 : vr_python_anchor(python);
    bool more = true;
    while (python->frame == 0 && skip != 0 && more) { // the usual way, without Python
        uint64_t word, end;
        more = vr_walk_next(walk, &word, &end);
        skip--;
    }
    if (python->frame == 0 && more) {
        taking->count = vr_walk_run(walk, taking->words, taking->limit, &taking->hash);
        return;
    }
    while (more && taking->count < taking->limit) {
        const uint64_t pc = walk->pc;
        uint64_t word, end;
        more = vr_walk_next(walk, &word, &end);
        while (python->frame != 0 && (anchor != 0 ? anchor < end : vr_python_is_loop(python, pc))) {
            put_group(taking, python);
            if (taking->count == taking->limit) return;
            if (anchor == 0) break;
            anchor = python->frame == 0 ? 0 : vr_python_anchor(python);
            if (anchor == 0) break;
        }
        if (skip != 0) {
            skip--;
        } else {
            put(taking, word);
        }
    }
    // What no frame of the loop was found for.
    while (python->frame != 0 && taking->count < taking->limit) put_group(taking, python);
}

// Where a walk begins. On x86-64 that is the caller: a function's frame pointer points at the caller's, the return address lies above it,
// and the caller's frame above that. On aarch64 this pair is where the compiler put it in the function's frame, and where that ends only
// its rule tells: the walk begins in a function of ours, and leaves the frames up to the one that holds `frame`.
struct caller {
    uint64_t pc;
    uint64_t sp;
    uint64_t bp;
    uint64_t frame; // 0: the walk is at the caller
};

VR_INLINE uint32_t take(struct vram_stacks *stacks, enum vram_stack_kind kind, uint32_t skip, const struct caller *caller,
                        uint64_t *words) {
    struct taking taking = {.words = words, .limit = stacks->max_frames, .hash = stacks->secret};
    if (kind == VRAM_STACK_PYTHON) {
        take_python(&taking);
    } else {
        for (int attempt = 0; attempt < 3; attempt++) {
            struct vr_walk walk;
            struct vr_python_walk python = {.layout = NULL};
            taking.count = 0;
            taking.hash = stacks->secret;
            if (kind == VRAM_STACK_ALL) (void)vr_python_begin(&python);
            if (!vr_walk_begin(&walk, caller->pc, caller->sp, caller->bp)) break;
            if (caller->frame != 0 && !vr_walk_leave(&walk, caller->frame)) break;
            take_code(&taking, &walk, &python, skip);
            if (!walk.unsure || !vr_walk_outdated(&walk)) break;
        }
    }
    return taking.count == 0 ? 0 : vr_stacks_intern(stacks, words, taking.count, taking.hash);
}

// Two sizes, so that the usual one takes little of the caller's stack.
enum { SMALL = 128 };

VR_NOINLINE static uint32_t take_small(struct vram_stacks *stacks, enum vram_stack_kind kind, uint32_t skip, const struct caller *caller) {
    uint64_t words[SMALL];
    return take(stacks, kind, skip, caller, words);
}

VR_NOINLINE static uint32_t take_large(struct vram_stacks *stacks, enum vram_stack_kind kind, uint32_t skip, const struct caller *caller) {
    uint64_t words[VR_STACK_MAX_FRAMES];
    return take(stacks, kind, skip, caller, words);
}

void vram_stack_spare(void (*function)(void *argument), void *argument) {
    if (function != NULL) vr_os_on_spare_stack(function, argument);
}

// `own` is the frame address of the function that this is inlined into.
VR_UNSANITIZED VR_INLINE struct caller find_caller(const void *frame_address, const void *own) {
    const volatile uint64_t *frame = frame_address;
#if defined(__aarch64__)
    struct caller caller = {.bp = (uint64_t)(uintptr_t)own, .frame = (uint64_t)(uintptr_t)frame};
    __asm__ volatile("adr %0, . + 4\n\tmov %1, sp" : "=r"(caller.pc), "=r"(caller.sp));
    return caller;
#else
    (void)own;
    return (struct caller){.pc = frame[1], .sp = (uint64_t)(uintptr_t)frame + 16, .bp = frame[0]};
#endif
}

VR_INLINE uint32_t take_from(struct vram_stacks *stacks, enum vram_stack_kind kind, uint32_t skip, const struct caller *caller) {
    return stacks->max_frames <= SMALL ? take_small(stacks, kind, skip, caller) : take_large(stacks, kind, skip, caller);
}

// These functions keep a frame pointer because they ask for it.
VR_UNSANITIZED VR_NOINLINE uint32_t vram_stack_take(struct vram_stacks *stacks, enum vram_stack_kind kind, uint32_t skip) {
    if (stacks == NULL || kind == VRAM_STACK_NONE) return 0;
    const struct caller caller = find_caller(__builtin_frame_address(0), __builtin_frame_address(0));
    const uint32_t id = take_from(stacks, kind, skip, &caller);
    VR_NO_TAIL_CALL();
    return id;
}

VR_UNSANITIZED VR_NOINLINE uint32_t vram_stack_take_at(struct vram_stacks *stacks, enum vram_stack_kind kind, const void *frame_address) {
    if (stacks == NULL || kind == VRAM_STACK_NONE) return 0;
    const void *own = __builtin_frame_address(0);
    const struct caller caller = find_caller(frame_address == NULL ? own : frame_address, own);
    const uint32_t id = take_from(stacks, kind, 0, &caller);
    VR_NO_TAIL_CALL();
    return id;
}
