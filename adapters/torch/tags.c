// Suspends memory by tag: a pool per device and tag, to which a thread's requests are routed within a region.
#include "vram_torch.h"
#include "inside.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vram/sleep.h"

// PyTorch numbers its pools from 1, which must not collide with ours.
#define FIRST_ID ((uint64_t)1 << 24)

// Created at the first region with its tag, and kept until the process ends.
struct tagged {
    struct tagged *next;
    int device;
    struct vram_pool *pool;
    char tag[VRAM_TAG_BYTES]; // "": memory that is never suspended
};

// Guards the list. Lock order: before the allocator's locks.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tagged *all;
static uint64_t made_pools;
static const struct vram_route by_thread = {.kind = VRAM_ROUTE_THREAD};

static struct tagged *find_tagged(int device, const char *tag) {
    struct tagged *tagged = all;
    while (tagged != NULL && (tagged->device != device || strcmp(tagged->tag, tag) != 0)) tagged = tagged->next;
    return tagged;
}

static enum vram_status make_tagged(struct vram_allocator *allocator, int device, const char *tag, struct tagged **tagged) {
    const struct vram_pool_options options = {.tag = tag, .id = {0, FIRST_ID + made_pools}};
    if (strlen(tag) >= VRAM_TAG_BYTES) return VRAM_INVALID_ARGUMENT;
    struct tagged *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    const enum vram_status status = vram_pool_create(allocator, (uint32_t)device, &options, &made->pool);
    if (status != VRAM_OK) {
        free(made);
        return status;
    }
    made_pools++;
    made->device = device;
    memcpy(made->tag, tag, strlen(tag) + 1);
    made->next = all;
    all = made;
    *tagged = made;
    return VRAM_OK;
}

int vram_torch_tag_begin(int device, const char *tag) {
    struct vram_allocator *allocator = NULL;
    const int first = vr_torch_first_use(&allocator);
    if (first != VRAM_OK) return first;
    pthread_mutex_lock(&lock);
    struct tagged *tagged = find_tagged(device, tag);
    enum vram_status status = tagged == NULL ? make_tagged(allocator, device, tag, &tagged) : VRAM_OK;
    if (status == VRAM_OK) status = vram_pool_begin(tagged->pool, &by_thread);
    pthread_mutex_unlock(&lock);
    return vr_torch_answer(status, "starting the use of a tag");
}

int vram_torch_tag_end(int device, const char *tag) {
    pthread_mutex_lock(&lock);
    const struct tagged *tagged = find_tagged(device, tag);
    const enum vram_status status = tagged == NULL ? VRAM_INVALID_ARGUMENT : vram_pool_end(tagged->pool, &by_thread);
    // Release the memory freed within the region now, not at the next one. What the driver refuses to free is retried later.
    if (status == VRAM_OK) (void)!vram_pool_empty_cache(tagged->pool);
    pthread_mutex_unlock(&lock);
    return vr_torch_answer(status, "ending the use of a tag");
}

enum vram_status vr_torch_trim_tags(void) {
    enum vram_status status = VRAM_OK;
    pthread_mutex_lock(&lock);
    for (const struct tagged *tagged = all; tagged != NULL; tagged = tagged->next) {
        const enum vram_status trimmed = vram_pool_empty_cache(tagged->pool);
        if (status == VRAM_OK) status = trimmed;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

int vram_torch_tag_pool(int device, struct vram_torch_pool_id id, const char *tag) {
    struct vram_allocator *allocator = NULL;
    struct vram_pool *pool = NULL;
    const int first = vr_torch_first_use(&allocator);
    if (first != VRAM_OK) return first;
    enum vram_status status = vram_pool_find(allocator, (uint32_t)device, (struct vram_pool_id){id.first, id.second}, &pool);
    if (status == VRAM_OK) {
        status = vram_pool_set_tag(pool, tag);
        vram_pool_release(pool);
    }
    return vr_torch_answer(status, "tagging a pool");
}

// The caller frees *choices.
static enum vram_status make_choices(const char *const *tags, const int *levels, size_t count, int wakes,
                                     struct vram_sleep_choice **choices) {
    struct vram_sleep_choice *made = calloc(count + 1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    for (size_t i = 0; i < count; i++) {
        made[i].tag = tags[i];
        made[i].wakes = wakes != 0;
        if (levels != NULL) made[i].level = (enum vram_sleep_level)levels[i];
    }
    if (count == 0 && levels != NULL) made[0].level = (enum vram_sleep_level)levels[0];
    made[count].wakes = wakes != 0;
    *choices = made;
    return VRAM_OK;
}

// count 0 means everything.
static int sleep_or_wake(int device, const char *const *tags, const int *levels, size_t count, int wakes, uint64_t *bytes, bool asleep) {
    struct vram_allocator *allocator = NULL;
    struct vram_sleep_choice *choices = NULL;
    struct vram_sleep_result result;
    struct vram_error error = {0};
    const int first = vr_torch_first_use(&allocator);
    if (first != VRAM_OK) return first;
    enum vram_status status = make_choices(tags, levels, count, wakes, &choices);
    if (status != VRAM_OK) return vr_torch_answer(status, "sleep");
    const size_t most = count == 0 ? 1 : count;
    status = asleep ? vram_sleep(allocator, (uint32_t)device, choices, most, &result, &error)
                    : vram_wake(allocator, (uint32_t)device, choices, most, &result, &error);
    free(choices);
    if (status == VRAM_OK && bytes != NULL) *bytes = result.bytes;
    return vr_torch_answer_error(status, &error);
}

int vram_torch_sleep(int device, const char *const *tags, const int *levels, size_t count, int wakes, uint64_t *bytes) {
    return sleep_or_wake(device, tags, levels, count, wakes, bytes, true);
}

int vram_torch_wake(int device, const char *const *tags, size_t count, uint64_t *bytes) {
    return sleep_or_wake(device, tags, NULL, count, 0, bytes, false);
}

int vram_torch_wake_pool(int device, struct vram_torch_pool_id id, uint64_t *bytes) {
    struct vram_allocator *allocator = NULL;
    struct vram_sleep_choice choice = {.default_pools = id.first == 0 && id.second == 0};
    struct vram_sleep_result result;
    struct vram_error error = {0};
    const int first = vr_torch_first_use(&allocator);
    if (first != VRAM_OK) return first;
    enum vram_status status = VRAM_OK;
    if (!choice.default_pools)
        status = vram_pool_find(allocator, (uint32_t)device, (struct vram_pool_id){id.first, id.second}, &choice.pool);
    if (status != VRAM_OK) return vr_torch_answer(status, "finding a pool to wake");
    status = vram_wake(allocator, (uint32_t)device, &choice, 1, &result, &error);
    if (choice.pool != NULL) vram_pool_release(choice.pool);
    if (status == VRAM_OK && bytes != NULL) *bytes = result.bytes;
    return vr_torch_answer_error(status, &error);
}

size_t vram_torch_sleepers(int device, char *text, size_t capacity) {
    struct vram_allocator *allocator = NULL;
    size_t count = 0, length = 0;
    if (capacity != 0) text[0] = '\0';
    if (vr_torch_first_use(&allocator) != VRAM_OK || vram_sleepers(allocator, (uint32_t)device, NULL, 0, &count) != VRAM_OK) return 0;
    struct vram_sleeper *sleepers = calloc(count + 1, sizeof *sleepers);
    const size_t room = count;
    if (sleepers == NULL || vram_sleepers(allocator, (uint32_t)device, sleepers, room, &count) != VRAM_OK) count = 0;
    for (size_t i = 0; i < count && i < room; i++) {
        const struct vram_sleeper *from = &sleepers[i];
        const size_t left = length < capacity ? capacity - length : 0;
        length += (size_t)snprintf(left == 0 ? NULL : text + length, left, "%llu\t%llu\t%d\t%d\t%llu\t%llu\t%llu\t%s\n",
                                   (unsigned long long)from->pool.first, (unsigned long long)from->pool.second, (int)from->level,
                                   (int)from->wakes, (unsigned long long)from->live_bytes, (unsigned long long)from->away_bytes,
                                   (unsigned long long)from->host_bytes, from->tag);
    }
    free(sleepers);
    return length;
}

int vram_torch_tag_bytes(int device, const char *tag, uint64_t *bytes) {
    struct vram_pool_stats stats = {0};
    pthread_mutex_lock(&lock);
    const struct tagged *tagged = find_tagged(device, tag);
    const enum vram_status status = tagged == NULL ? VRAM_INVALID_ARGUMENT : vram_get_pool_stats(tagged->pool, &stats);
    pthread_mutex_unlock(&lock);
    if (status == VRAM_OK) *bytes = (uint64_t)stats.reserved_bytes[VRAM_STAT_ALL].current;
    return vr_torch_answer(status, "reading the memory of a tag");
}

int vram_torch_kept(uint64_t address, uint64_t size_bytes, void *to) {
    struct vram_allocator *allocator = NULL;
    const int first = vr_torch_first_use(&allocator);
    return first != VRAM_OK ? first : vr_torch_answer(vram_sleep_read(allocator, address, size_bytes, to), "reading suspended memory");
}
