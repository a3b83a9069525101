// device_ops.c: random operations on this machine's device. Every block is filled with its own pattern, on its stream; the bytes are
// checked when it is freed, and after everything was suspended and woken. Other streams read blocks late, after long work, when these are
// already freed: they must still read the block's bytes.
//
// Usage: device_ops OPERATIONS SEED CONF... (an option string each; "" means the defaults)
#include <vram/sleep.h>
#include <vram/vram.h>

#include "cu.h"

enum { BLOCKS = 400, STREAMS = 3, READERS = 32, WINDOW = 4096, DELAY_BYTES = 64 << 20 };
static const uint64_t MOST_LIVE = (uint64_t)6 << 30;

struct live {
    uint64_t address, bytes;
    uint32_t pattern;
    unsigned stream;
};

// A copy made by another stream of a block that may since have been freed.
struct reader {
    uint64_t address; // of the copy, which is its own block
    uint32_t pattern;
    unsigned stream;
    uint64_t bytes;
};

static struct {
    struct vram_allocator *allocator;
    void *stream[STREAMS];
    void *event;
    struct live live[BLOCKS];
    size_t live_count;
    uint64_t live_bytes;
    struct reader reader[READERS];
    size_t reader_count;
    uint64_t delay; // memory filled repeatedly, to make long work
    uint32_t *host;
    uint64_t random;
    uint64_t checked_bytes, refused, sleeps;
} run;

static uint64_t draw(uint64_t limit) {
    run.random = run.random * 6364136223846793005u + 1442695040888963407u;
    return (run.random >> 33) % limit;
}

static void must(enum vram_status status, const char *what) {
    if (status == VRAM_OK) return;
    fprintf(stderr, "%s: %s\n", what, vram_status_name(status));
    exit(1);
}

static uint64_t stream_of(unsigned stream) { return VRAM_STREAM(run.stream[stream]); }

static void compare(uint64_t from, uint64_t bytes, uint32_t pattern, unsigned stream, const char *what) {
    CU(read(run.host, from, bytes, run.stream[stream]));
    CU(stream_synchronize(run.stream[stream]));
    for (uint64_t i = 0; i < bytes / 4; i++) {
        if (run.host[i] == pattern) continue;
        fprintf(stderr, "%s: byte %llu of 0x%llx is %08x instead of %08x\n", what, (unsigned long long)i * 4, (unsigned long long)from,
                run.host[i], pattern);
        exit(1);
    }
    run.checked_bytes += bytes;
}

// Checks both ends and a place in between: a block is filled as a whole, and an overlap affects its ends.
static void verify(const struct live *block, const char *what) {
    const uint64_t window = block->bytes < WINDOW ? block->bytes : WINDOW, middle = draw(block->bytes - window + 1) & ~(uint64_t)511;
    compare(block->address, window, block->pattern, block->stream, what);
    compare(block->address + block->bytes - window, window, block->pattern, block->stream, what);
    compare(block->address + middle, window, block->pattern, block->stream, what);
}

static uint64_t draw_bytes(void) {
    switch (draw(8)) {
    case 0: return ((uint64_t)1 << 20) + draw(200) * 65536 * 4;
    case 1: return ((uint64_t)20 << 20) + draw((uint64_t)100 << 20);
    case 2: return ((uint64_t)2 << 20) * (1 + draw(8));
    default: return 512 + draw((uint64_t)1 << 20);
    }
}

static void do_malloc(void) {
    struct live block = {.bytes = draw_bytes() & ~(uint64_t)3, .pattern = (uint32_t)draw(UINT32_MAX), .stream = (unsigned)draw(STREAMS)};
    if (run.live_count == BLOCKS || run.live_bytes + block.bytes > MOST_LIVE) return;
    const enum vram_status status = vram_malloc(run.allocator, 0, block.bytes, stream_of(block.stream), &block.address);
    if (status == VRAM_OUT_OF_MEMORY) {
        run.refused++;
        return;
    }
    must(status, "vram_malloc");
    CU(fill(block.address, block.pattern, block.bytes / 4, run.stream[block.stream]));
    run.live[run.live_count++] = block;
    run.live_bytes += block.bytes;
}

static void take_out(size_t at) {
    run.live_bytes -= run.live[at].bytes;
    run.live[at] = run.live[--run.live_count];
}

static void do_free(void) {
    if (run.live_count == 0) return;
    const size_t at = draw(run.live_count);
    if (draw(2) == 0) verify(&run.live[at], "a block at its free");
    must(vram_free(run.allocator, run.live[at].address), "vram_free");
    take_out(at);
}

static void settle_readers(void) {
    for (size_t i = 0; i < run.reader_count; i++) {
        const struct reader *reader = &run.reader[i];
        compare(reader->address, reader->bytes, reader->pattern, reader->stream, "what another stream read of a block that was freed");
        must(vram_free(run.allocator, reader->address), "vram_free");
    }
    run.reader_count = 0;
}

// Makes another stream read the block after long work, and frees the block at once.
static void do_read_and_free(void) {
    if (run.live_count == 0) return;
    if (run.reader_count == READERS) settle_readers();
    const size_t at = draw(run.live_count);
    const struct live *block = &run.live[at];
    struct reader reader = {.pattern = block->pattern, .stream = (block->stream + 1) % STREAMS};
    reader.bytes = block->bytes < WINDOW ? block->bytes : WINDOW;
    if (vram_malloc(run.allocator, 0, reader.bytes, stream_of(reader.stream), &reader.address) != VRAM_OK) return;
    const uint64_t from = block->address + (draw(2) == 0 ? 0 : block->bytes - reader.bytes);
    CU(event_record(run.event, run.stream[block->stream]));
    CU(stream_wait_event(run.stream[reader.stream], run.event, 0));
    for (unsigned i = 0; i < 4; i++) CU(fill(run.delay, i, DELAY_BYTES / 4, run.stream[reader.stream]));
    CU(copy(reader.address, from, reader.bytes, run.stream[reader.stream]));
    must(vram_record_stream(run.allocator, block->address, stream_of(reader.stream)), "vram_record_stream");
    must(vram_free(run.allocator, block->address), "vram_free");
    take_out(at);
    run.reader[run.reader_count++] = reader;
}

static void do_sleep(void) {
    struct vram_error error;
    settle_readers();
    if (vram_sleep(run.allocator, 0, NULL, 0, NULL, &error) != VRAM_OK) return; // the memory cannot be suspended
    must(vram_wake(run.allocator, 0, NULL, 0, NULL, &error), "vram_wake");
    for (size_t i = 0; i < run.live_count; i++) verify(&run.live[i], "a block that slept");
    run.sleeps++;
}

static void step(bool sleeps) {
    const uint64_t what = draw(1000);
    if (what < 520)
        do_malloc();
    else if (what < 820)
        do_free();
    else if (what < 990)
        do_read_and_free();
    else if (what < 993)
        must(vram_empty_cache(run.allocator), "vram_empty_cache");
    else if (what < 994 && sleeps)
        do_sleep();
}

static void play(const char *conf, unsigned long operations, unsigned long seed) {
    struct vram_error error;
    run.random = seed * 2 + 1;
    run.checked_bytes = run.refused = run.sleeps = 0;
    if (vram_create(&(struct vram_create_info){.conf = conf}, &run.allocator, &error) != VRAM_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    const bool sleeps = strstr(conf, "paged") != NULL || strstr(conf, "expandable") != NULL || strstr(conf, "sleepable") != NULL;
    for (unsigned long i = 0; i < operations; i++) step(sleeps);
    settle_readers();
    for (; run.live_count > 0; take_out(0)) {
        verify(&run.live[0], "a block at the end");
        must(vram_free(run.allocator, run.live[0].address), "vram_free");
    }
    vram_destroy(run.allocator);
    printf("'%s': %lu operations, %.1f MiB read back, %llu refused, slept %llu times\n", conf, operations,
           (double)run.checked_bytes / (1 << 20), (unsigned long long)run.refused, (unsigned long long)run.sleeps);
}

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "usage: device_ops OPERATIONS SEED CONF...\n"), 2;
    cu_begin();
    void *host = NULL;
    for (unsigned i = 0; i < STREAMS; i++) CU(stream_create(&run.stream[i], 1));
    CU(event_create(&run.event, 2));
    CU(mem_alloc(&run.delay, DELAY_BYTES));
    CU(host_alloc(&host, WINDOW, 0));
    run.host = host;
    for (int i = 3; i < argc; i++) play(argv[i], strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10));
    CU(synchronize());
    return 0;
}
