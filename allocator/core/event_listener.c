// Connects listeners: the history, a client's own listener (vram/events.h), or both. With both, the client's listener comes first and
// forwards each record to the history's, with the stacks that the history knows.
#include "core/event_listener.h"
#include "core/device.h"
#include "core/source/raw.h"
#include "core/source/source_ops.h"
#include "history/thread_text.h"

_Static_assert((int)VRAM_EVENT_ACTIONS == (int)VR_RECORD_COUNT && (int)VRAM_EVENT_ANNOTATE == (int)VR_RECORD_ANNOTATE &&
                   (int)VRAM_EVENT_OOM == (int)VR_RECORD_OOM,
               "an event for each record");
_Static_assert((int)VRAM_CONTEXT_ALL == (int)VR_LEVEL_ALL, "the levels are the core's");

// A client's functions. Kept until the allocator is destroyed, because another thread may be inside them.
struct vr_client {
    struct vram_event_listener functions;
    struct vr_client *next; // earlier clients
};

struct vr_client_listener {
    struct vr_listener listener;
    struct vram_allocator *allocator;
    _Atomic(struct vr_client *) client;          // NULL: no client listens
    _Atomic(const struct vr_listener *) history; // NULL: none
    _Atomic uint64_t history_devices;            // one bit per device ordinal
    struct vr_client *all;                       // guarded by the allocator's mutex
};

// --- records ----------------------------------------------------------------------------------------------------------------------------

static const struct vr_listener *history_of(const struct vr_client_listener *self, uint32_t device) {
    const bool wanted = (atomic_load_explicit(&self->history_devices, memory_order_relaxed) >> device & 1) != 0;
    return wanted ? atomic_load_explicit(&self->history, memory_order_acquire) : NULL;
}

// Forwards a record to the history, with the stack of the call, or else that of the block.
static void hand_on(struct vr_client_listener *self, const struct vr_listener *history, const struct vr_record *record) {
    struct vr_record copy = *record;
    copy.stack = vr_history_stack(record->stack);
    if (copy.stack == 0) copy.stack = vr_history_stack(record->kept);
    copy.kept = 0;
    if (!record->completed || history->pairs) {
        history->record(&copy, history->user);
        return;
    }
    struct vr_device *device = vr_device_if_used(self->allocator, record->device);
    copy.completed = false;
    history->record(&copy, history->user);
    copy.action = VR_RECORD_FREE_COMPLETED;
    copy.sequence = atomic_fetch_add_explicit(&device->listening.sequence, 1, memory_order_relaxed);
    history->record(&copy, history->user);
}

static void notify_client(const struct vram_event_listener *client, const struct vr_record *record) {
    void *context = vr_foreign_stack_context(record->stack, client);
    struct vr_text name = {0};
    if (record->action == VR_RECORD_ANNOTATE) vr_thread_text_append(record->words, &name);
    struct vram_event event = {
        .action = (enum vram_event_action)record->action,
        .device = record->device,
        .address = record->address,
        .size_bytes = record->size_bytes,
        .stream = record->stream,
        .pool = record->pool,
        .time_ns = vr_os_epoch_ns(),
        .context = context != NULL ? context : vr_foreign_stack_context(record->kept, client),
        .name = record->action == VR_RECORD_ANNOTATE ? vr_text_string(&name) : NULL,
    };
    client->event(&event, client->user);
    vr_text_release(&name);
    if (!record->completed) return;
    event.action = VRAM_EVENT_FREE_COMPLETED;
    client->event(&event, client->user);
}

static void append_to_listeners(const struct vr_record *record, void *user) {
    struct vr_client_listener *self = user;
    const struct vr_client *client = atomic_load_explicit(&self->client, memory_order_acquire);
    const struct vr_listener *history = history_of(self, record->device);
    if (history != NULL) hand_on(self, history, record);
    if (record->vacant && record->address == 0) return; // clients get a record for each range instead
    if (client != NULL && client->functions.event != NULL) notify_client(&client->functions, record);
}

// Gathers the stacks for the client and the history. The history skips one more frame: this function's.
static uint32_t gather_context(uint32_t skip, enum vr_level need, void *user) {
    struct vr_client_listener *self = user;
    const struct vr_client *client = atomic_load_explicit(&self->client, memory_order_acquire);
    const struct vr_listener *history = atomic_load_explicit(&self->history, memory_order_acquire);
    uint32_t stack = 0;
    if (history != NULL && atomic_load_explicit(&history->level, memory_order_relaxed) >= (uint32_t)need) {
        stack = history->gather(skip + 1, need, history->user);
    }
    if (client == NULL || client->functions.take_context == NULL || client->functions.level < (enum vram_context_level)need) return stack;
    void *context = client->functions.take_context(client->functions.user);
    uint32_t number = context == NULL ? stack : vr_foreign_stack_make(&client->functions, context, stack);
    // The client may have been removed meanwhile, after its contexts were released: release this one too.
    if (context != NULL && atomic_load_explicit(&self->client, memory_order_seq_cst) == NULL) number = vr_stack_end(number);
    VR_NO_TAIL_CALL();
    return number;
}

// Puts the client's listener before the history's (may be NULL) for these devices and returns it. Returns NULL if no client listens. Under
// the allocator's mutex.
static const struct vr_listener *client_before(struct vr_client_listener *self, const struct vr_listener *history, uint64_t devices) {
    if (self == NULL || atomic_load_explicit(&self->client, memory_order_relaxed) == NULL) return NULL;
    const struct vr_client *client = atomic_load_explicit(&self->client, memory_order_relaxed);
    uint32_t level = client->functions.take_context == NULL ? VR_LEVEL_NEVER : (uint32_t)client->functions.level;
    if (history != NULL) {
        const uint32_t wanted = atomic_load_explicit(&history->level, memory_order_relaxed);
        if (wanted > level) level = wanted;
    }
    atomic_store_explicit(&self->history_devices, devices, memory_order_relaxed);
    atomic_store_explicit(&self->history, history, memory_order_release);
    atomic_store_explicit(&self->listener.level, level, memory_order_relaxed);
    return &self->listener;
}

// --- choosing the listener --------------------------------------------------------------------------------------------------------------

void vr_device_listen(struct vr_device *device) {
    const struct vram_allocator *allocator = device->allocator;
    const bool wanted = (allocator->listened_devices >> device->ordinal & 1) != 0;
    const struct vr_listener *listener = client_before(allocator->client, allocator->listener, allocator->listened_devices);
    if (listener == NULL && wanted) listener = allocator->listener;
    (void)vr_source_settle(device); // events that follow say where the bytes are now
    atomic_store_explicit(&device->listening.listener, listener, memory_order_release);
    vr_device_gate(device, VR_GATE_LISTENER, listener != NULL);
}

void vr_allocator_listen_locked(struct vram_allocator *allocator) {
    for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
        struct vr_device *device = vr_device_if_used(allocator, i);
        if (device == NULL) continue;
        vr_device_lock(device);
        vr_device_listen(device);
        vr_device_unlock(device);
    }
}

void vr_allocator_set_listener(struct vram_allocator *allocator, const struct vr_listener *listener, uint64_t devices) {
    vr_mutex_lock(&allocator->mutex);
    allocator->listener = listener;
    allocator->listened_devices = devices;
    vr_allocator_listen_locked(allocator);
    vr_mutex_unlock(&allocator->mutex);
}

void vr_allocator_set_recorder(struct vram_allocator *allocator, vr_recorder recorder, void *user) {
    allocator->recorder.record = recorder;
    allocator->recorder.user = user;
    allocator->recorder.numbered = true;
    vr_allocator_set_listener(allocator, recorder == NULL ? NULL : &allocator->recorder, UINT64_MAX);
}

// --- adding and removing a client -------------------------------------------------------------------------------------------------------

// Replaces the clients' contexts of blocks and segments with the history's stacks. Under all locks of the device.
static void forget_in_device(struct vr_device *device) {
    VR_ASSERT_ALL_LOCKED(device);
    const struct vram_allocator *allocator = device->allocator;
    for (uint32_t number = vr_segment_first(device); number != 0; number = vr_segment_after(device, number)) {
        struct vr_segment *segment = vr_segment_at(allocator, number);
        segment->stack = vr_stack_end(segment->stack);
        for (uint32_t at = segment->first; at != 0; at = vr_block_at(allocator, at)->next) {
            struct vr_block *block = vr_block_at(allocator, at);
            if (block->state == VR_ALLOCATED || block->state == VR_PENDING) block->stack = vr_stack_end(block->stack);
        }
    }
}

static enum vram_status make_listener(struct vram_allocator *allocator, struct vr_client_listener **made) {
    *made = allocator->client;
    if (*made != NULL) return VRAM_OK;
    *made = calloc(1, sizeof **made);
    if (*made == NULL) return VRAM_NO_HOST_MEMORY;
    (*made)->allocator = allocator;
    (*made)->listener.record = append_to_listeners;
    (*made)->listener.gather = gather_context;
    (*made)->listener.user = *made;
    (*made)->listener.numbered = (*made)->listener.pairs = (*made)->listener.foreign = true;
    allocator->client = *made;
    return VRAM_OK;
}

static enum vram_status attach_client(struct vram_allocator *allocator, const struct vram_event_listener *listener) {
    struct vr_client *client = malloc(sizeof *client);
    struct vr_client_listener *self = NULL;
    vr_mutex_lock(&allocator->mutex);
    const enum vram_status status = client == NULL ? VRAM_NO_HOST_MEMORY : make_listener(allocator, &self);
    if (status == VRAM_OK) {
        *client = (struct vr_client){.functions = *listener, .next = self->all};
        self->all = client;
        atomic_store_explicit(&self->client, client, memory_order_release);
        vr_allocator_listen_locked(allocator);
    }
    vr_mutex_unlock(&allocator->mutex);
    if (status != VRAM_OK) free(client);
    return status;
}

// Takes each device's locks twice: first to stop listening, so that no new context is kept, then to release those that blocks and segments
// keep.
static void detach_client(struct vram_allocator *allocator) {
    vr_mutex_lock(&allocator->mutex);
    struct vr_client_listener *self = allocator->client;
    if (self != NULL) {
        atomic_store_explicit(&self->client, NULL, memory_order_release);
        vr_allocator_listen_locked(allocator);
        for (uint32_t i = 0; i < VRAM_MAX_DEVICES; i++) {
            struct vr_device *device = vr_device_if_used(allocator, i);
            if (device == NULL) continue;
            vr_device_lock(device);
            forget_in_device(device);
            vr_device_unlock(device);
        }
        vr_raw_forget_stacks(allocator);
        for (const struct vr_client *client = self->all; client != NULL; client = client->next)
            vr_foreign_stacks_forget(&client->functions);
    }
    vr_mutex_unlock(&allocator->mutex);
}

enum vram_status vram_set_event_listener(struct vram_allocator *allocator, const struct vram_event_listener *listener) {
    VR_REQUIRE(allocator);
    if (listener == NULL) {
        detach_client(allocator);
        return VRAM_OK;
    }
    if ((unsigned)listener->level > VRAM_CONTEXT_ALL) return VRAM_INVALID_ARGUMENT;
    if (listener->take_context != NULL && (listener->retain_context == NULL || listener->release_context == NULL))
        return VRAM_INVALID_ARGUMENT;
    return attach_client(allocator, listener);
}

void vr_client_listener_end(struct vram_allocator *allocator) {
    struct vr_client_listener *self = allocator->client;
    if (self == NULL) return;
    detach_client(allocator);
    while (self->all != NULL) {
        struct vr_client *next = self->all->next;
        free(self->all);
        self->all = next;
    }
    free(self);
    allocator->client = NULL;
}

enum vram_status vram_block_context(struct vram_allocator *allocator, uint64_t address, void **context) {
    VR_REQUIRE(allocator && context);
    struct vr_shard *shard = NULL;
    const uint32_t block = vr_find_and_lock(allocator, address, &shard);
    if (block != 0) {
        *context = vr_foreign_stack_retain(vr_block_at(allocator, block)->stack);
        vr_device_unlock_short(shard->device);
        return VRAM_OK;
    }
    return vr_raw_context(allocator, address, context) ? VRAM_OK : VRAM_INVALID_POINTER;
}
