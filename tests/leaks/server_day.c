// server_day FILE [name=value ...]: writes a recording of a made-up inference server and prints what leaks in it, as JSON.
//
// Values: engine (0 vLLM, 1 SGLang, 2 llama.cpp; their shapes only), seed, hours, requests (per day), leak (0: none; else 1 + a kind of
// leak). Everything else is drawn from the seed: the load's curve, bursts, caches and their limits, adapters, periodic work, and the leak's
// line, size and first hour. A leak loses 1 MiB an hour on average, whatever its size.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "vram/log.h"

#define MIB    ((uint64_t)1 << 20)
#define HOUR   3600.0
#define BEGINS 1700000000.0 // seconds since the epoch

// The purposes of memory, each with the line that allocates it. X(CONSTANT, line, "function")
#define ROLES(X)                                                                                                                           \
    X(WEIGHT, 88, "load_weights")                                                                                                          \
    X(KV, 141, "allocate_kv_cache")                                                                                                        \
    X(COMPILE, 233, "autotune")                                                                                                            \
    X(GRAPH, 301, "capture_graph")                                                                                                         \
    X(INPUT, 412, "prepare_request")                                                                                                       \
    X(STEP, 455, "execute_model")                                                                                                          \
    X(LOGITS, 478, "sample")                                                                                                               \
    X(PREFIX, 520, "insert_prefix")                                                                                                        \
    X(SIDE, 534, "index_prefix")                                                                                                           \
    X(ENCODED, 566, "encode_image")                                                                                                        \
    X(FILLED, 603, "keep_embedding")                                                                                                       \
    X(ADAPTER, 640, "load_adapter")                                                                                                        \
    X(SESSION, 688, "open_session")                                                                                                        \
    X(ERROR, 711, "handle_error")                                                                                                          \
    X(LONG, 745, "chunk_prompt")                                                                                                           \
    X(CRON, 780, "collect_metrics")                                                                                                        \
    X(REPORT, 797, "write_report")                                                                                                         \
    X(WORKSPACE, 830, "grow_workspace")                                                                                                    \
    X(PLAN, 861, "plan_for_shape")                                                                                                         \
    X(FRESH, 902, "log_request")

enum role {
#define ROLE(name, line, function) name,
    ROLES(ROLE)
#undef ROLE
        ROLE_COUNT
};
static const int lines[] = {
#define ROLE(name, line, function) line,
    ROLES(ROLE)
#undef ROLE
};
static const char *const functions[] = {
#define ROLE(name, line, function) function,
    ROLES(ROLE)
#undef ROLE
};
static const char *const files[] = {"gpu_model_runner.py", "model_runner.py", "llama-server.cpp"};

// The kinds of leak, each with the line that it is to be found at.
enum leak { NO_LEAK, LEAK_FRESH, LEAK_INPUT, LEAK_ERROR, LEAK_LONG, LEAK_CRON, LEAK_EVICTED, LEAK_SESSION, LEAK_COUNT };
static const enum role leak_roles[] = {FRESH, FRESH, INPUT, ERROR, LONG, CRON, SIDE, SESSION};

enum { VARIANTS = 3, CLASSES = 64 };

struct block {
    uint64_t address, bytes;
    enum role role;
};

// A timed event: a block is freed, or one of the sources continues.
enum what { FREE, REQUEST, TICK_CRON, TICK_REPORT, TICK_BURST, TICK_STORM, TICK_NIGHT, TICK_COMPILE };
struct due {
    double at;
    enum what what;
    uint32_t block;
};

// A cache with a limit. The least recently used entry goes first; without `evicts`, nothing is inserted once it is full.
struct cache {
    enum role role;
    uint32_t keys, *block, *before, *after, newest, oldest; // by key; 0: none, otherwise 1 + number
    uint64_t bytes, limit, entry_bytes;
    double skew;
    bool evicts;
};

static struct {
    uint64_t state; // of the random numbers
    struct vram_log *log;
    uint32_t stack[ROLE_COUNT][VARIANTS];
    struct block *blocks;
    uint32_t block_count, block_capacity, *free_blocks, free_count;
    uint64_t *pool[CLASSES], next_address;
    size_t pool_count[CLASSES], pool_capacity[CLASSES];
    struct due *heap;
    size_t heap_count, heap_capacity;
    double now, end, phase, depth, ramp, burst_until, storm_until, per_day;
    int engine;
    struct cache prefix, encoded, filled, adapters, plans;
    uint32_t workspace, metrics, night;
    uint64_t workspace_bytes;
    double session_median, request_median, fill_share, error_share, long_share;
    enum leak leak;
    uint64_t leak_bytes, events;
    double fills_until, leak_from, leak_chance; // seconds; blocks lost per occasion
} day;

static double uniform(void) {
    day.state = day.state * 6364136223846793005u + 1442695040888963407u;
    return (double)(vr_mix64(day.state) >> 11) * 0x1p-53;
}
static double between(double low, double high) { return low + (high - low) * uniform(); }
static double log_between(double low, double high) { return low * pow(high / low, uniform()); }
static double exponential(double mean) { return -mean * log(1 - uniform()); }
static double normal(void) { return sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform()); }
static double lognormal(double median, double sigma) { return median * exp(sigma * normal()); }
static uint64_t rounded(double bytes) { return bytes < 512 ? 512 : (uint64_t)bytes / 512 * 512; }

static void *grown(void *array, size_t count, size_t size) {
    void *larger = realloc(array, count * size);
    if (larger == NULL) exit(3);
    return larger;
}

static void must(enum vram_status status) {
    if (status == VRAM_OK) return;
    (void)fprintf(stderr, "server_day: %s\n", vram_status_text(status));
    exit(2);
}

// ---- what is due -------------------------------------------------------------------------------------------------------------------

static void put_due(double at, enum what what, uint32_t block) {
    if (day.heap_count == day.heap_capacity) {
        day.heap_capacity = day.heap_capacity == 0 ? 1024 : 2 * day.heap_capacity;
        day.heap = grown(day.heap, day.heap_capacity, sizeof *day.heap);
    }
    size_t i = day.heap_count++;
    for (; i > 0 && day.heap[(i - 1) / 2].at > at; i = (i - 1) / 2) day.heap[i] = day.heap[(i - 1) / 2];
    day.heap[i] = (struct due){at, what, block};
}

static struct due take_due(void) {
    const struct due first = day.heap[0], last = day.heap[--day.heap_count];
    size_t i = 0;
    for (size_t child = 1; child < day.heap_count; child = 2 * i + 1) {
        if (child + 1 < day.heap_count && day.heap[child + 1].at < day.heap[child].at) child++;
        if (day.heap[child].at >= last.at) break;
        day.heap[i] = day.heap[child];
        i = child;
    }
    day.heap[i] = last;
    return first;
}

// ---- blocks ------------------------------------------------------------------------------------------------------------------------

static int class_of(uint64_t bytes) {
    int class = 0;
    while (((uint64_t)512 << class) < bytes) class ++;
    return class;
}

// An allocator hands out the address that was freed last among those of about the size.
static uint64_t take_address(uint64_t bytes) {
    const int class = class_of(bytes);
    if (day.pool_count[class] != 0) return day.pool[class][--day.pool_count[class]];
    const uint64_t address = day.next_address;
    day.next_address += (uint64_t)512 << class;
    return address;
}

static void append(uint32_t action, const struct block *block, uint32_t stack) {
    const struct vram_log_event event = {.action = action,
                                         .address = block->address,
                                         .size_bytes = block->bytes,
                                         .stack = stack,
                                         .time_ns = (uint64_t)((BEGINS + day.now) * 1e9)};
    must(vram_log_append(day.log, &event, 1));
    day.events++;
}

static uint32_t allocate(enum role role, uint64_t bytes) {
    uint32_t number = day.free_count != 0 ? day.free_blocks[--day.free_count] : day.block_count;
    if (number == day.block_count) {
        if (day.block_count == day.block_capacity) {
            day.block_capacity = day.block_capacity == 0 ? 1024 : 2 * day.block_capacity;
            day.blocks = grown(day.blocks, day.block_capacity, sizeof *day.blocks);
            day.free_blocks = grown(day.free_blocks, day.block_capacity, sizeof *day.free_blocks);
        }
        day.block_count++;
    }
    day.blocks[number] = (struct block){take_address(bytes), bytes, role};
    append(VRAM_LOG_ALLOC, &day.blocks[number], day.stack[role][(int)(uniform() * VARIANTS)]);
    return number;
}

static void release(uint32_t number) {
    const struct block block = day.blocks[number];
    const int class = class_of(block.bytes);
    append(VRAM_LOG_FREE, &block, 0);
    day.free_blocks[day.free_count++] = number;
    if (day.pool_count[class] == day.pool_capacity[class]) {
        day.pool_capacity[class] = day.pool_capacity[class] == 0 ? 64 : 2 * day.pool_capacity[class];
        day.pool[class] = grown(day.pool[class], day.pool_capacity[class], sizeof **day.pool);
    }
    day.pool[class][day.pool_count[class]++] = block.address;
}

static void borrow(enum role role, double bytes, double seconds) { put_due(day.now + seconds, FREE, allocate(role, rounded(bytes))); }

// Loses blocks on an occasion on which this kind of leak can lose some.
static void lose(enum leak kind) {
    if (day.leak != kind || day.now < day.leak_from) return;
    for (double left = day.leak_chance; left > 0; left -= 1) {
        if (uniform() < left) (void)allocate(leak_roles[kind], day.leak_bytes);
    }
}

// ---- caches ------------------------------------------------------------------------------------------------------------------------

static void make_cache(struct cache *cache, enum role role, uint32_t keys, double entry_bytes, double limit, double skew) {
    *cache = (struct cache){.role = role, .keys = keys, .entry_bytes = rounded(entry_bytes), .limit = (uint64_t)limit, .skew = skew};
    cache->block = calloc(keys + 1, sizeof *cache->block);
    cache->before = calloc(keys + 1, sizeof *cache->before);
    cache->after = calloc(keys + 1, sizeof *cache->after);
    cache->evicts = true;
    if (cache->block == NULL || cache->before == NULL || cache->after == NULL) exit(3);
}

static void unlink_key(struct cache *cache, uint32_t key) {
    const uint32_t before = cache->before[key], after = cache->after[key];
    *(before == 0 ? &cache->newest : &cache->after[before]) = after;
    *(after == 0 ? &cache->oldest : &cache->before[after]) = before;
}

static void link_newest(struct cache *cache, uint32_t key) {
    cache->before[key] = 0;
    cache->after[key] = cache->newest;
    *(cache->newest == 0 ? &cache->oldest : &cache->before[cache->newest]) = key;
    cache->newest = key;
}

static void evict(struct cache *cache) {
    const uint32_t key = cache->oldest, block = cache->block[key] - 1;
    unlink_key(cache, key);
    cache->block[key] = 0;
    cache->bytes -= day.blocks[block].bytes;
    release(block);
    if (cache == &day.prefix) lose(LEAK_EVICTED);
}

static void use(struct cache *cache) {
    const uint32_t key = 1 + (uint32_t)((double)cache->keys * pow(uniform(), cache->skew)) % cache->keys;
    if (cache->block[key] != 0) {
        unlink_key(cache, key);
        link_newest(cache, key);
        return;
    }
    const uint64_t bytes = rounded((double)cache->entry_bytes * (cache->role == PLAN || cache->role == ADAPTER ? 1 : between(0.5, 1.5)));
    while (cache->evicts && cache->oldest != 0 && cache->bytes + bytes > cache->limit) evict(cache);
    if (cache->bytes + bytes > cache->limit) return;
    cache->block[key] = 1 + allocate(cache->role, bytes);
    cache->bytes += bytes;
    link_newest(cache, key);
}

// ---- the load ----------------------------------------------------------------------------------------------------------------------

// The load relative to its mean: a day's curve, a trend, and bursts.
static double load_without_bursts(double at) {
    const double curve = 0.5 + 0.5 * sin(6.283185307179586 * (at / (24 * HOUR) + day.phase));
    return (1 - day.depth + 2 * day.depth * curve) * (1 + day.ramp * (at / (24 * HOUR) - 0.5));
}

static double load_at(double at) { return load_without_bursts(at) * (at < day.burst_until ? 6 : 1); }

static void next_request(void) { put_due(day.now + exponential(24 * HOUR / day.per_day / load_at(day.now)), REQUEST, 0); }

static void replace(uint32_t *kept, enum role role, double bytes) {
    const uint32_t old = *kept;
    *kept = 1 + allocate(role, rounded(bytes));
    if (old != 0) release(old - 1);
}

static void fail_request(void) {
    for (int i = 0; i < 2; i++) borrow(ERROR, lognormal(40000, 1), between(30, 900));
    lose(LEAK_ERROR);
}

static void serve_steps(double prompt, double seconds) {
    const int steps = day.engine == 2 ? 2 : 3;
    for (int i = 0; i < steps; i++) {
        borrow(STEP, prompt * 4096, 0.02);
        borrow(LOGITS, 128000 * 4, 0.01);
    }
    if (prompt * 8192 <= (double)day.workspace_bytes) return;
    day.workspace_bytes = rounded(prompt * 8192);
    replace(&day.workspace, WORKSPACE, (double)day.workspace_bytes);
    (void)seconds;
}

static void serve_request(void) {
    const double prompt = lognormal(700, 1.1), seconds = lognormal(day.request_median, 0.9);
    const bool is_long = uniform() < day.long_share;
    borrow(INPUT, prompt * 16, seconds);
    borrow(INPUT, 4096, seconds);
    lose(LEAK_FRESH);
    lose(LEAK_INPUT);
    serve_steps(is_long ? 8 * prompt : prompt, seconds);
    if (is_long) {
        borrow(LONG, prompt * 4096, seconds);
        lose(LEAK_LONG);
    }
    use(&day.prefix);
    if (uniform() < 0.2) use(&day.encoded);
    if (uniform() < 0.1) use(&day.adapters);
    if (day.now >= day.fills_until && day.filled.limit == UINT64_MAX) day.filled.limit = day.filled.bytes;
    if (uniform() < day.fill_share) use(&day.filled);
    use(&day.plans);
    if (uniform() < 0.15) {
        double lasts = lognormal(day.session_median, 0.8);
        borrow(SESSION, lognormal(300000, 1), lasts < 2 * HOUR ? lasts : 2 * HOUR);
        lose(LEAK_SESSION);
    }
    if (uniform() < (day.now < day.storm_until ? 0.3 : day.error_share)) fail_request();
    next_request();
}

// Compiles and captures for a shape that was not met before.
static void compile_shape(void) {
    for (int i = 0; i < 4; i++) borrow(COMPILE, lognormal(8e6, 1), between(0.1, 20));
    if (uniform() < 0.4) (void)allocate(COMPILE, rounded(lognormal(2e5, 1)));
    (void)allocate(GRAPH, rounded(lognormal(3e6, 0.5)));
}

static void go_on(const struct due *due) {
    switch (due->what) {
    case FREE: release(due->block); break;
    case REQUEST: serve_request(); break;
    case TICK_COMPILE: compile_shape(); break;
    case TICK_CRON:
        replace(&day.metrics, CRON, lognormal(2e6, 0.3));
        lose(LEAK_CRON);
        put_due(day.now + 600, TICK_CRON, 0);
        break;
    case TICK_REPORT:
        for (int i = 0; i < 5; i++) borrow(REPORT, 64e6, between(20, 200));
        put_due(day.now + HOUR, TICK_REPORT, 0);
        break;
    case TICK_NIGHT: // rebuilds an index, which replaces the one of the day before
        replace(&day.night, REPORT, 400e6);
        break;
    case TICK_BURST:
        day.burst_until = day.now + between(60, 900);
        put_due(day.now + exponential(6 * HOUR), TICK_BURST, 0);
        break;
    default: day.storm_until = day.now + between(120, 1200); put_due(day.now + exponential(8 * HOUR), TICK_STORM, 0);
    }
}

// ---- the server --------------------------------------------------------------------------------------------------------------------

static uint32_t frame_of(const char *file, const char *function, int line) {
    uint32_t name, path, frame;
    must(vram_log_string(day.log, function, strlen(function), &name));
    must(vram_log_string(day.log, file, strlen(file), &path));
    must(vram_log_frame(day.log, name, path, line, &frame));
    return frame;
}

static void make_stacks(void) {
    static const char *const callers[] = {"step", "busy_loop", "drain"};
    for (int role = 0; role < ROLE_COUNT; role++) {
        for (int i = 0; i < VARIANTS; i++) {
            const char *core = day.engine == 2 ? "server.cpp" : "core.py";
            const uint32_t frames[] = {frame_of(files[day.engine], functions[role], lines[role]), frame_of(core, callers[i], 200 + i),
                                       frame_of(core, "main", 17)};
            must(vram_log_stack(day.log, frames, VR_COUNT_OF(frames), &day.stack[role][i]));
        }
    }
}

static void make_caches(void) {
    const double requests = day.per_day * (day.end / (24 * HOUR)), fill_hours = between(2, 20), entries = log_between(20, 3000);
    const double prefix_entries = log_between(100, 0.4 * requests), users = log_between(20, 400),
                 slots = uniform() < 0.5 ? users : users * between(0.2, 0.8);
    make_cache(&day.prefix, PREFIX, 20 * (uint32_t)prefix_entries, 2e9 / prefix_entries, 2e9, between(1, 3));
    make_cache(&day.encoded, ENCODED, 5000, 1e6, 1e6 * log_between(20, 800), between(1, 3));
    // It fills at a steady rate, in requests, until `fill_hours`; then it is full.
    make_cache(&day.filled, FILLED, 1000000, log_between(4096, 4e6), 0, 1);
    day.filled.limit = UINT64_MAX;
    day.fills_until = fill_hours * day.end / 24;
    day.filled.evicts = uniform() < 0.5;
    double before = 0, all = 0;
    for (double at = 0; at < 24 * HOUR; at += 60) {
        all += load_without_bursts(at);
        if (at < fill_hours * HOUR) before += load_without_bursts(at);
    }
    day.fill_share = entries / (requests * (before / all) * 24 * HOUR / day.end);
    make_cache(&day.adapters, ADAPTER, (uint32_t)users, log_between(8e6, 200e6), 0, between(1, 3));
    day.adapters.limit = (uint64_t)(slots + 1) * day.adapters.entry_bytes;
    make_cache(&day.plans, PLAN, day.engine == 2 ? 64 : 512, log_between(65536, 2e6), 1e12, between(1, 4));
}

static double occasions_per_hour(void) {
    const double requests = day.per_day / 24;
    switch (day.leak) {
    case LEAK_FRESH:
    case LEAK_INPUT: return requests;
    case LEAK_ERROR: return requests * (day.error_share + 0.3 * 660 / (8 * HOUR));
    case LEAK_LONG: return requests * day.long_share;
    case LEAK_CRON: return 6;
    case LEAK_EVICTED: return requests * 0.4;
    default: return requests * 0.15;
    }
}

static void draw_day(uint64_t seed) {
    day.state = vr_mix64(seed * 3 + (uint64_t)day.engine + 1);
    day.next_address = 0x7f0000000000u;
    day.phase = uniform();
    day.depth = between(0.3, 0.9);
    day.ramp = uniform() < 0.3 ? between(0.3, 1.2) : 0;
    day.request_median = log_between(2, 40);
    day.session_median = log_between(120, 1200);
    day.error_share = log_between(0.001, 0.01);
    day.long_share = between(0.02, 0.08);
    day.leak_bytes = rounded(log_between(512, 4.0 * (double)MIB));
    day.leak_from = day.end / (24 * HOUR) * between(0.5, 12) * HOUR;
    make_caches();
    day.leak_chance = (double)MIB / (double)day.leak_bytes / occasions_per_hour();
}

static void start_server(void) {
    for (int i = 0; i < 200; i++) (void)allocate(WEIGHT, rounded(between(1e6, 200e6)));
    day.now += 30;
    (void)allocate(KV, (uint64_t)40 << 30);
    const double rare_hours = between(0.3, 4);
    for (int i = 0; i < (day.engine == 2 ? 10 : 60); i++) {
        put_due(between(40, 1800), TICK_COMPILE, 0);
        put_due(40 + exponential(rare_hours * HOUR), TICK_COMPILE, 0);
    }
    put_due(120, TICK_CRON, 0);
    put_due(between(0, HOUR), TICK_REPORT, 0);
    put_due(between(0, 24 * HOUR), TICK_NIGHT, 0);
    put_due(exponential(6 * HOUR), TICK_BURST, 0);
    put_due(exponential(8 * HOUR), TICK_STORM, 0);
    put_due(60, REQUEST, 0);
}

static double option(int argc, char **argv, const char *name, double otherwise) {
    const size_t length = strlen(name);
    for (int i = 2; i < argc; i++)
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=') return strtod(argv[i] + length + 1, NULL);
    return otherwise;
}

int main(int argc, char **argv) {
    struct vram_error error;
    const struct vram_log_options options = {.replace = true, .producer = "server_day"};
    if (argc < 2) return 1;
    day.engine = (int)option(argc, argv, "engine", 0);
    day.end = option(argc, argv, "hours", 24) * HOUR;
    day.per_day = option(argc, argv, "requests", 20000);
    day.leak = (enum leak)option(argc, argv, "leak", 0);
    if (day.engine > 2 || day.leak >= LEAK_COUNT) return 1;
    must(vram_log_create(argv[1], &options, &day.log, &error));
    make_stacks();
    draw_day((uint64_t)option(argc, argv, "seed", 1));
    start_server();
    while (day.heap_count != 0 && day.heap[0].at < day.end) {
        const struct due due = take_due();
        day.now = due.at > day.now ? due.at : day.now;
        go_on(&due);
    }
    must(vram_log_close(day.log));
    (void)printf("{\"engine\": %d, \"events\": %llu, \"leak\": ", day.engine, (unsigned long long)day.events);
    if (day.leak == NO_LEAK) return puts("null}") < 0;
    (void)printf("{\"site\": \"%s:%d:%s\", \"bytes\": %llu, \"from_hour\": %.2f}}\n", files[day.engine], lines[leak_roles[day.leak]],
                 functions[leak_roles[day.leak]], (unsigned long long)day.leak_bytes, day.leak_from / HOUR);
    return 0;
}
