// serve_sim.c: a language model server on a simulated device, until it runs out of memory with gigabytes free.
//
// The conversations' caches grow by copying into larger ones, and settle in the memory that a long document's attention freed. The next
// document is longer and finds that memory fragmented. The history is written as a snapshot, with the stacks that the library captured:
//
//     serve_sim serve.pickle && vram report serve.pickle
#include <vram/recordings.h>
#include <vram/vram.h>

enum { LAYERS = 32, HIDDEN = 4096, FEED = 11008, VOCABULARY = 32000, HEADS = 32, HALF = 2, SINGLE = 4 };
enum { CONVERSATIONS = 4, CHUNK_TOKENS = 64 };

static struct vram_allocator *device;
static struct vram_driver *driver;

struct conversation {
    uint64_t cache[LAYERS]; // keys and values of all tokens so far; 0: none
    uint64_t tokens;
};

// A macro, because the line of the call is its call site in the report.
#define TENSOR(address, size_bytes) (vram_malloc(device, 0, (size_bytes), 0, (address)) == VRAM_OK)

static bool release(uint64_t address) { return vram_free(device, address) == VRAM_OK; }

static bool load_model(void) {
    for (int i = 0; i < LAYERS; i++) {
        uint64_t attention, feed;
        if (!TENSOR(&attention, 4ull * HIDDEN * HIDDEN * HALF) || !TENSOR(&feed, 3ull * HIDDEN * FEED * HALF)) return false;
    }
    uint64_t embedding;
    return TENSOR(&embedding, (uint64_t)VOCABULARY * HIDDEN * HALF);
}

// Makes room for more tokens in a layer's cache by copying it into a larger one.
static bool grow_cache(uint64_t *cache, uint64_t tokens) {
    uint64_t larger;
    if (!TENSOR(&larger, tokens * HIDDEN * 2 * HALF) || (*cache != 0 && !release(*cache))) return false;
    *cache = larger;
    return true;
}

static bool attend(uint64_t fresh_tokens, uint64_t tokens) {
    uint64_t scores;
    return TENSOR(&scores, fresh_tokens * tokens * HEADS * SINGLE) && release(scores);
}

// Reads a question and writes the answer, several tokens at a time.
static bool answer(struct conversation *conversation, uint64_t question_tokens) {
    for (uint64_t fresh = question_tokens, chunk = 0; chunk < 3; chunk++, fresh = CHUNK_TOKENS) {
        conversation->tokens += fresh;
        if (!attend(fresh, conversation->tokens)) return false;
        for (int layer = 0; layer < LAYERS; layer++)
            if (!grow_cache(&conversation->cache[layer], conversation->tokens)) return false;
    }
    return true;
}

static bool forget(struct conversation *conversation) {
    for (int layer = 0; layer < LAYERS; layer++)
        if (!release(conversation->cache[layer])) return false;
    *conversation = (struct conversation){.tokens = 0};
    return true;
}

// Serves short questions and, occasionally, a document longer than the previous one.
static bool serve(void) {
    static struct conversation conversations[CONVERSATIONS];
    if (!load_model()) return false;
    for (uint64_t i = 0, random = 1;; i++) {
        struct conversation *conversation = &conversations[i % CONVERSATIONS];
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (conversation->tokens > 1200 && !forget(conversation)) return false;
        if (!answer(conversation, i % 5 == 4 ? 1024 + 112 * i : 32 + (random >> 33) % 200)) return false;
    }
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    if (vram_sim_create(&(struct vram_sim_options){.memory_bytes = 24ull << 30, .context_bytes = 512 << 20}, &driver) != VRAM_OK) return 1;
    if (vram_create(&(struct vram_create_info){.driver = driver, .conf = ""}, &device, NULL) != VRAM_OK) return 1;
    if (vram_history_start(device, &(struct vram_history_options){.stacks = VRAM_HISTORY_STACKS_C}, NULL) != VRAM_OK) return 1;
    if (serve()) return 1; // runs until memory is exhausted
    if (vram_snapshot_save(device, NULL, argv[1], NULL) != VRAM_OK) return 1;
    vram_destroy(device);
    vram_driver_destroy(driver);
}
