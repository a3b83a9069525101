// play_operations.c: performs one line of a list through the public interface; the simulated driver provides streams, events and work.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "play.h"
#include "vram/sim.h"

enum { MOST_WORDS = 6 };

struct words {
    char *word[MOST_WORDS];
    uint64_t number[MOST_WORDS]; // 0 if the word is not a number
    size_t count;
};

static struct play_current *here(struct play *play) { return &play->current[play->thread]; }
static uint64_t handle_here(struct play *play) { return play->world.stream[here(play)->device][here(play)->stream]; }
static enum vram_status driver_status(vr_cu_result result) { return result == VR_CU_SUCCESS ? VRAM_OK : VRAM_DRIVER; }

static enum vram_status answer_address(struct play *play, enum vram_status status, uint64_t address) {
    if (status == VRAM_OK) play_say(play, " = %" PRIx64, address);
    if (status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED) play_say(play, " = OOM");
    return status == VRAM_OUT_OF_MEMORY || status == VRAM_REJECTED ? VRAM_OK : status;
}

// --- memory -----------------------------------------------------------------------------------------------------------------------------
static enum vram_status do_stream(struct play *play, const struct words *words) {
    if (words->number[1] >= play->world.device_count || words->number[2] >= VR_WORLD_STREAMS) return VRAM_BAD_INPUT;
    *here(play) = (struct play_current){(uint32_t)words->number[1], (uint32_t)words->number[2]};
    return VRAM_OK;
}

static enum vram_status do_malloc(struct play *play, const struct words *words) {
    struct play_block *block = &play->blocks[words->number[1] % PLAY_BLOCKS];
    uint64_t address = 0;
    const enum vram_status status = vram_malloc(play->world.allocator, here(play)->device, words->number[2], handle_here(play), &address);
    if (status == VRAM_OK) *block = (struct play_block){address, here(play)->device};
    return answer_address(play, status, address);
}

static enum vram_status do_free(struct play *play, const struct words *words) {
    struct play_block *block = &play->blocks[words->number[1] % PLAY_BLOCKS];
    const uint64_t address = block->address;
    block->address = 0;
    return vram_free(play->world.allocator, address);
}

static enum vram_status do_record(struct play *play, const struct words *words) {
    const struct play_block *block = &play->blocks[words->number[1] % PLAY_BLOCKS];
    if (words->number[2] >= VR_WORLD_STREAMS) return VRAM_BAD_INPUT;
    return vram_record_stream(play->world.allocator, block->address, play->world.stream[block->device][words->number[2]]);
}

static enum vram_status do_empty(struct play *play, const struct words *words) {
    (void)words;
    return vram_empty_cache(play->world.allocator);
}

// The blocks that PyTorch makes for the random numbers of a device's first capture, in 2.13 on the default stream. The list has their
// number as PyTorch's answer.
static enum vram_status do_generator(struct play *play, const struct words *words) {
    for (uint64_t i = 0; i < words->number[1]; i++) {
        uint64_t address;
        VR_TRY(vram_malloc(play->world.allocator, here(play)->device, 8, play->version == 2013 ? 0 : handle_here(play), &address));
    }
    play_say(play, " = %" PRIu64, words->number[1]);
    return VRAM_OK;
}

// --- streams ----------------------------------------------------------------------------------------------------------------------------
static enum vram_status do_wait(struct play *play, const struct words *words) {
    if (words->number[1] >= play->world.device_count || words->number[2] >= VR_WORLD_STREAMS) return VRAM_BAD_INPUT;
    VR_TRY(driver_status(vr_cu(play->world.sim, ctx_set_current, play->world.context[words->number[1]])));
    return driver_status(vr_cu(play->world.sim, stream_synchronize, play->world.stream[words->number[1]][words->number[2]]));
}

static enum vram_status do_sync(struct play *play, const struct words *words) {
    (void)words;
    for (uint32_t device = 0; device < play->world.device_count; device++) {
        VR_TRY(driver_status(vr_cu(play->world.sim, ctx_set_current, play->world.context[device])));
        VR_TRY(driver_status(vr_cu(play->world.sim, ctx_synchronize, 0)));
    }
    return VRAM_OK;
}

static enum vram_status do_work(struct play *play, const struct words *words) {
    (void)words;
    return vram_sim_busy(play->world.sim, here(play)->device, handle_here(play), 0);
}

// Makes the later work of `to` wait for the present work of `from`.
static enum vram_status order(struct play *play, uint64_t from, uint64_t to) {
    uint64_t event;
    VR_TRY(driver_status(vr_cu(play->world.sim, event_create, &event, VR_CU_EVENT_DISABLE_TIMING)));
    enum vram_status status = driver_status(vr_cu(play->world.sim, event_record, event, from));
    if (status == VRAM_OK) status = driver_status(vr_cu(play->world.sim, stream_wait_event, to, event, 0));
    const enum vram_status ended = driver_status(vr_cu(play->world.sim, event_destroy, event));
    return status == VRAM_OK ? ended : status;
}

static enum vram_status do_fork(struct play *play, const struct words *words) {
    if (words->number[1] >= VR_WORLD_STREAMS) return VRAM_BAD_INPUT;
    return order(play, handle_here(play), play->world.stream[here(play)->device][words->number[1]]);
}

static enum vram_status do_join(struct play *play, const struct words *words) {
    if (words->number[1] >= VR_WORLD_STREAMS) return VRAM_BAD_INPUT;
    return order(play, play->world.stream[here(play)->device][words->number[1]], handle_here(play));
}

// --- pools and captures -----------------------------------------------------------------------------------------------------------------
static enum vram_status make_pool(struct play *play, struct play_pool *pool, const struct vram_pool_options *options) {
    VR_TRY(vram_pool_create(play->world.allocator, here(play)->device, options, &pool->handle));
    pool->id = vram_get_pool_id(pool->handle);
    pool->device = here(play)->device;
    pool->references = 1;
    return VRAM_OK;
}

static enum vram_status do_pool(struct play *play, const struct words *words) {
    struct vram_pool_options options = {.keep_cache = play->captures};
    for (size_t i = 2; i < words->count; i++) {
        options.use_on_oom |= strcmp(words->word[i], "use_on_oom") == 0;
        options.no_split |= strcmp(words->word[i], "no_split") == 0;
    }
    return make_pool(play, &play->pools[words->number[1] % PLAY_POOLS], &options);
}

static enum vram_status release_pool(struct play *play, uint64_t number) {
    struct play_pool *pool = &play->pools[number % PLAY_POOLS];
    if (pool->references == 0) return VRAM_BAD_INPUT;
    pool->references--;
    vram_pool_release(pool->handle);
    return VRAM_OK;
}

// The end of PyTorch's MemPool releases the pool and empties its cache, even if other users hold it. vram's release does both only if none
// does.
static enum vram_status do_droppool(struct play *play, const struct words *words) {
    const struct play_pool *pool = &play->pools[words->number[1] % PLAY_POOLS];
    VR_TRY(release_pool(play, words->number[1]));
    return play->captures ? vram_empty_cache_pool(play->world.allocator, pool->device, pool->id) : VRAM_OK;
}

// Before 2.8 a pool in use takes the requests of all threads.
static struct vram_route route_of(const struct play *play) {
    return (struct vram_route){.kind = play->version >= 2008 ? VRAM_ROUTE_THREAD : VRAM_ROUTE_ALL};
}

// Returns whether it counts as a capture of the device, as before 2.13.
static bool counts_as_capture(const struct play *play) { return play->version < 2013; }

static enum vram_status do_use(struct play *play, const struct words *words) {
    const struct vram_route route = route_of(play);
    const struct play_pool *pool = &play->pools[words->number[1] % PLAY_POOLS];
    if (pool->references == 0) return VRAM_BAD_INPUT;
    VR_TRY(vram_pool_begin(pool->handle, &route));
    return counts_as_capture(play) ? vram_capture_mark_begin(play->world.allocator, here(play)->device, 0) : VRAM_OK;
}

static enum vram_status do_unuse(struct play *play, const struct words *words) {
    const struct vram_route route = route_of(play);
    const struct play_pool *pool = &play->pools[words->number[1] % PLAY_POOLS];
    if (pool->references == 0) return VRAM_BAD_INPUT;
    if (counts_as_capture(play)) VR_TRY(vram_capture_mark_end(play->world.allocator, here(play)->device, 0));
    return vram_pool_end(pool->handle, &route);
}

// In 2.13 each graph has its own two blocks for random numbers, on the default stream, and waits for that stream.
static enum vram_status make_generator(struct play *play, struct play_graph *graph) {
    if (play->version != 2013) return VRAM_OK;
    for (size_t i = 0; i < 2; i++) VR_TRY(vram_malloc(play->world.allocator, here(play)->device, 8, 0, &graph->generator[i]));
    return driver_status(vr_cu(play->world.sim, stream_synchronize, 0));
}

static enum vram_status do_capture(struct play *play, const struct words *words) {
    static const struct vram_pool_options for_graph = {.for_graph = true};
    struct play_graph *graph = &play->graphs[words->number[1] % PLAY_GRAPHS];
    struct play_pool *pool = &play->pools[words->number[2] % PLAY_POOLS];
    if (pool->handle == NULL) {
        VR_TRY(make_pool(play, pool, &for_graph));
    } else {
        if (pool->references == 0) return VRAM_BAD_INPUT;
        vram_pool_retain(pool->handle);
        pool->references++;
    }
    *graph = (struct play_graph){.stream = handle_here(play), .pool = (uint32_t)words->number[2] % PLAY_POOLS, .live = true};
    VR_TRY(make_generator(play, graph));
    return vram_capture_begin(pool->handle, graph->stream, VRAM_CAPTURE_RELAXED, NULL);
}

static enum vram_status do_endcapture(struct play *play, const struct words *words) {
    const struct play_graph *graph = &play->graphs[words->number[1] % PLAY_GRAPHS];
    uint64_t made = 0;
    if (!graph->live) return VRAM_BAD_INPUT;
    VR_TRY(vram_capture_end(play->pools[graph->pool].handle, graph->stream, &made, NULL));
    return driver_status(vr_cu(play->world.sim, graph_destroy, made));
}

static enum vram_status do_dropgraph(struct play *play, const struct words *words) {
    struct play_graph *graph = &play->graphs[words->number[1] % PLAY_GRAPHS];
    if (!graph->live) return VRAM_BAD_INPUT;
    graph->live = false;
    const enum vram_status status = release_pool(play, graph->pool);
    for (size_t i = 2; i-- > 0;) (void)vram_free(play->world.allocator, graph->generator[i]); // vram_free() ignores 0
    return status;
}

// --- settings ---------------------------------------------------------------------------------------------------------------------------
static enum vram_status do_conf(struct play *play, const struct words *words) {
    char text[sizeof play->conf + 32];
    (void)snprintf(text, sizeof text, "pytorch:%u.%u%s%s", (unsigned)(play->version / 1000), (unsigned)(play->version % 1000),
                   words->count > 1 ? "," : "", words->count > 1 ? words->word[1] : "");
    if (play->host != NULL) VR_TRY(vram_host_configure(play->host, text, NULL));
    return vram_configure(play->world.allocator, text, NULL);
}

static enum vram_status do_fraction(struct play *play, const struct words *words) {
    return vram_set_memory_fraction(play->world.allocator, (uint32_t)words->number[1], strtod(words->word[2], NULL));
}

static enum vram_status do_peaks(struct play *play, const struct words *words) {
    return vram_reset_peak_stats(play->world.allocator, (uint32_t)words->number[1]);
}

static enum vram_status do_sums(struct play *play, const struct words *words) {
    return vram_reset_accumulated_stats(play->world.allocator, (uint32_t)words->number[1]);
}

// --- pinned memory ----------------------------------------------------------------------------------------------------------------------
static enum vram_status open_host(struct play *play) {
    if (play->host != NULL) return VRAM_OK;
    const struct vram_host_create_info info = {.driver = play->world.sim, .conf = play->conf, .ignore_environment = true};
    return vram_host_create(&info, &play->host, NULL);
}

// Numbers a host address, which is meaningless elsewhere, by how many others were seen before.
static size_t place_of(struct play *play, const void *pointer) {
    for (size_t i = 0; i < play->place_count; i++)
        if (play->places[i].pointer == pointer) return play->places[i].number;
    if (play->place_count < PLAY_PINNED) play->places[play->place_count++] = (struct play_place){pointer, play->next_place};
    return play->next_place++;
}

// After the cache is emptied, the host may reuse addresses for other blocks.
static void forget_places(struct play *play) {
    size_t kept = 0;
    for (size_t i = 0; i < play->place_count; i++) {
        bool live = false;
        for (size_t k = 0; k < PLAY_PINNED && !live; k++) live = play->pinned[k] == play->places[i].pointer;
        if (live) play->places[kept++] = play->places[i];
    }
    play->place_count = kept;
}

static enum vram_status do_pin(struct play *play, const struct words *words) {
    void **pointer = &play->pinned[words->number[1] % PLAY_PINNED];
    VR_TRY(open_host(play));
    VR_TRY(vram_host_malloc(play->host, words->number[2], handle_here(play), pointer));
    play_say(play, " = %zu", place_of(play, *pointer));
    return VRAM_OK;
}

static enum vram_status do_unpin(struct play *play, const struct words *words) {
    void **pointer = &play->pinned[words->number[1] % PLAY_PINNED];
    void *const freed = *pointer;
    VR_TRY(open_host(play));
    *pointer = NULL;
    return vram_host_free(play->host, freed);
}

static enum vram_status do_pinuse(struct play *play, const struct words *words) {
    void *const pointer = play->pinned[words->number[1] % PLAY_PINNED];
    if (pointer == NULL || play->blocks[words->number[2] % PLAY_BLOCKS].address == 0) return VRAM_OK;
    return vram_host_record_stream(play->host, pointer, handle_here(play));
}

static enum vram_status do_pinempty(struct play *play, const struct words *words) {
    (void)words;
    VR_TRY(open_host(play));
    const enum vram_status status = vram_host_empty_cache(play->host);
    forget_places(play);
    return status;
}

// --- pictures ---------------------------------------------------------------------------------------------------------------------------
static enum vram_status do_thread(struct play *play, const struct words *words) {
    if (words->number[1] >= PLAY_THREADS) return VRAM_BAD_INPUT;
    play->thread = (uint32_t)words->number[1];
    return VRAM_OK;
}

static enum vram_status do_stats(struct play *play, const struct words *words) {
    (void)words;
    play_say(play, "\n");
    return play_stats(play);
}

static enum vram_status do_map(struct play *play, const struct words *words) {
    (void)words;
    play_say(play, "\n");
    return play_map(play);
}

static enum vram_status do_events(struct play *play, const struct words *words) {
    (void)words;
    play_say(play, "\n");
    play_events(play);
    return VRAM_OK;
}

static const struct {
    const char *name;
    size_t least; // fewest words, including its own
    enum vram_status (*run)(struct play *play, const struct words *words);
} operations[] = {
    {"stream", 3, do_stream},
    {"thread", 2, do_thread},
    {"malloc", 3, do_malloc},
    {"free", 2, do_free},
    {"record", 3, do_record},
    {"empty", 1, do_empty},
    {"wait", 3, do_wait},
    {"sync", 1, do_sync},
    {"work", 1, do_work},
    {"fork", 2, do_fork},
    {"join", 2, do_join},
    {"generator", 2, do_generator},
    {"capture", 3, do_capture},
    {"endcapture", 2, do_endcapture},
    {"dropgraph", 2, do_dropgraph},
    {"pool", 2, do_pool},
    {"droppool", 2, do_droppool},
    {"use", 2, do_use},
    {"unuse", 2, do_unuse},
    {"conf", 1, do_conf},
    {"fraction", 3, do_fraction},
    {"peaks", 2, do_peaks},
    {"sums", 2, do_sums},
    {"pin", 3, do_pin},
    {"unpin", 2, do_unpin},
    {"pinuse", 3, do_pinuse},
    {"pinempty", 1, do_pinempty},
    {"stats", 1, do_stats},
    {"map", 1, do_map},
    {"events", 1, do_events},
};

static struct words cut(char *line) {
    struct words words = {.count = 0};
    for (char *word = strtok(line, " "); word != NULL && words.count < MOST_WORDS; word = strtok(NULL, " ")) {
        words.number[words.count] = strtoull(word, NULL, 10);
        words.word[words.count++] = word;
    }
    return words;
}

enum vram_status play_operation(struct play *play, char *line) {
    play_say(play, "%s", strncmp(line, "generator", 9) == 0 ? "generator" : line);
    const struct words words = cut(line);
    for (size_t i = 0; i < VR_COUNT_OF(operations); i++) {
        if (words.count < operations[i].least || strcmp(words.word[0], operations[i].name) != 0) continue;
        VR_TRY(driver_status(vr_cu(play->world.sim, ctx_set_current, play->world.context[here(play)->device])));
        const enum vram_status status = operations[i].run(play, &words);
        if (status == VRAM_BAD_INPUT) return status;
        if (status != VRAM_OK) play_say(play, " = error %s", vram_status_name(status));
        if (play->out.bytes[play->out.length - 1] != '\n') play_say(play, "\n");
        return VRAM_OK;
    }
    return VRAM_BAD_INPUT;
}
