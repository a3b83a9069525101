// decoder.c: weights in a pool of their own, a decoding step as a graph, and a cache that grows until memory runs out; then an observer
// prints why and saves a snapshot. Usage: decoder [SNAPSHOT]. No GPU is needed.
#include <stdio.h>
#include <vram/recordings.h>
#include <vram/sim.h>
#include <vram/vram.h>

enum { LAYERS = 8, STEPS = 1000 };
#define MIB (1ull << 20)

// A program on a GPU leaves this out, gives vram_create() no driver, and makes its streams with cudaStreamCreate().
static struct vram_driver *driver;

struct model {
    struct vram_allocator *allocator;
    struct vram_pool *pool; // the weights': nothing else shares their segments
    struct vram_graph *step;
    uint64_t stream, weights[LAYERS], input, cache_bytes;
    const char *snapshot; // the file for it, or NULL
};

// Called on the failing thread, without a lock: it may use the allocator.
static void on_oom(const struct vram_oom *oom, void *user) {
    const struct model *model = user;
    struct vram_error error;
    char text[1024];
    if (vram_oom_text(oom, text, sizeof text) > 0) puts(text);
    if (model->snapshot != NULL && vram_snapshot_save(model->allocator, NULL, model->snapshot, &error) != VRAM_OK)
        fprintf(stderr, "%s\n", error.message);
}

static enum vram_status load(struct model *model) {
    enum vram_status status = vram_pool_create(model->allocator, 0, NULL, &model->pool);
    for (int layer = 0; status == VRAM_OK && layer < LAYERS; layer++)
        status = vram_pool_malloc(model->pool, 48 * MIB, model->stream, &model->weights[layer]);
    return status;
}

static void kernel(void *unused) { (void)unused; }

// Memory allocated between begin and end comes from the graph's pool, and has the same addresses in every launch.
static enum vram_status capture(struct model *model, struct vram_error *error) {
    uint64_t activations;
    enum vram_status status = vram_graph_begin(model->allocator, 0, model->stream, NULL, &model->step, error);
    if (status == VRAM_OK) status = vram_malloc(model->allocator, 0, 64 * MIB, model->stream, &activations);
    if (status == VRAM_OK) status = vram_sim_launch(driver, 0, model->stream, kernel, NULL, 1000); // here: your kernels
    if (status == VRAM_OK) status = vram_free(model->allocator, activations);
    if (status == VRAM_OK) status = vram_graph_end(model->step, error);
    return status == VRAM_OK ? vram_graph_add_static(model->step, model->input) : status; // a launch without it is refused
}

// Decodes one token: allocates its part of the cache, with a tag for the recording, and launches the graph.
static enum vram_status decode(struct model *model, struct vram_error *error) {
    uint64_t cache;
    enum vram_status status = vram_step(model->allocator, 0, "token");
    if (status == VRAM_OK) status = vram_push_tag("kv cache");
    if (status == VRAM_OK) status = vram_malloc(model->allocator, 0, 3 * MIB, model->stream, &cache);
    vram_pop_tag();
    if (status == VRAM_OK) model->cache_bytes += 3 * MIB;
    return status == VRAM_OK ? vram_graph_launch(model->step, model->stream, error) : status;
}

int main(int argc, char **argv) {
    struct model model = {.snapshot = argc > 1 ? argv[1] : NULL};
    struct vram_error error = {0};
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 1024 * MIB}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver}, &model.allocator, &error) != VRAM_OK) return 1;
    if (vram_history_start(model.allocator, NULL, &error) != VRAM_OK) return fprintf(stderr, "%s\n", error.message), 1;
    if (vram_malloc(model.allocator, 0, MIB, 0, &model.input) != VRAM_OK) return 1; // a device's first use makes its context
    if (vram_sim_stream_create(driver, 0, &model.stream) != VRAM_OK) return 1;
    if (vram_add_oom_observer(model.allocator, on_oom, &model) != VRAM_OK) return 1;
    if (load(&model) != VRAM_OK || capture(&model, &error) != VRAM_OK) return fprintf(stderr, "%s\n", error.message), 1;

    int tokens = 0;
    while (tokens < STEPS && decode(&model, &error) == VRAM_OK) tokens++;

    struct vram_pool_stats weights;
    if (vram_get_pool_stats(model.pool, &weights) != VRAM_OK) return 1;
    printf("%d tokens, %llu MiB of cache, %lld MiB reserved for weights\n", tokens, (unsigned long long)(model.cache_bytes / MIB),
           (long long)weights.reserved_bytes[VRAM_STAT_ALL].current >> 20);
    vram_graph_destroy(model.step);
    vram_pool_release(model.pool);
    vram_destroy(model.allocator);
    vram_driver_destroy(driver);
    return tokens > 0 && tokens < STEPS ? 0 : 1;
}
