// Plans by key, least recently used first to go (allocator.md §workspaces-and-plans).
#include "base/base.h"
#include "os/os.h"
#include "vram/workspace.h"

// A plan. While it is `busy` one thread has it, or builds it; a plan that is not `held` is in no list and goes when that thread is done.
struct plan {
    struct plan *newer; // by last use
    struct plan *older; // also links plans that are to be destroyed
    struct plan *next;  // of the same bucket
    uint64_t hash;
    uint64_t handle;
    uint64_t work_bytes;
    bool busy;
    bool held;
    size_t key_bytes;
    unsigned char key[];
};

// One device's plans: a table with chains, and a list by last use. Guarded by mutex; the functions of the user are called without it.
struct shelf {
    struct vr_mutex mutex;
    struct vr_signal given_back; // raised whenever a plan stops being busy
    struct plan **buckets;
    size_t bucket_count; // 0 or a power of two
    struct plan *newest;
    struct plan *oldest;
    struct vram_plan_cache_stats stats;
};

struct vram_plan_cache {
    struct vram_allocator *allocator;
    struct vram_plan_functions functions;
    struct shelf shelves[VRAM_MAX_DEVICES];
};

// --- the table ----------------------------------------------------------------------------------------------------------------------

// FNV-1a, 64 bits.
static uint64_t hash_of(const unsigned char *key, size_t key_bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < key_bytes; i++) hash = (hash ^ key[i]) * 0x100000001b3u;
    return hash;
}

static struct plan **bucket_of(const struct shelf *shelf, uint64_t hash) { return &shelf->buckets[hash & (shelf->bucket_count - 1)]; }

static struct plan *find(const struct shelf *shelf, uint64_t hash, const void *key, size_t key_bytes) {
    if (shelf->bucket_count == 0) return NULL;
    struct plan *plan = *bucket_of(shelf, hash);
    while (plan != NULL && (plan->hash != hash || plan->key_bytes != key_bytes || memcmp(plan->key, key, key_bytes) != 0))
        plan = plan->next;
    return plan;
}

static enum vram_status make_room(struct shelf *shelf) {
    if ((size_t)shelf->stats.size < shelf->bucket_count) return VRAM_OK;
    const size_t count = shelf->bucket_count == 0 ? 16 : shelf->bucket_count * 2;
    struct plan **buckets = calloc(count, sizeof *buckets);
    if (buckets == NULL) return VRAM_NO_HOST_MEMORY;
    for (struct plan *plan = shelf->oldest; plan != NULL; plan = plan->newer) {
        struct plan **bucket = &buckets[plan->hash & (count - 1)];
        plan->next = *bucket;
        *bucket = plan;
    }
    free(shelf->buckets);
    shelf->buckets = buckets;
    shelf->bucket_count = count;
    return VRAM_OK;
}

static void link_newest(struct shelf *shelf, struct plan *plan) {
    plan->newer = NULL;
    plan->older = shelf->newest;
    *(shelf->newest == NULL ? &shelf->oldest : &shelf->newest->newer) = plan;
    shelf->newest = plan;
}

static void unlink_plan(struct shelf *shelf, struct plan *plan) {
    *(plan->newer == NULL ? &shelf->newest : &plan->newer->older) = plan->older;
    *(plan->older == NULL ? &shelf->oldest : &plan->older->newer) = plan->newer;
}

static enum vram_status hold(struct shelf *shelf, struct plan *plan) {
    VR_TRY(make_room(shelf));
    struct plan **bucket = bucket_of(shelf, plan->hash);
    plan->next = *bucket;
    *bucket = plan;
    link_newest(shelf, plan);
    plan->held = true;
    shelf->stats.size++;
    return VRAM_OK;
}

// Takes a plan out. It joins the list `gone` unless a thread has it: then that thread's release ends it.
static void give_up(struct shelf *shelf, struct plan *plan, struct plan **gone) {
    struct plan **link = bucket_of(shelf, plan->hash);
    while (*link != plan) link = &(*link)->next;
    *link = plan->next;
    unlink_plan(shelf, plan);
    plan->held = false;
    shelf->stats.size--;
    if (plan->busy) return;
    plan->older = *gone;
    *gone = plan;
}

static struct plan *shrink(struct shelf *shelf, int64_t size) {
    struct plan *gone = NULL;
    while (shelf->stats.size > size) {
        give_up(shelf, shelf->oldest, &gone);
        shelf->stats.evictions++;
    }
    return gone;
}

static void end_plans(const struct vram_plan_cache *cache, uint32_t device, struct plan *gone) {
    while (gone != NULL) {
        struct plan *next = gone->older;
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
        vr_signal_init(&made->shelves[i].given_back);
        made->shelves[i].stats.max_size = VRAM_PLAN_CACHE_DEFAULT;
    }
    *cache = made;
    return VRAM_OK;
}

static void clear(struct vram_plan_cache *cache, uint32_t device) {
    struct shelf *shelf = &cache->shelves[device];
    struct plan *gone = NULL;
    vr_mutex_lock(&shelf->mutex);
    while (shelf->oldest != NULL) give_up(shelf, shelf->oldest, &gone);
    vr_mutex_unlock(&shelf->mutex);
    end_plans(cache, device, gone);
}

void vram_plan_cache_destroy(struct vram_plan_cache *cache) {
    if (cache == NULL) return;
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        clear(cache, i);
        free(cache->shelves[i].buckets);
        vr_signal_destroy(&cache->shelves[i].given_back);
        vr_mutex_destroy(&cache->shelves[i].mutex);
    }
    free(cache);
}

enum vram_status vram_plan_cache_clear(struct vram_plan_cache *cache, uint32_t device) {
    VR_REQUIRE(cache);
    if (device >= VRAM_MAX_DEVICES) return VRAM_INVALID_ARGUMENT;
    clear(cache, device);
    return VRAM_OK;
}

enum vram_status vram_plan_cache_set_max(struct vram_plan_cache *cache, uint32_t device, int64_t max_plans) {
    VR_REQUIRE(cache);
    if (device >= VRAM_MAX_DEVICES || max_plans < 0) return VRAM_INVALID_ARGUMENT;
    struct shelf *shelf = &cache->shelves[device];
    vr_mutex_lock(&shelf->mutex);
    shelf->stats.max_size = max_plans;
    struct plan *gone = shrink(shelf, max_plans);
    vr_mutex_unlock(&shelf->mutex);
    end_plans(cache, device, gone);
    return VRAM_OK;
}

enum vram_status vram_plan_cache_stats(struct vram_plan_cache *cache, uint32_t device, struct vram_plan_cache_stats *stats) {
    VR_REQUIRE(cache && stats);
    if (device >= VRAM_MAX_DEVICES) return VRAM_INVALID_ARGUMENT;
    struct shelf *shelf = &cache->shelves[device];
    vr_mutex_lock(&shelf->mutex);
    *stats = shelf->stats;
    vr_mutex_unlock(&shelf->mutex);
    return VRAM_OK;
}

// --- use ----------------------------------------------------------------------------------------------------------------------------

// A busy plan that nobody has built yet; held where there is room for one.
static enum vram_status start_plan(struct shelf *shelf, uint64_t hash, const void *key, size_t key_bytes, struct plan **plan,
                                   struct plan **gone) {
    if (key_bytes > SIZE_MAX - sizeof **plan) return VRAM_NO_HOST_MEMORY;
    struct plan *made = calloc(1, sizeof *made + key_bytes);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->hash = hash;
    made->busy = true;
    made->key_bytes = key_bytes;
    memcpy(made->key, key, key_bytes);
    shelf->stats.misses++;
    if (shelf->stats.max_size != 0) {
        *gone = shrink(shelf, shelf->stats.max_size - 1);
        const enum vram_status status = hold(shelf, made);
        if (status != VRAM_OK) {
            free(made);
            return status;
        }
    }
    *plan = made;
    return VRAM_OK;
}

// The plan of the key, busy now; *fresh: it must be built. Waits while another thread has it.
static enum vram_status take_locked(struct shelf *shelf, const void *key, size_t key_bytes, struct plan **plan, bool *fresh,
                                    struct plan **gone) {
    const uint64_t hash = hash_of(key, key_bytes);
    struct plan *found = find(shelf, hash, key, key_bytes);
    while (found != NULL && found->busy) {
        vr_signal_wait(&shelf->given_back, &shelf->mutex, UINT64_MAX);
        found = find(shelf, hash, key, key_bytes);
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

// Nobody has the plan any more. `built`: there is something to destroy when it is not held.
static void give_back(struct vram_plan_cache *cache, uint32_t device, struct plan *plan, bool built) {
    struct shelf *shelf = &cache->shelves[device];
    struct plan *gone = NULL;
    vr_mutex_lock(&shelf->mutex);
    if (!built && plan->held) give_up(shelf, plan, &gone);
    plan->busy = false;
    const bool over = !plan->held;
    vr_signal_raise(&shelf->given_back);
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
    struct plan *taken = NULL, *gone = NULL;
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
