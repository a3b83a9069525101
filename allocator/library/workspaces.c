// Workspaces of cuBLAS and cuBLASLt, and their sizes (allocator.md §workspaces-and-plans).

#include "base/base.h"
#include "core/capture/captures.h"
#include "core/capture/routes.h"
#include "core/device.h"
#include "os/os.h"
#include "vram/workspace.h"

enum { LARGEST_NUMBER = INT32_MAX }; // PyTorch reads an int

// Reads one or more digits at *text and moves past them. Returns false, without moving, for no digits or too large a number.
static bool read_number(const char **text, uint64_t *number) {
    const char *at = *text;
    uint64_t value = 0;
    if (*at < '0' || *at > '9') return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint64_t)(*at - '0');
        if (value > LARGEST_NUMBER) return false;
    }
    *text = at;
    *number = value;
    return true;
}

// Reads ":KiB:count" at `text`. Moves past it on success.
static bool read_piece(const char **text, uint64_t *size_bytes) {
    const char *at = *text;
    uint64_t kib = 0, count = 0;
    if (*at++ != ':' || !read_number(&at, &kib) || *at++ != ':' || !read_number(&at, &count)) return false;
    *text = at;
    return vr_mul_u64(kib * VR_KIB, count, size_bytes);
}

// Adds up all pieces; text between pieces is ignored. Returns false if there is no piece, or the sum overflows.
static bool read_config(const char *text, uint64_t *size_bytes) {
    uint64_t sum = 0, piece = 0;
    bool any = false;
    while (*text != '\0') {
        if (!read_piece(&text, &piece)) {
            text++;
            continue;
        }
        any = true;
        if (!vr_add_u64(sum, piece, &sum)) return false;
    }
    if (any) *size_bytes = sum;
    return any;
}

// Reads a number like std::stoi(): blanks before it, anything after it. No sign except '+', because a size cannot be negative.
static bool read_kib(const char *text, uint64_t *size_bytes) {
    uint64_t kib = 0;
    text += strspn(text, " \t\n\v\f\r");
    if (*text == '+') text++;
    if (!read_number(&text, &kib)) return false;
    *size_bytes = kib * VR_KIB;
    return true;
}

static bool text_says(const char *text, const char *word) { return text != NULL && strcmp(text, word) == 0; }

void vram_get_workspace_sizes(const struct vram_workspace_env *env, int major, int minor, struct vram_workspace_sizes *sizes) {
    if (sizes == NULL) return;
    const struct vram_workspace_env process = {
        .cublas = vr_os_getenv("CUBLAS_WORKSPACE_CONFIG"),
        .cublaslt = vr_os_getenv("CUBLASLT_WORKSPACE_SIZE"),
        .unified = vr_os_getenv("TORCH_CUBLASLT_UNIFIED_WORKSPACE"),
    };
    if (env == NULL) env = &process;
    const bool hopper = major == 9 && minor == 0;
    struct vram_workspace_sizes found = {
        .cublas_bytes = hopper ? 32 * VR_MIB : 2 * 4 * VR_MIB + 8 * 16 * VR_KIB,
        .cublaslt_bytes = VR_MIB,
        .shared = text_says(env->unified, "1"),
    };
    if (env->cublas != NULL) found.cublas_unreadable = !read_config(env->cublas, &found.cublas_bytes);
    if (env->cublaslt != NULL) found.cublaslt_unreadable = !read_kib(env->cublaslt, &found.cublaslt_bytes);
    if (!text_says(env->unified, "0") && found.cublaslt_bytes > found.cublas_bytes) {
        found.cublaslt_bytes = found.cublas_bytes;
        found.cublaslt_cut = true;
    }
    *sizes = found;
}

// Workspaces by device, handle, stream and kind, and by the private pool of a capture.

// Identifies a workspace. pool is (0, 0) outside captures.
struct key {
    uint32_t device;
    enum vram_workspace_kind kind;
    uint64_t handle;
    uint64_t stream;
    struct vram_pool_id pool;
};

struct workspace_entry {
    struct key key;
    uint64_t address;
    uint64_t size_bytes;
};

// Invariant: keys are unique. The mutex is taken before any lock of the allocator, and never held during an allocation, whose callbacks may
// clear workspaces.
struct vram_workspaces {
    struct vram_allocator *allocator;
    struct vr_mutex mutex;
    struct workspace_entry *entries; // unordered
    size_t count;
    size_t entries_capacity;
};

enum vram_status vram_workspaces_create(struct vram_allocator *allocator, struct vram_workspaces **workspaces) {
    VR_REQUIRE(allocator && workspaces);
    struct vram_workspaces *made = calloc(1, sizeof *made);
    if (made == NULL) return VRAM_NO_HOST_MEMORY;
    made->allocator = allocator;
    vr_mutex_init(&made->mutex);
    *workspaces = made;
    return VRAM_OK;
}

// --- freeing ------------------------------------------------------------------------------------------------------------------------

typedef bool (*selector)(const struct vram_workspaces *workspaces, const struct workspace_entry *entry, const void *argument);

// Frees the selected entries. Returns the first status that is not OK.
static enum vram_status drop_locked(struct vram_workspaces *workspaces, selector selects, const void *argument) {
    enum vram_status first = VRAM_OK;
    for (size_t i = 0; i < workspaces->count;) {
        if (!selects(workspaces, &workspaces->entries[i], argument)) {
            i++;
            continue;
        }
        const enum vram_status status = vram_free(workspaces->allocator, workspaces->entries[i].address);
        if (first == VRAM_OK) first = status;
        workspaces->entries[i] = workspaces->entries[--workspaces->count];
    }
    return first;
}

static enum vram_status drop_entries(struct vram_workspaces *workspaces, selector selects, const void *argument) {
    vr_mutex_lock(&workspaces->mutex);
    const enum vram_status status = drop_locked(workspaces, selects, argument);
    vr_mutex_unlock(&workspaces->mutex);
    return status;
}

static bool every_entry(const struct vram_workspaces *workspaces, const struct workspace_entry *entry, const void *argument) {
    (void)workspaces, (void)entry, (void)argument;
    return true;
}

static bool of_handle(const struct vram_workspaces *workspaces, const struct workspace_entry *entry, const void *argument) {
    (void)workspaces;
    return entry->key.handle == *(const uint64_t *)argument;
}

static bool of_ended_capture(const struct vram_workspaces *workspaces, const struct workspace_entry *entry, const void *argument) {
    (void)argument;
    if (entry->key.pool.first == 0 && entry->key.pool.second == 0) return false;
    return !vr_pool_is_filled(vr_device_if_used(workspaces->allocator, entry->key.device), entry->key.pool);
}

void vram_workspaces_destroy(struct vram_workspaces *workspaces) {
    if (workspaces == NULL) return;
    (void)drop_entries(workspaces, every_entry, NULL); // blocks that cannot be freed stay until the allocator is destroyed
    vr_mutex_destroy(&workspaces->mutex);
    free(workspaces->entries);
    free(workspaces);
}

enum vram_status vram_workspaces_clear(struct vram_workspaces *workspaces) {
    VR_REQUIRE(workspaces);
    return drop_entries(workspaces, every_entry, NULL);
}

enum vram_status vram_workspaces_forget(struct vram_workspaces *workspaces, uint64_t handle) {
    VR_REQUIRE(workspaces);
    return drop_entries(workspaces, of_handle, &handle);
}

// --- getting ------------------------------------------------------------------------------------------------------------------------

static bool equal_keys(const struct key *a, const struct key *b) {
    return a->device == b->device && a->kind == b->kind && a->handle == b->handle && a->stream == b->stream &&
           a->pool.first == b->pool.first && a->pool.second == b->pool.second;
}

static struct workspace_entry *find_locked(struct vram_workspaces *workspaces, const struct key *key) {
    for (size_t i = 0; i < workspaces->count; i++) {
        if (equal_keys(&workspaces->entries[i].key, key)) return &workspaces->entries[i];
    }
    return NULL;
}

static bool find_entry(struct vram_workspaces *workspaces, const struct key *key, uint64_t size_bytes, struct workspace_entry *entry) {
    vr_mutex_lock(&workspaces->mutex);
    // A block that could not be freed stays with the allocator.
    (void)drop_locked(workspaces, of_ended_capture, NULL);
    const struct workspace_entry *found = find_locked(workspaces, key);
    const bool fits = found != NULL && found->size_bytes >= size_bytes;
    if (fits) *entry = *found;
    vr_mutex_unlock(&workspaces->mutex);
    return fits;
}

// Adds a new workspace, replacing one that is too small. If another thread was faster, takes its workspace instead.
static enum vram_status enter_locked(struct vram_workspaces *workspaces, struct workspace_entry *entry, uint64_t *unwanted) {
    struct workspace_entry *there = find_locked(workspaces, &entry->key);
    if (there != NULL && there->size_bytes >= entry->size_bytes) {
        *unwanted = entry->address;
        *entry = *there;
        return VRAM_OK;
    }
    if (there != NULL) {
        *unwanted = there->address;
        *there = *entry;
        return VRAM_OK;
    }
    const enum vram_status status = VR_GROW(workspaces, entries, workspaces->count + 1);
    if (status == VRAM_OK) {
        workspaces->entries[workspaces->count++] = *entry;
    } else {
        *unwanted = entry->address;
    }
    return status;
}

static enum vram_status make_entry(struct vram_workspaces *workspaces, struct workspace_entry *entry) {
    struct vram_allocator *allocator = workspaces->allocator;
    VR_TRY(vram_malloc(allocator, entry->key.device, entry->size_bytes, entry->key.stream, &entry->address));
    uint64_t unwanted = 0;
    vr_mutex_lock(&workspaces->mutex);
    const enum vram_status status = enter_locked(workspaces, entry, &unwanted);
    vr_mutex_unlock(&workspaces->mutex);
    const enum vram_status freed = vram_free(allocator, unwanted);
    return status != VRAM_OK ? status : freed;
}

// Gets the current sizes on a device.
static enum vram_status sizes_of(struct vr_device *device, struct vram_workspace_sizes *sizes) {
    struct vram_driver *driver = device->allocator->driver;
    int major = 0, minor = 0;
    const int ordinal = (int)device->ordinal;
    VR_TRY(vr_driver_status(vr_cu(driver, device_get_attribute, &major, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal)));
    VR_TRY(vr_driver_status(vr_cu(driver, device_get_attribute, &minor, VR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal)));
    vram_get_workspace_sizes(NULL, major, minor, sizes);
    return VRAM_OK;
}

enum vram_status vram_workspace_get(struct vram_workspaces *workspaces, uint32_t ordinal, uint64_t handle, uint64_t stream,
                                    enum vram_workspace_kind kind, struct vram_workspace *workspace) {
    VR_REQUIRE(workspaces && workspace);
    struct vr_device *device = NULL;
    struct vram_workspace_sizes sizes;
    VR_TRY(vr_device_get(workspaces->allocator, ordinal, &device));
    VR_TRY(sizes_of(device, &sizes));
    const bool own = kind == VRAM_WORKSPACE_CUBLASLT && !sizes.shared;
    const uint64_t wanted = kind == VRAM_WORKSPACE_CUBLAS ? sizes.cublas_bytes : sizes.cublaslt_bytes;
    struct workspace_entry entry = {
        .key = {.device = ordinal, .kind = own ? VRAM_WORKSPACE_CUBLASLT : VRAM_WORKSPACE_CUBLAS, .handle = handle, .stream = stream},
        .size_bytes = own ? sizes.cublaslt_bytes : sizes.cublas_bytes,
    };
    const bool captured = vr_capture_pool(device, stream, &entry.key.pool);
    if (wanted != 0 && !find_entry(workspaces, &entry.key, entry.size_bytes, &entry)) VR_TRY(make_entry(workspaces, &entry));
    *workspace = (struct vram_workspace){.address = wanted != 0 ? entry.address : 0, .size_bytes = wanted, .captured = captured};
    return VRAM_OK;
}

void vram_workspaces_count(struct vram_workspaces *workspaces, uint64_t *count, uint64_t *size_bytes) {
    if (workspaces == NULL) return;
    uint64_t bytes = 0;
    vr_mutex_lock(&workspaces->mutex);
    for (size_t i = 0; i < workspaces->count; i++) bytes += workspaces->entries[i].size_bytes;
    if (count != NULL) *count = workspaces->count;
    if (size_bytes != NULL) *size_bytes = bytes;
    vr_mutex_unlock(&workspaces->mutex);
}
