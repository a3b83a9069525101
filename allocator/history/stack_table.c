#include "history/stack_table.h"

#include "history/stack_modules.h"
#include "history/stack_python.h"
#include "history/symbols.h"
#include "os/once.h"

enum { FIRST_SLOTS = 1024, CHUNK_WORDS = 8192 };

VR_INLINE unsigned level_of(uint32_t id) { return vr_log2_floor((uint64_t)id + VR_STACK_FIRST) - 10; }

struct vr_stack *vr_stacks_get(struct vram_stacks *stacks, uint32_t id) {
    if (id == 0 || id >= atomic_load_explicit(&stacks->count, memory_order_acquire)) return NULL;
    const unsigned level = level_of(id);
    struct vr_stack *rows = atomic_load_explicit(&stacks->levels[level], memory_order_relaxed);
    return &rows[(uint64_t)id + VR_STACK_FIRST - ((uint64_t)VR_STACK_FIRST << level)];
}

VR_INLINE bool equal_words(const uint64_t *a, const uint64_t *b, size_t count) {
    uint64_t differences = 0;
    for (size_t i = 0; i < count; i++) differences |= a[i] ^ b[i];
    return differences == 0;
}

// Returns the number of an equal stack in `slots`, or 0.
VR_INLINE uint32_t find_stack(struct vram_stacks *stacks, struct vr_stack_slots *slots, const uint64_t *words, size_t count,
                              uint64_t hash) {
    for (size_t at = (size_t)hash & (slots->count - 1);; at = (at + 1) & (slots->count - 1)) {
        const uint64_t slot = atomic_load_explicit(&slots->slot[at], memory_order_acquire);
        if (slot == 0) return 0;
        if ((slot ^ hash) >> 32 != 0) continue;
        const struct vr_stack *stack = vr_stacks_get(stacks, (uint32_t)slot);
        if (stack != NULL && stack->count == count && equal_words(stack->words, words, count)) return (uint32_t)slot;
    }
}

static void put_slot(struct vr_stack_slots *slots, uint64_t slot, uint64_t hash) {
    size_t at = (size_t)hash & (slots->count - 1);
    while (atomic_load_explicit(&slots->slot[at], memory_order_relaxed) != 0) at = (at + 1) & (slots->count - 1);
    atomic_store_explicit(&slots->slot[at], slot, memory_order_release);
}

static void count_bytes(struct vram_stacks *stacks, size_t bytes) {
    atomic_fetch_add_explicit(&stacks->bytes, bytes, memory_order_relaxed);
}

static uint64_t hash_of(const struct vram_stacks *stacks, const struct vr_stack *stack) {
    uint64_t hash = stacks->secret;
    for (uint32_t i = 0; i < stack->count; i++) hash = vr_stack_hash(hash, stack->words[i]);
    return hash;
}

static bool make_slots_locked(struct vram_stacks *stacks, uint32_t count) {
    struct vr_stack_slots *old = atomic_load_explicit(&stacks->slots, memory_order_relaxed);
    if (old != NULL && (size_t)count * 2 < old->count) return true;
    const size_t slots = old == NULL ? FIRST_SLOTS : old->count * 2, bytes = sizeof *old + slots * sizeof old->slot[0];
    struct vr_stack_slots *larger = calloc(1, bytes);
    if (larger == NULL) return false;
    larger->count = slots;
    larger->outgrown = old;
    for (uint32_t id = 1; id < count; id++) {
        const uint64_t hash = hash_of(stacks, vr_stacks_get(stacks, id));
        put_slot(larger, (hash >> 32 << 32) | id, hash);
    }
    count_bytes(stacks, bytes);
    atomic_store_explicit(&stacks->slots, larger, memory_order_release);
    return true;
}

static bool make_level_locked(struct vram_stacks *stacks, uint32_t id) {
    const unsigned level = level_of(id);
    if (level >= VR_STACK_LEVELS) return false;
    if (atomic_load_explicit(&stacks->levels[level], memory_order_relaxed) != NULL) return true;
    const size_t rows = (size_t)VR_STACK_FIRST << level;
    struct vr_stack *made = calloc(rows, sizeof *made);
    if (made == NULL) return false;
    count_bytes(stacks, rows * sizeof *made);
    atomic_store_explicit(&stacks->levels[level], made, memory_order_relaxed); // published by the count
    return true;
}

static const uint64_t *copy_words_locked(struct vram_stacks *stacks, const uint64_t *words, size_t count) {
    struct vr_chunk *chunk = stacks->chunk;
    if (chunk == NULL || chunk->capacity - chunk->used < count) {
        chunk = malloc(sizeof *chunk + CHUNK_WORDS * sizeof chunk->words[0]);
        if (chunk == NULL) return NULL;
        *chunk = (struct vr_chunk){.older = stacks->chunk, .capacity = CHUNK_WORDS};
        count_bytes(stacks, CHUNK_WORDS * sizeof chunk->words[0]);
        stacks->chunk = chunk;
    }
    uint64_t *copy = chunk->words + chunk->used;
    memcpy(copy, words, count * sizeof words[0]);
    chunk->used += count;
    return copy;
}

// --- frames --------------------------------------------------------------------------------------------------------------------

static bool add_frame_locked(struct vram_stacks *stacks, uint64_t word) {
    const size_t count = (size_t)atomic_load_explicit(&stacks->frame_count, memory_order_relaxed), before = stacks->frames_capacity;
    if (vr_map_get(&stacks->frame_rows, word) != 0) return true;
    const size_t growth = vr_map_growth_bytes(&stacks->frame_rows);
    if (count >= UINT32_MAX - 1 || vr_map_reserve(&stacks->frame_rows, 1) != VRAM_OK) return false;
    count_bytes(stacks, growth);
    if (VR_GROW(stacks, frames, count + 1) != VRAM_OK) return false;
    count_bytes(stacks, (stacks->frames_capacity - before) * sizeof stacks->frames[0]);
    stacks->frames[count] = (struct vr_frame_row){.word = word};
    (void)vr_map_set(&stacks->frame_rows, word, count + 1); // there is room
    atomic_store_explicit(&stacks->frame_count, count + 1, memory_order_relaxed);
    return true;
}

struct vr_frame_row *vr_stacks_frame_locked(struct vram_stacks *stacks, uint64_t word) {
    const uint64_t row = vr_map_get(&stacks->frame_rows, word);
    assert(row != 0);
    return &stacks->frames[row - 1];
}

// --- adding --------------------------------------------------------------------------------------------------------------------

static uint32_t add_locked(struct vram_stacks *stacks, const uint64_t *words, size_t count, uint64_t hash) {
    const uint32_t id = atomic_load_explicit(&stacks->count, memory_order_relaxed);
    if (id >= UINT32_MAX - 1 || !make_slots_locked(stacks, id) || !make_level_locked(stacks, id)) return 0;
    for (size_t i = 0; i < count; i++) {
        if (!add_frame_locked(stacks, words[i])) return 0;
    }
    const uint64_t *copy = copy_words_locked(stacks, words, count);
    if (copy == NULL) return 0;
    const unsigned level = level_of(id);
    struct vr_stack *rows = atomic_load_explicit(&stacks->levels[level], memory_order_relaxed);
    rows[(uint64_t)id + VR_STACK_FIRST - ((uint64_t)VR_STACK_FIRST << level)] = (struct vr_stack){.words = copy, .count = (uint32_t)count};
    atomic_store_explicit(&stacks->count, id + 1, memory_order_release);
    put_slot(atomic_load_explicit(&stacks->slots, memory_order_relaxed), (hash >> 32 << 32) | id, hash);
    return id;
}

VR_NOINLINE static uint32_t add_stack(struct vram_stacks *stacks, const uint64_t *words, size_t count, uint64_t hash) {
    vr_mutex_lock(&stacks->mutex);
    uint32_t id = find_stack(stacks, atomic_load_explicit(&stacks->slots, memory_order_relaxed), words, count, hash);
    if (id == 0) id = add_locked(stacks, words, count, hash);
    vr_mutex_unlock(&stacks->mutex);
    return id;
}

uint32_t vr_stacks_intern(struct vram_stacks *stacks, const uint64_t *words, size_t count, uint64_t hash) {
    assert(count != 0 && count <= VR_STACK_MAX_FRAMES);
    const uint32_t id = find_stack(stacks, atomic_load_explicit(&stacks->slots, memory_order_acquire), words, count, hash);
    return VR_LIKELY(id != 0) ? id : add_stack(stacks, words, count, hash);
}

// --- checking ------------------------------------------------------------------------------------------------------------------

static bool stack_is_whole(struct vram_stacks *stacks, uint32_t id) {
    const struct vr_stack *stack = vr_stacks_get(stacks, id);
    if (stack == NULL || stack->words == NULL || stack->count == 0) return false;
    for (uint32_t i = 0; i < stack->count; i++) {
        const uint64_t row = vr_map_get(&stacks->frame_rows, stack->words[i]);
        if (row == 0 || stacks->frames[row - 1].word != stack->words[i]) return false;
    }
    struct vr_stack_slots *slots = atomic_load_explicit(&stacks->slots, memory_order_relaxed);
    return find_stack(stacks, slots, stack->words, stack->count, hash_of(stacks, stack)) == id;
}

bool vr_stacks_check(struct vram_stacks *stacks) {
    vr_mutex_lock(&stacks->mutex);
    const uint32_t count = atomic_load_explicit(&stacks->count, memory_order_relaxed);
    // At least half of the slots are free, so every probe ends.
    bool good = (size_t)count <= atomic_load_explicit(&stacks->slots, memory_order_relaxed)->count / 2 + 1;
    good = good && vr_map_check(&stacks->frame_rows) && stacks->frame_rows.count == atomic_load(&stacks->frame_count);
    for (uint32_t id = 1; good && id < count; id++) good = stack_is_whole(stacks, id);
    vr_mutex_unlock(&stacks->mutex);
    return good;
}

// --- tables --------------------------------------------------------------------------------------------------------------------
//
// A list of all tables of the process, so that fork() can take their locks.

static struct vram_stacks *all;
static struct vr_mutex all_mutex;
static struct vr_once prepared;

static void before_fork(void) {
    vr_mutex_lock(&all_mutex);
    for (struct vram_stacks *stacks = all; stacks != NULL; stacks = stacks->next) vr_mutex_lock(&stacks->mutex);
}

static void after_fork(void) {
    for (struct vram_stacks *stacks = all; stacks != NULL; stacks = stacks->next) vr_mutex_unlock(&stacks->mutex);
    vr_mutex_unlock(&all_mutex);
}

static void prepare_table(void) {
    vr_mutex_init(&all_mutex);
    vr_os_at_fork(before_fork, after_fork, after_fork);
}

enum vram_status vram_stacks_create(const struct vram_stack_options *options, struct vram_stacks **stacks) {
    static _Atomic uint64_t serials;
    VR_REQUIRE(stacks);
    enum { DEFAULT_FRAMES = 128 };
    struct vram_stacks *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->max_frames = options == NULL || options->max_frames == 0 ? DEFAULT_FRAMES : options->max_frames;
    if (made->max_frames > VR_STACK_MAX_FRAMES) made->max_frames = VR_STACK_MAX_FRAMES;
    made->secret = vr_hash_secret(made);
    made->serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed);
    atomic_init(&made->count, 1);
    vr_mutex_init(&made->mutex);
    if (!make_slots_locked(made, 1)) {
        vr_mutex_destroy(&made->mutex);
        free(made);
        return VRAM_NO_HOST_MEMORY;
    }
    // Handlers of forks run in the reverse order of their registration, so tables' locks are taken before that of modules.
    vr_modules_lock();
    vr_modules_unlock();
    vr_once(&prepared, prepare_table);
    vr_mutex_lock(&all_mutex);
    made->next = all;
    all = made;
    vr_mutex_unlock(&all_mutex);
    *stacks = made;
    return VRAM_OK;
}

void vram_stacks_destroy(struct vram_stacks *stacks) {
    if (stacks == NULL) return;
    vr_mutex_lock(&all_mutex);
    struct vram_stacks **link = &all;
    while (*link != stacks) link = &(*link)->next;
    *link = stacks->next;
    vr_mutex_unlock(&all_mutex);
    for (struct vr_stack_slots *slots = atomic_load(&stacks->slots), *outgrown; slots != NULL; slots = outgrown) {
        outgrown = slots->outgrown;
        free(slots);
    }
    for (struct vr_chunk *chunk = stacks->chunk, *older; chunk != NULL; chunk = older) {
        older = chunk->older;
        free(chunk);
    }
    for (size_t level = 0; level < VR_STACK_LEVELS; level++) free(atomic_load(&stacks->levels[level]));
    vr_names_destroy(stacks->names);
    free(stacks->frames);
    vr_map_release(&stacks->frame_rows);
    free(stacks->log_modules);
    vr_mutex_destroy(&stacks->mutex);
    free(stacks);
}

void vram_get_stacks_counts(struct vram_stacks *stacks, struct vram_stacks_counts *counts) {
    if (stacks == NULL || counts == NULL) return;
    vr_mutex_lock(&stacks->mutex);
    counts->stacks = atomic_load(&stacks->count) - 1;
    counts->frames = atomic_load(&stacks->frame_count);
    counts->bytes = sizeof *stacks + atomic_load(&stacks->bytes) + vr_names_bytes(stacks->names) + vr_python_bytes();
    vr_modules_lock();
    counts->bytes += vr_modules_bytes_locked();
    vr_modules_unlock();
    vr_mutex_unlock(&stacks->mutex);
}
