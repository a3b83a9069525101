// vram/sleep.h: chooses the pools, and puts them to sleep or wakes them.
#include "core/capture/captures.h"
#include "core/release.h"
#include "core/alloc.h"
#include "core/sleep/sleepers.h"
#include "core/source/backend.h"
#include "core/source/paged.h"

// The pools of a call, each once.
struct sleeper_list {
    struct vr_sleeper **items;
    size_t count, items_capacity;
};

// --- choosing --------------------------------------------------------------------------------------------------------------------------

static const struct vram_sleep_choice everything;

static bool names_pool(const struct vram_sleep_choice *choice, const struct vram_pool *pool) {
    if (choice->tag != NULL) return pool != NULL && strcmp(choice->tag, pool->tag) == 0;
    if (choice->pool != NULL) return choice->pool == pool;
    return !choice->default_pools || pool == NULL;
}

static const struct vram_sleep_choice *choice_of(const struct vram_sleep_choice *choices, size_t count, const struct vram_pool *pool) {
    for (size_t i = 0; i < count; i++)
        if (names_pool(&choices[i], pool)) return &choices[i];
    return NULL;
}

// Returns whether the choices name every pool individually, so that no other pool need be checked.
static bool name_each(const struct vram_sleep_choice *choices, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (choices[i].tag != NULL || (choices[i].pool == NULL && !choices[i].default_pools)) return false;
    return true;
}

static bool is_tag(const struct vr_device *device, const char *tag) {
    for (const struct vram_pool *pool = device->pools; pool != NULL; pool = pool->next)
        if (strcmp(pool->tag, tag) == 0) return true;
    return false;
}

static enum vram_status check_choices(const struct vr_device *device, const struct vram_sleep_choice *choices, size_t count,
                                      struct vram_error *error) {
    for (size_t i = 0; i < count; i++) {
        const struct vram_sleep_choice *choice = &choices[i];
        if ((unsigned)choice->level > VRAM_SLEEP_ZERO) return vr_fail(error, VRAM_INVALID_ARGUMENT, i, "unknown sleep level");
        if (choice->pool != NULL && choice->pool->device != device)
            return vr_fail(error, VRAM_INVALID_ARGUMENT, i, "the pool belongs to another device");
        if (choice->tag != NULL && (choice->tag[0] == '\0' || !is_tag(device, choice->tag)))
            return vr_fail(error, VRAM_INVALID_ARGUMENT, i, "no pool on device %u has the tag \"%.63s\"", device->ordinal, choice->tag);
    }
    return VRAM_OK;
}

static enum vram_status add_sleeper(struct sleeper_list *list, struct vram_pool *pool, const struct vram_sleep_choice *choice) {
    VR_TRY(VR_GROW(list, items, list->count + 1));
    struct vr_sleeper *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->pool = pool;
    made->level = choice->level;
    made->wakes = choice->wakes;
    list->items[list->count++] = made;
    return VRAM_OK;
}

// --- falling asleep --------------------------------------------------------------------------------------------------------------------

// Releases free memory first, because it need not be saved. The default pools' memory is released before the pools are listed, because
// pools may be destroyed by it. A pool that a graph uses releases nothing.
static void release_default(struct vr_device *device) {
    (void)!vr_release_all(device, true);
    (void)!vr_paged_release(device, UINT64_MAX);
}

static void release_private(const struct sleeper_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        struct vram_pool *pool = list->items[i]->pool;
        if (pool != NULL && !pool->captured) (void)!vr_release_pool(pool);
    }
}

static enum vram_status wait_for_work(struct vr_device *device) {
    VR_TRY(vr_deferred_convert(device));
    VR_TRY(vr_fences_wait(device));
    return vr_driver_status(vr_cu(device->allocator->driver, ctx_synchronize, 0));
}

static enum vram_status list_awake(const struct vr_device *device, const struct vram_sleep_choice *choices, size_t count,
                                   struct sleeper_list *list) {
    const struct vram_sleep_choice *choice = choice_of(choices, count, NULL);
    if (choice != NULL && vr_sleeper_of(device, NULL) == NULL) VR_TRY(add_sleeper(list, NULL, choice));
    if (name_each(choices, count)) {
        for (size_t i = 0; i < count; i++) {
            struct vram_pool *pool = choices[i].pool;
            if (pool == NULL || choice_of(choices, count, pool) != &choices[i] || vr_sleeper_of(device, pool) != NULL) continue;
            VR_TRY(add_sleeper(list, pool, &choices[i]));
        }
        return VRAM_OK;
    }
    for (struct vram_pool *pool = device->pools; pool != NULL; pool = pool->next) {
        choice = choice_of(choices, count, pool);
        if (choice != NULL && vr_sleeper_of(device, pool) == NULL) VR_TRY(add_sleeper(list, pool, choice));
    }
    return VRAM_OK;
}

// Returns the sleeper of the default pools: from the list, or the existing one. NULL: they stay awake.
static const struct vr_sleeper *borrower_of(const struct vr_device *device, const struct sleeper_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i]->pool == NULL) return list->items[i];
    return vr_sleeper_of(device, NULL);
}

static enum vram_status sleep_all(struct vr_device *device, const struct sleeper_list *list, struct vram_sleep_result *result,
                                  struct vram_error *error) {
    uint64_t stream = 0;
    for (size_t i = 0; i < list->count; i++) VR_TRY(vr_lent_check(device, list->items[i], borrower_of(device, list), error));
    release_private(list);
    VR_TRY(vr_copy_stream_open(device, &stream));
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < list->count && status == VRAM_OK; i++) status = vr_sleeper_prepare(device, stream, list->items[i], error);
    vr_copy_stream_close(device, stream);
    if (status != VRAM_OK) return status;
    // Nothing can fail from here on.
    for (size_t i = 0; i < list->count; i++) vr_sleeper_begin(device, list->items[i], result);
    return VRAM_OK;
}

static enum vram_status sleep_locked(struct vr_device *device, const struct vram_sleep_choice *choices, size_t count,
                                     struct vram_sleep_result *result, struct vram_error *error) {
    VR_TRY(check_choices(device, choices, count, error));
    if (vr_any_captures(device)) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "a capture is in progress");
    struct sleeper_list list = {0};
    VR_TRY(wait_for_work(device));
    if (choice_of(choices, count, NULL) != NULL) release_default(device);
    enum vram_status status = list_awake(device, choices, count, &list);
    if (status == VRAM_OK && list.count != 0) status = sleep_all(device, &list, result, error);
    for (size_t i = 0; i < list.count && status != VRAM_OK; i++) {
        vr_kept_release(device, &list.items[i]->kept);
        free(list.items[i]);
    }
    free(list.items);
    return status;
}

// --- waking ----------------------------------------------------------------------------------------------------------------------------

static enum vram_status add_asleep(struct sleeper_list *list, struct vr_sleeper *sleeper) {
    VR_TRY(VR_GROW(list, items, list->count + 1));
    list->items[list->count++] = sleeper;
    return VRAM_OK;
}

static enum vram_status list_asleep(const struct vr_device *device, const struct vram_sleep_choice *choices, size_t count,
                                    struct sleeper_list *list) {
    if (name_each(choices, count)) {
        for (size_t i = 0; i < count; i++) {
            struct vr_sleeper *sleeper = vr_sleeper_of(device, choices[i].pool);
            if (sleeper != NULL && choice_of(choices, count, choices[i].pool) == &choices[i]) VR_TRY(add_asleep(list, sleeper));
        }
        return VRAM_OK;
    }
    for (struct vr_sleeper *sleeper = device->vacant; sleeper != NULL; sleeper = sleeper->next)
        if (choice_of(choices, count, sleeper->pool) != NULL) VR_TRY(add_asleep(list, sleeper));
    return VRAM_OK;
}

static enum vram_status wake_locked(struct vr_device *device, const struct vram_sleep_choice *choices, size_t count,
                                    struct vram_sleep_result *result, struct vram_error *error) {
    VR_TRY(check_choices(device, choices, count, error));
    if (vr_any_captures(device)) return vr_fail(error, VRAM_INVALID_ARGUMENT, VRAM_NO_OFFSET, "a capture is in progress");
    struct sleeper_list list = {0};
    enum vram_status status = list_asleep(device, choices, count, &list);
    if (status == VRAM_OK && list.count != 0) status = vr_sleepers_wake(device, list.items, list.count, result, error);
    free(list.items);
    return status;
}

// --- the interface -----------------------------------------------------------------------------------------------------------------------

typedef enum vram_status sleep_step(struct vr_device *device, const struct vram_sleep_choice *choices, size_t count,
                                    struct vram_sleep_result *result, struct vram_error *error);

static enum vram_status run_choices(struct vram_allocator *allocator, uint32_t ordinal, const struct vram_sleep_choice *choices,
                                    size_t count, struct vram_sleep_result *result, struct vram_error *error, sleep_step *step) {
    struct vr_device *device = NULL;
    struct vr_context_guard guard;
    struct vram_sleep_result made = {0};
    vr_error_clear(error);
    if (result != NULL) *result = made;
    if (!allocator->backend->has_blocks)
        return vr_fail(error, VRAM_UNSUPPORTED, VRAM_NO_OFFSET, "memory from the driver's pool (backend:cudaMallocAsync) cannot sleep");
    enum vram_status status = vr_device_get(allocator, ordinal, &device);
    if (status == VRAM_OK) status = vr_context_enter(device, &guard);
    if (status != VRAM_OK) return vr_error_complete(error, status);
    vr_gather(device, VR_LEVEL_ALL, 1);
    vr_device_lock_guarded(device, &guard);
    status = count == 0 ? step(device, &everything, 1, &made, error) : step(device, choices, count, &made, error);
    vr_device_unlock(device);
    vr_context_leave(&guard);
    if (status == VRAM_OK && result != NULL) *result = made;
    return vr_verify_if_enabled(allocator, vr_error_complete(error, status));
}

enum vram_status vram_sleep(struct vram_allocator *allocator, uint32_t device, const struct vram_sleep_choice *choices, size_t count,
                            struct vram_sleep_result *result, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && (choices || count == 0));
    const enum vram_status status = run_choices(allocator, device, choices, count, result, error, sleep_locked);
    VR_NO_TAIL_CALL();
    return status;
}

enum vram_status vram_wake(struct vram_allocator *allocator, uint32_t device, const struct vram_sleep_choice *choices, size_t count,
                           struct vram_sleep_result *result, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, allocator && (choices || count == 0));
    const enum vram_status status = run_choices(allocator, device, choices, count, result, error, wake_locked);
    VR_NO_TAIL_CALL();
    return status;
}

static struct vram_sleeper info_of_sleeper(const struct vr_device *device, const struct vr_sleeper *sleeper) {
    struct vram_sleeper described = {.level = sleeper->level,
                                     .wakes = sleeper->wakes,
                                     .live_bytes = vr_sleeper_live(device, sleeper),
                                     .away_bytes = vr_sleeper_away(device, sleeper),
                                     .host_bytes = vr_pinned_bytes(&sleeper->kept.chunks)};
    if (sleeper->pool == NULL) return described;
    described.pool = sleeper->pool->id;
    memcpy(described.tag, sleeper->pool->tag, sizeof described.tag);
    return described;
}

enum vram_status vram_sleepers(struct vram_allocator *allocator, uint32_t ordinal, struct vram_sleeper *sleepers, size_t capacity,
                               size_t *count) {
    VR_REQUIRE(allocator && count && (sleepers || capacity == 0));
    if (ordinal >= (uint32_t)allocator->device_count) return VRAM_INVALID_ARGUMENT;
    struct vr_device *device = vr_device_if_used(allocator, ordinal);
    size_t found = 0;
    if (device != NULL) {
        vr_device_lock(device);
        for (const struct vr_sleeper *sleeper = device->vacant; sleeper != NULL; sleeper = sleeper->next)
            if (found++ < capacity) sleepers[found - 1] = info_of_sleeper(device, sleeper);
        vr_device_unlock(device);
    }
    *count = found;
    return VRAM_OK;
}

// Copies [address, address + size) from the runs of one sleeper. Returns whether they contain all of it.
static bool copy_kept(const struct vr_kept_bytes *kept, uint64_t address, uint64_t size, unsigned char *to) {
    const uint64_t end = address + size;
    uint64_t at = address;
    size_t first;
    VR_LOWER_BOUND(first, i, 0, kept->run_count, kept->runs[i].address + kept->runs[i].size <= address);
    for (size_t i = first; i < kept->run_count && at < end && kept->runs[i].address <= at; i++) {
        const struct vr_kept_run *run = &kept->runs[i];
        const uint64_t high = run->address + run->size < end ? run->address + run->size : end;
        memcpy(to + (at - address), (const unsigned char *)(uintptr_t)run->host + (at - run->address), (size_t)(high - at));
        at = high;
    }
    return at == end;
}

enum vram_status vram_sleep_read(struct vram_allocator *allocator, uint64_t address, uint64_t size_bytes, void *to) {
    VR_REQUIRE(allocator && (to || size_bytes == 0));
    bool found = false;
    if (size_bytes > UINT64_MAX - address) return VRAM_INVALID_POINTER;
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES && !found; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device == NULL) continue;
        vr_device_lock(device);
        for (const struct vr_sleeper *sleeper = device->vacant; sleeper != NULL && !found; sleeper = sleeper->next)
            found = copy_kept(&sleeper->kept, address, size_bytes, to);
        vr_device_unlock(device);
    }
    return found ? VRAM_OK : VRAM_INVALID_POINTER;
}
