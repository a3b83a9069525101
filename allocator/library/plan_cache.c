// A cache of plans by key, which evicts the least recently used first (allocator.md §workspaces-and-plans).
#include "library/plan_cache.h"

#include "base/hash.h"
#include "os/os.h"
#include "vram/workspace.h"

// A plan. While it is `busy`, one thread uses or builds it. A plan that is not `held` is in no list and is destroyed when that thread is
// done.
struct cached_plan {
    struct cached_plan *newer; // by last use
    struct cached_plan *older; // also links plans that will be destroyed
    struct cached_plan *next;  // with the same hash
    uint64_t hash;
    uint64_t handle;
    uint64_t work_bytes;
    bool busy;
    bool held;
    size_t key_bytes;
    unsigned char key[];
};

// One device's plans: by hash, and in a list by last use. Guarded by mutex; the user's functions are called without it.
struct shelf {
    struct vr_mutex mutex;
    struct vr_signal plan_released; // raised whenever a plan stops being busy
    struct vr_map by_hash;          // the first plan of each hash
    uint64_t secret;                // of the hashes
    struct cached_plan *newest;
    struct cached_plan *oldest;
    struct vram_plan_cache_stats stats;
};

struct vram_plan_cache {
    struct vram_allocator *allocator;
    struct vram_plan_functions functions;
    struct shelf shelves[VRAM_MAX_DEVICES];
};

// --- the table ----------------------------------------------------------------------------------------------------------------------

static struct cached_plan *first_of(const struct shelf *shelf, uint64_t hash) {
    return (struct cached_plan *)(uintptr_t)vr_map_get(&shelf->by_hash, hash);
}

static struct cached_plan *find_plan(const struct shelf *shelf, uint64_t hash, const void *key, size_t key_bytes) {
    struct cached_plan *plan = first_of(shelf, hash);
    while (plan != NULL && (plan->key_bytes != key_bytes || memcmp(plan->key, key, key_bytes) != 0)) plan = plan->next;
    return plan;
}

static void link_newest(struct shelf *shelf, struct cached_plan *plan) {
    plan->newer = NULL;
    plan->older = shelf->newest;
    *(shelf->newest == NULL ? &shelf->oldest : &shelf->newest->newer) = plan;
    shelf->newest = plan;
}

static void unlink_plan(struct shelf *shelf, struct cached_plan *plan) {
    *(plan->newer == NULL ? &shelf->newest : &plan->newer->older) = plan->older;
    *(plan->older == NULL ? &shelf->oldest : &plan->older->newer) = plan->newer;
}

static enum vram_status hold_plan(struct shelf *shelf, struct cached_plan *plan) {
    plan->next = first_of(shelf, plan->hash);
    VR_TRY(vr_map_set(&shelf->by_hash, plan->hash, (uintptr_t)plan));
    link_newest(shelf, plan);
    plan->held = true;
    shelf->stats.size++;
    return VRAM_OK;
}

static void unlink_from_hash(struct shelf *shelf, const struct cached_plan *plan) {
    struct cached_plan *first = first_of(shelf, plan->hash);
    if (first != plan) {
        while (first->next != plan) first = first->next;
        first->next = plan->next;
    } else if (plan->next == NULL) {
        (void)vr_map_take(&shelf->by_hash, plan->hash);
    } else {
        vr_map_slot_of(&shelf->by_hash, plan->hash)->value = (uintptr_t)plan->next;
    }
}

// Evicts a plan. It joins the list `gone` unless a thread uses it; then the thread's release destroys it.
static void give_up(struct shelf *shelf, struct cached_plan *plan, struct cached_plan **gone) {
    unlink_from_hash(shelf, plan);
    unlink_plan(shelf, plan);
    plan->held = false;
    shelf->stats.size--;
    if (plan->busy) return;
    plan->older = *gone;
    *gone = plan;
}

static struct cached_plan *shrink_shelf(struct shelf *shelf, int64_t size) {
    struct cached_plan *gone = NULL;
    while (shelf->stats.size > size) {
        give_up(shelf, shelf->oldest, &gone);
        shelf->stats.evictions++;
    }
    return gone;
}

static void end_plans(const struct vram_plan_cache *cache, uint32_t device, struct cached_plan *gone) {
    while (gone != NULL) {
        struct cached_plan *next = gone->older;
        cache->functions.destroy(device, gone->handle, cache->functions.user);
        free(gone);
        gone = next;
    }
}

// --- lifetime -----------------------------------------------------------------------------------------------------------------------

enum vram_status vram_plan_cache_create(struct vram_allocator *allocator, const struct vram_plan_functions *functions,
                                        struct vram_plan_cache **cache) {
    VR_REQUIRE(allocator && functions && cache);
    if (functions->build == NULL || functions->destroy == NULL) return VRAM_INVALID_ARGUMENT;
    struct vram_plan_cache *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->allocator = allocator;
    made->functions = *functions;
    for (int i = 0; i < VRAM_MAX_DEVICES; i++) {
        vr_mutex_init(&made->shelves[i].mutex);
        made->shelves[i].secret = vr_hash_secret(&made->shelves[i]);
        vr_signal_init(&made->shelves[i].plan_released);
        made->shelves[i].stats.max_size = VRAM_PLAN_CACHE_DEFAULT;
    }
    *cache = made;
    return VRAM_OK;
}

static void clear_plans(struct vram_plan_cache *cache, uint32_t device) {
    struct shelf *shelf = &cache->shelves[device];
    struct cached_plan *gone = NULL;
    vr_mutex_lock(&shelf->mutex);
    while (shelf->oldest != NULL) give_up(shelf, shelf->oldest, &gone);
    vr_mutex_unlock(&shelf->mutex);
    end_plans(cache, device, gone);
}

void vram_plan_cache_destroy(struct vram_plan_cache *cache) {
    if (cache == NULL) return;
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        clear_plans(cache, i);
        vr_map_release(&cache->shelves[i].by_hash);
        vr_signal_destroy(&cache->shelves[i].plan_released);
        vr_mutex_destroy(&cache->shelves[i].mutex);
    }
    free(cache);
}

enum vram_status vram_plan_cache_clear(struct vram_plan_cache *cache, uint32_t device) {
    VR_REQUIRE(cache);
    if (device >= VRAM_MAX_DEVICES) return VRAM_INVALID_ARGUMENT;
    clear_plans(cache, device);
    return VRAM_OK;
}

enum vram_status vram_plan_cache_set_max(struct vram_plan_cache *cache, uint32_t device, int64_t max_plans) {
    VR_REQUIRE(cache);
    if (device >= VRAM_MAX_DEVICES || max_plans < 0) return VRAM_INVALID_ARGUMENT;
    struct shelf *shelf = &cache->shelves[device];
    vr_mutex_lock(&shelf->mutex);
    shelf->stats.max_size = max_plans;
    struct cached_plan *gone = shrink_shelf(shelf, max_plans);
    vr_mutex_unlock(&shelf->mutex);
    end_plans(cache, device, gone);
    return VRAM_OK;
}

enum vram_status vram_get_plan_cache_stats(struct vram_plan_cache *cache, uint32_t device, struct vram_plan_cache_stats *stats) {
    VR_REQUIRE(cache && stats);
    if (device >= VRAM_MAX_DEVICES) return VRAM_INVALID_ARGUMENT;
    struct shelf *shelf = &cache->shelves[device];
    vr_mutex_lock(&shelf->mutex);
    *stats = shelf->stats;
    vr_mutex_unlock(&shelf->mutex);
    return VRAM_OK;
}

// --- checking -----------------------------------------------------------------------------------------------------------------------

static bool check_shelf(const struct shelf *shelf) {
    int64_t listed = 0, hashed = 0;
    const struct cached_plan *newer = NULL;
    for (const struct cached_plan *plan = shelf->newest; plan != NULL; newer = plan, plan = plan->older, listed++) {
        if (!plan->held || plan->newer != newer || find_plan(shelf, plan->hash, plan->key, plan->key_bytes) != plan) return false;
    }
    struct vr_map_slot entry;
    for (size_t at = 0; vr_map_next(&shelf->by_hash, &at, &entry);) {
        for (const struct cached_plan *plan = first_of(shelf, entry.key); plan != NULL; plan = plan->next, hashed++)
            if (plan->hash != entry.key) return false;
    }
    return shelf->oldest == newer && listed == shelf->stats.size && hashed == listed && listed <= shelf->stats.max_size &&
           vr_map_check(&shelf->by_hash);
}

bool vr_plan_cache_check(struct vram_plan_cache *cache) {
    bool right = true;
    for (int i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct shelf *shelf = &cache->shelves[i];
        vr_mutex_lock(&shelf->mutex);
        right = right && check_shelf(shelf);
        vr_mutex_unlock(&shelf->mutex);
    }
    return right;
}

// --- use ----------------------------------------------------------------------------------------------------------------------------

// Makes a busy plan that is not built yet; it is held if the cache has room for any.
static enum vram_status start_plan(struct shelf *shelf, uint64_t hash, const void *key, size_t key_bytes, struct cached_plan **plan,
                                   struct cached_plan **gone) {
    if (key_bytes > SIZE_MAX - sizeof **plan) return VRAM_NO_HOST_MEMORY;
    struct cached_plan *made = calloc(1, sizeof *made + key_bytes);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->hash = hash;
    made->busy = true;
    made->key_bytes = key_bytes;
    memcpy(made->key, key, key_bytes);
    shelf->stats.misses++;
    if (shelf->stats.max_size != 0) {
        *gone = shrink_shelf(shelf, shelf->stats.max_size - 1);
        const enum vram_status status = hold_plan(shelf, made);
        if (status != VRAM_OK) {
            free(made);
            return status;
        }
    }
    *plan = made;
    return VRAM_OK;
}

// Gets the key's plan, now busy; *fresh: it must be built. Waits while another thread uses it.
static enum vram_status take_locked(struct shelf *shelf, const void *key, size_t key_bytes, struct cached_plan **plan, bool *fresh,
                                    struct cached_plan **gone) {
    const uint64_t hash = vr_hash_bytes(shelf->secret, key, key_bytes);
    struct cached_plan *found = find_plan(shelf, hash, key, key_bytes);
    while (found != NULL && found->busy) {
        vr_signal_wait(&shelf->plan_released, &shelf->mutex, UINT64_MAX);
        found = find_plan(shelf, hash, key, key_bytes);
    }
    *fresh = found == NULL;
    if (found == NULL) return start_plan(shelf, hash, key, key_bytes, plan, gone);
    found->busy = true;
    unlink_plan(shelf, found);
    link_newest(shelf, found);
    shelf->stats.hits++;
    *plan = found;
    return VRAM_OK;
}

// Ends a thread's use of the plan. `built`: it must be destroyed if it is not held.
static void give_back(struct vram_plan_cache *cache, uint32_t device, struct cached_plan *plan, bool built) {
    struct shelf *shelf = &cache->shelves[device];
    struct cached_plan *gone = NULL;
    vr_mutex_lock(&shelf->mutex);
    assert(plan->busy); // a plan is returned once
    if (!built && plan->held) give_up(shelf, plan, &gone);
    plan->busy = false;
    const bool over = !plan->held;
    vr_signal_raise(&shelf->plan_released);
    vr_mutex_unlock(&shelf->mutex);
    if (!over) return;
    if (built) cache->functions.destroy(device, plan->handle, cache->functions.user);
    free(plan);
}

enum vram_status vram_plan_acquire(struct vram_plan_cache *cache, uint32_t device, uint64_t stream, const void *key, size_t key_bytes,
                                   struct vram_plan *plan) {
    VR_REQUIRE(cache && plan);
    if (device >= VRAM_MAX_DEVICES || key == NULL || key_bytes == 0) return VRAM_INVALID_ARGUMENT;
    struct shelf *shelf = &cache->shelves[device];
    struct cached_plan *taken = NULL, *gone = NULL;
    bool fresh = false;
    vr_mutex_lock(&shelf->mutex);
    enum vram_status status = take_locked(shelf, key, key_bytes, &taken, &fresh, &gone);
    vr_mutex_unlock(&shelf->mutex);
    end_plans(cache, device, gone);
    VR_TRY(status);
    if (fresh) status = cache->functions.build(device, key, key_bytes, &taken->handle, &taken->work_bytes, cache->functions.user);
    const bool built = status == VRAM_OK;
    uint64_t address = 0;
    if (built && taken->work_bytes != 0) status = vram_malloc(cache->allocator, device, taken->work_bytes, stream, &address);
    if (status != VRAM_OK) {
        give_back(cache, device, taken, built);
        return status;
    }
    *plan = (struct vram_plan){.handle = taken->handle,
                               .work_address = address,
                               .work_bytes = taken->work_bytes,
                               .stream = stream,
                               .device = device,
                               .entry = taken};
    return VRAM_OK;
}

enum vram_status vram_plan_release(struct vram_plan_cache *cache, const struct vram_plan *plan) {
    VR_REQUIRE(cache && plan);
    const enum vram_status status = vram_free(cache->allocator, plan->work_address);
    give_back(cache, plan->device, plan->entry, true);
    return status;
}
