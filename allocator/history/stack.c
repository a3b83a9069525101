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
            anchor = vr_python_anchor(python);
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

// A stack that is asked for: whose, by whom, and the Python that runs on it (frame 0: none).
struct stack_request {
    struct vram_stacks *stacks;
    enum vram_stack_kind kind;
    struct vr_python_walk python;
    struct vr_memo_key key; // where it begins
};

VR_INLINE bool walk_once(struct taking *taking, struct vr_walk *walk, const struct stack_request *request) {
    struct vr_python_walk python = request->python;
    if (request->key.frame != 0 && !vr_walk_leave(walk, request->key.frame)) return false;
    take_code(taking, walk, &python, (uint32_t)request->key.skip);
    return true;
}

// Whether there was no room for frames that count.
VR_INLINE bool is_cut(const struct taking *taking, const struct vram_stacks *stacks) {
    return taking->count == taking->limit && taking->limit < stacks->max_frames;
}

VR_INLINE uint32_t intern(const struct taking *taking, struct vram_stacks *stacks) {
    return taking->count == 0 || is_cut(taking, stacks) ? 0 : vr_stacks_intern(stacks, taking->words, taking->count, taking->hash);
}

// memo: where the first attempt notes what it reads; NULL: nowhere.
static uint32_t walk_code(struct taking *taking, struct stack_request *request, struct vr_memo *memo) {
    struct vr_walk walk = {.unsure = false};
    for (int attempt = 0; attempt < 3; attempt++) {
        taking->count = 0;
        taking->hash = request->stacks->secret;
        if (!vr_walk_begin(&walk, request->key.pc, request->key.sp, request->key.bp)) break;
        if (attempt == 0)
            walk.memo = memo;
        else if (memo != NULL)
            vr_memo_spoil(memo);
        request->key.epoch = walk.epoch;
        if (!walk_once(taking, &walk, request)) break;
        if (!walk.unsure || !vr_walk_outdated(&walk)) break;
    }
    const uint32_t id = intern(taking, request->stacks);
    if (memo != NULL) vr_memo_keep(memo, &request->key, id, walk.unsure);
    return id;
}

// With room for `room` frames. *cut: there are more.
VR_INLINE uint32_t take(struct stack_request *request, uint64_t *words, size_t room, bool *cut) {
    struct vram_stacks *stacks = request->stacks;
    struct taking taking = {.words = words, .limit = stacks->max_frames < room ? stacks->max_frames : room, .hash = stacks->secret};
    uint32_t id;
    if (request->kind == VRAM_STACK_PYTHON) {
        take_python(&taking);
        id = intern(&taking, stacks);
    } else {
        // Frames of Python are not on the stack: with them, nothing is noted.
        struct vr_memo *memo = request->python.frame == 0 && (request->key.sp & 7) == 0 ? vr_memo_of(&request->key) : NULL;
        id = walk_code(&taking, request, memo != NULL && vr_memo_begin(memo) ? memo : NULL);
    }
    *cut = is_cut(&taking, stacks);
    return id;
}

// What a walk that began so ended at, if nothing on the way has changed; 0: not known.
VR_NOINLINE static uint32_t recall(struct stack_request *request) {
    struct vr_walk walk;
    bool unsure = false;
    if (!vr_walk_begin(&walk, request->key.pc, request->key.sp, request->key.bp)) return 0;
    request->key.high = walk.high;
    request->key.epoch = walk.epoch;
    const uint32_t id = vr_memo_recall(vr_memo_of(&request->key), &request->key, &unsure);
    return id != 0 && unsure && vr_walk_outdated(&walk) ? 0 : id;
}

// Three sizes, so that the usual one takes little of the caller's stack: a handler of a signal may have 8 KiB in all.
enum { SMALL = 96, MEDIUM = 128 };

VR_NOINLINE static uint32_t take_small(struct stack_request *request, bool *cut) {
    uint64_t words[SMALL];
    return take(request, words, SMALL, cut);
}

VR_NOINLINE static uint32_t take_medium(struct stack_request *request, bool *cut) {
    uint64_t words[MEDIUM];
    return take(request, words, MEDIUM, cut);
}

VR_NOINLINE static uint32_t take_large(struct stack_request *request, bool *cut) {
    uint64_t words[VR_STACK_MAX_FRAMES];
    return take(request, words, VR_STACK_MAX_FRAMES, cut);
}

// Where stacks were cut before, they are likely to be again.
static uint32_t take_sized(struct stack_request *request) {
    struct vram_stacks *stacks = request->stacks;
    const bool deep = atomic_load_explicit(&stacks->deep, memory_order_relaxed);
    bool cut = deep;
    const uint32_t id = deep ? 0 : take_small(request, &cut);
    if (!cut) return id;
    if (!deep) atomic_store_explicit(&stacks->deep, true, memory_order_relaxed);
    return stacks->max_frames <= MEDIUM ? take_medium(request, &cut) : take_large(request, &cut);
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

// By value: a sanitizer knows nothing of what stands in the frames of the functions below.
VR_NOINLINE static uint32_t take_from(struct vram_stacks *stacks, enum vram_stack_kind kind, uint32_t skip, const struct caller caller) {
    struct stack_request request = {
        .stacks = stacks,
        .kind = kind,
        .python.frame = 0,
        .key = {.pc = caller.pc, .sp = caller.sp, .bp = caller.bp, .frame = caller.frame, .table = stacks->serial, .skip = skip}};
    if (kind == VRAM_STACK_ALL) (void)vr_python_begin(&request.python);
    if (kind != VRAM_STACK_PYTHON && request.python.frame == 0) {
        const uint32_t known = recall(&request);
        if (VR_LIKELY(known != 0)) return known;
    }
    return take_sized(&request);
}

// These functions keep a frame pointer because they ask for it.
VR_UNSANITIZED VR_NOINLINE uint32_t vram_stack_take(struct vram_stacks *stacks, enum vram_stack_kind kind, uint32_t skip) {
    if (stacks == NULL || kind == VRAM_STACK_NONE) return 0;
    const struct caller caller = find_caller(__builtin_frame_address(0), __builtin_frame_address(0));
    const uint32_t id = take_from(stacks, kind, skip, caller);
    VR_NO_TAIL_CALL();
    return id;
}

VR_UNSANITIZED VR_NOINLINE uint32_t vram_stack_take_at(struct vram_stacks *stacks, enum vram_stack_kind kind, const void *frame_address) {
    if (stacks == NULL || kind == VRAM_STACK_NONE) return 0;
    const void *own = __builtin_frame_address(0);
    const struct caller caller = find_caller(frame_address == NULL ? own : frame_address, own);
    const uint32_t id = take_from(stacks, kind, 0, caller);
    VR_NO_TAIL_CALL();
    return id;
}
