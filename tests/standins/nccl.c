// Tests the NCCL stand-in with ranks as processes and as devices of one process. Small payloads are copied, order is checked, a dead rank
// is detected.
#define _GNU_SOURCE
#include "standin_test.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    INT32 = 2,
    INT64 = 4,
    FLOAT32 = 7,
    BFLOAT16 = 9,
    SUM = 0,
    MAXIMUM = 2,
    AVERAGE = 4,
    CUDA_ERROR = 1,
    INVALID_ARGUMENT = 4,
    INVALID_USAGE = 5,
    REMOTE_ERROR = 6,
    TIMEOUT = 8,
    RANKS = 2,
    CONNECTIONS_BYTES = 20971520, // the least of sizes.def
    ANY_LINES = -1
};
struct id {
    char bytes[128];
};

static void *comm_of(struct id id, int ranks, int rank) {
    void *comm = NULL;
    EXPECT(CALL("ncclCommInitRank", (void **, int, struct id, int), &comm, ranks, id, rank) == 0 && comm != NULL);
    return comm;
}

static uint64_t device_copy(const void *from, size_t bytes) {
    const uint64_t address = device_memory(bytes < 4096 ? 4096 : bytes);
    EXPECT(DRIVER("cuMemcpyHtoD_v2", (uint64_t, const void *, size_t), address, from, bytes) == 0);
    return address;
}

static void free_device_memory(uint64_t address) { EXPECT(DRIVER("cuMemFree_v2", (uint64_t), address) == 0); }

static void host_copy(void *to, uint64_t from, size_t bytes) {
    EXPECT(DRIVER("cuMemcpyDtoH_v2", (void *, uint64_t, size_t), to, from, bytes) == 0);
}

#define ALL_REDUCE(from, to, count, type, operator, comm, stream)                                                                          \
    CALL("ncclAllReduce", (uint64_t, uint64_t, size_t, int, int, void *, uint64_t), from, to, count, type, operator, comm, stream)

static void capture_body(void *comm) {
    static uint64_t stream, memory;
    if (stream == 0) {
        stream = ((uint64_t *)comm)[1];
        memory = ((uint64_t *)comm)[2];
    }
    EXPECT(ALL_REDUCE(memory, memory, 16, FLOAT32, SUM, *(void **)comm, stream) == 0);
}

static void collectives(void *comm, int rank, uint64_t stream) {
    const float numbers[2] = {1.5f + (float)rank, 2};
    float sums[2] = {0};
    uint64_t memory = device_copy(numbers, sizeof numbers), other = device_memory(4096);
    EXPECT(ALL_REDUCE(memory, other, 2, FLOAT32, SUM, comm, stream) == 0);
    host_copy(sums, other, sizeof sums);
    EXPECT(sums[0] == 4.0f && sums[1] == 4.0f);
    EXPECT(ALL_REDUCE(memory, memory, 2, FLOAT32, AVERAGE, comm, stream) == 0);
    host_copy(sums, memory, sizeof sums);
    EXPECT(sums[0] == 2.0f && sums[1] == 2.0f);
    const uint16_t halves[1] = {rank == 0 ? 0x3fc0 : 0x4040}; // 1.5 and 3 as bfloat16
    uint16_t half = 0;
    memory = device_copy(halves, sizeof halves);
    EXPECT(ALL_REDUCE(memory, memory, 1, BFLOAT16, SUM, comm, stream) == 0);
    host_copy(&half, memory, sizeof half);
    EXPECT(half == 0x4090); // 4.5
    const int64_t mine[2] = {10 + rank, 20 + rank};
    int64_t all[4] = {0};
    memory = device_copy(mine, sizeof mine);
    EXPECT(CALL("ncclAllGather", (uint64_t, uint64_t, size_t, int, void *, uint64_t), memory, other, 2, INT64, comm, stream) == 0);
    host_copy(all, other, sizeof all);
    EXPECT(all[0] == 10 && all[1] == 20 && all[2] == 11 && all[3] == 21);
    EXPECT(CALL("ncclReduceScatter", (uint64_t, uint64_t, size_t, int, int, void *, uint64_t), memory, other, 1, INT64, MAXIMUM, comm,
                stream) == 0);
    host_copy(all, other, 8);
    EXPECT(all[0] == (rank == 0 ? 11 : 21));
    EXPECT(CALL("ncclAlltoAll", (uint64_t, uint64_t, size_t, int, void *, uint64_t), memory, other, 1, INT64, comm, stream) == 0);
    host_copy(all, other, 16);
    EXPECT(rank == 0 ? all[0] == 10 && all[1] == 11 : all[0] == 20 && all[1] == 21);
    for (int turn = 0; turn < 20; turn++) // more often than there are payload slots
        EXPECT(CALL("ncclBroadcast", (uint64_t, uint64_t, size_t, int, int, void *, uint64_t), memory, memory, 2, INT64, 1, comm, stream) ==
               0);
    host_copy(all, memory, 16);
    EXPECT(all[0] == 11 && all[1] == 21);
}

static void messages(void *comm, int rank, uint64_t stream) {
    int32_t number = 100 + rank, received = 0;
    const uint64_t from = device_copy(&number, sizeof number), to = device_memory(4096);
    for (int turn = 0; turn < 10; turn++) {
        EXPECT(CALL("ncclGroupStart", (void)) == 0);
        EXPECT(CALL("ncclRecv", (uint64_t, size_t, int, int, void *, uint64_t), to, 1, INT32, 1 - rank, comm, stream) == 0);
        EXPECT(CALL("ncclSend", (uint64_t, size_t, int, int, void *, uint64_t), from, 1, INT32, 1 - rank, comm, stream) == 0);
        EXPECT(CALL("ncclGroupEnd", (void)) == 0);
    }
    host_copy(&received, to, sizeof received);
    EXPECT(received == 101 - rank);
}

// More operations in a group than payload slots: PyTorch gathers into a list by broadcasts.
static void large_groups(void *comm, int rank, uint64_t stream) {
    enum { CALLS = 11 };
    int32_t numbers[CALLS], received[CALLS] = {0}, sent[CALLS];
    for (int i = 0; i < CALLS; i++) {
        numbers[i] = i % RANKS == rank ? 1000 + i : 0;
        sent[i] = 100 * rank + i;
    }
    const uint64_t memory = device_copy(numbers, sizeof numbers), from = device_copy(sent, sizeof sent), to = device_memory(4096);
    EXPECT(CALL("ncclGroupStart", (void)) == 0);
    for (int i = 0; i < CALLS; i++) {
        EXPECT(CALL("ncclBroadcast", (uint64_t, uint64_t, size_t, int, int, void *, uint64_t), memory + 4 * i, memory + 4 * i, 1, INT32,
                    i % RANKS, comm, stream) == 0);
        EXPECT(CALL("ncclSend", (uint64_t, size_t, int, int, void *, uint64_t), from + 4 * i, 1, INT32, 1 - rank, comm, stream) == 0);
    }
    for (int i = 0; i < CALLS; i++)
        EXPECT(CALL("ncclRecv", (uint64_t, size_t, int, int, void *, uint64_t), to + 4 * i, 1, INT32, 1 - rank, comm, stream) == 0);
    EXPECT(CALL("ncclGroupEnd", (void)) == 0);
    host_copy(numbers, memory, sizeof numbers);
    host_copy(received, to, sizeof received);
    for (int i = 0; i < CALLS; i++) EXPECT(numbers[i] == 1000 + i && received[i] == 100 * (1 - rank) + i);
}

// Suspends and resumes a thousand times, with a refused call in between, and once with too little memory to resume.
static void suspend_and_resume(void *comm, uint64_t bytes, uint64_t stream) {
    const size_t full = free_memory();
    const uint64_t memory = device_memory(4096), left = free_memory();
    uint64_t state = 0;
    for (int turn = 0; turn < 1000; turn++) {
        EXPECT(CALL("ncclCommSuspend", (void *, int), comm, 1) == 0 && free_memory() >= left + bytes);
        EXPECT(CALL("ncclCommSuspend", (void *, int), comm, 1) == 0 && CALL("ncclCommSuspend", (void *, int), comm, 2) == INVALID_ARGUMENT);
        EXPECT(CALL("ncclCommMemStats", (void *, int, uint64_t *), comm, 1, &state) == 0 && state == 1);
        EXPECT(ALL_REDUCE(memory, memory, 4, FLOAT32, SUM, comm, stream) == INVALID_USAGE);
        EXPECT(CALL("ncclCommResume", (void *), comm) == 0 && free_memory() == left);
        EXPECT(CALL("ncclCommMemStats", (void *, int, uint64_t *), comm, 1, &state) == 0 && state == 0);
    }
    EXPECT(CALL("ncclCommSuspend", (void *, int), comm, 1) == 0);
    const uint64_t all = device_memory(free_memory() - bytes / 2);
    const size_t short_of = free_memory();
    EXPECT(CALL("ncclCommResume", (void *), comm) == CUDA_ERROR && free_memory() == short_of);
    free_device_memory(all);
    EXPECT(CALL("ncclCommResume", (void *), comm) == 0 && free_memory() == left);
    EXPECT(ALL_REDUCE(memory, memory, 4, FLOAT32, SUM, comm, stream) == 0);
    free_device_memory(memory);
    EXPECT(free_memory() == full);
}

static int run_ok(struct id id, int rank) {
    int number = -1;
    const size_t before = free_memory();
    const uint64_t stream = new_stream(), large = device_memory(1 << 20);
    void *comm = comm_of(id, RANKS, rank), *part = NULL, *alone = NULL;
    EXPECT(CALL("ncclCommCount", (void *, int *), comm, &number) == 0 && number == RANKS);
    EXPECT(CALL("ncclCommUserRank", (void *, int *), comm, &number) == 0 && number == rank);
    messages(comm, rank, stream);
    uint64_t bytes = 0, arguments[3] = {(uint64_t)(uintptr_t)comm, stream, large};
    EXPECT(CALL("ncclCommMemStats", (void *, int, uint64_t *), comm, 3, &bytes) == 0 && bytes < CONNECTIONS_BYTES); // sends make none
    collectives(comm, rank, stream);
    large_groups(comm, rank, stream);
    EXPECT(ALL_REDUCE(large, large, 1 << 18, FLOAT32, SUM, comm, stream) == 0);
    EXPECT(before - free_memory() >= CONNECTIONS_BYTES);
    (void)ALL_REDUCE(large, large, ((size_t)1 << 61) + 1, INT64, SUM, comm, stream); // the size overflows to 8 bytes
    // In reverse order.
    EXPECT(CALL("ncclCommSplit", (void *, int, int, void **, void *), comm, 0, -rank, &part, NULL) == 0 && part != NULL);
    EXPECT(CALL("ncclCommUserRank", (void *, int *), part, &number) == 0 && number == 1 - rank);
    collectives(part, 1 - rank, stream);
    EXPECT(CALL("ncclCommSplit", (void *, int, int, void **, void *), comm, rank == 0 ? 5 : -1, 0, &alone, NULL) == 0);
    EXPECT((alone != NULL) == (rank == 0));
    if (alone != NULL) EXPECT(CALL("ncclCommDestroy", (void *), alone) == 0);
    EXPECT(CALL("ncclCommMemStats", (void *, int, uint64_t *), comm, 3, &bytes) == 0 && bytes >= CONNECTIONS_BYTES);
    const size_t full = free_memory();
    suspend_and_resume(comm, bytes, stream);
    EXPECT(captured_nodes(stream, capture_body, arguments) == 1);
    EXPECT(CALL("ncclCommGetAsyncError", (void *, int *), comm, &number) == 0 && number == 0);
    EXPECT(CALL("ncclCommSuspend", (void *, int), part, 1) == 0); // and is not resumed
    EXPECT(CALL("ncclCommDestroy", (void *), part) == 0 && CALL("ncclCommDestroy", (void *), comm) == 0);
    EXPECT(free_memory() > full);
    return 0;
}

// Rank 1 does something else. Both fail, and one reports it.
static int run_mismatch(struct id id, int rank) {
    void *comm = comm_of(id, RANKS, rank);
    const uint64_t memory = device_memory(4096), stream = new_stream();
    EXPECT(ALL_REDUCE(memory, memory, 4, FLOAT32, SUM, comm, stream) == 0);
    int result = rank == 0 ? ALL_REDUCE(memory, memory, 4, FLOAT32, SUM, comm, stream)
                           : CALL("ncclBroadcast", (uint64_t, uint64_t, size_t, int, int, void *, uint64_t), memory, memory, 4, FLOAT32, 0,
                                  comm, stream);
    EXPECT(result == INVALID_USAGE);
    const char *sentence = ((const char *(*)(void *))found_in(library, "ncclGetLastError"))(comm);
    EXPECT(strstr(sentence, "rank 0") != NULL && strstr(sentence, "rank 1") != NULL);
    EXPECT(strstr(sentence, "ncclAllReduce") != NULL && strstr(sentence, "ncclBroadcast") != NULL && strstr(sentence, "call 2") != NULL);
    EXPECT(ALL_REDUCE(memory, memory, 4, FLOAT32, SUM, comm, stream) == INVALID_USAGE);
    EXPECT(CALL("ncclCommGetAsyncError", (void *, int *), comm, &result) == 0 && result == INVALID_USAGE);
    return CALL("ncclCommAbort", (void *), comm);
}

// Rank 1 dies silently.
static int run_death(struct id id, int rank) {
    void *comm = comm_of(id, RANKS, rank);
    const uint64_t memory = device_memory(4096), stream = new_stream();
    EXPECT(ALL_REDUCE(memory, memory, 4, FLOAT32, SUM, comm, stream) == 0);
    if (rank == 1) _exit(0);
    EXPECT(ALL_REDUCE(memory, memory, 4, FLOAT32, SUM, comm, stream) == REMOTE_ERROR);
    return CALL("ncclCommAbort", (void *), comm);
}

// Returns the file where the ranks meet, as this process maps it.
static unsigned char *meeting_place(size_t *bytes) {
    char line[512];
    unsigned long from = 0, to = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    EXPECT(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, "/dev/shm/vram-nccl-") != NULL && sscanf(line, "%lx-%lx", &from, &to) == 2) break;
    EXPECT(from != 0 && fclose(maps) == 0);
    *bytes = to - from;
    return (unsigned char *)from;
}

// One rank overwrites the shared memory arbitrarily; the other's calls fail or give wrong numbers, but end.
static int run_hostile(struct id id, int rank) {
    enum { TURNS = 60, BYTES = 200 << 10 };
    EXPECT(setenv("VRAM_SIM_NCCL_SECONDS", "3", 1) == 0);
    void *comm = comm_of(id, RANKS, rank);
    EXPECT(setenv("VRAM_SIM_NCCL_SECONDS", "0.02", 1) == 0);
    if (rank == 1) {
        size_t bytes;
        uint64_t random = 1;
        unsigned char *place = meeting_place(&bytes);
        for (int turn = 0; turn < TURNS; turn++) {
            for (size_t i = 0; i + 8 <= bytes && i < BYTES; i += 8) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                const uint64_t word = turn % 3 == 0 ? random : turn % 3 == 1 ? random >> 60 : turn % 2 == 0 ? 0 : UINT64_MAX;
                memcpy(place + i, &word, sizeof word);
            }
            (void)usleep(10000);
        }
        return 0;
    }
    const uint64_t stream = new_stream(), memory = device_memory(1 << 20);
    for (int turn = 0; turn < TURNS; turn++) {
        (void)ALL_REDUCE(memory, memory, 100 + turn, turn % 10, turn % 6, comm, stream);
        (void)CALL("ncclAlltoAll", (uint64_t, uint64_t, size_t, int, void *, uint64_t), memory, memory, 3, INT64, comm, stream);
        (void)CALL("ncclRecv", (uint64_t, size_t, int, int, void *, uint64_t), memory, 1, INT32, 1, comm, stream);
    }
    return 0;
}

static double seconds_now(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void compute(double seconds) {
    for (const double end = seconds_now() + seconds; seconds_now() < end;) continue;
}

#define SEND(from, peer, comm, stream)  CALL("ncclSend", (uint64_t, size_t, int, int, void *, uint64_t), from, 1, INT32, peer, comm, stream)
#define RECEIVE(to, peer, comm, stream) CALL("ncclRecv", (uint64_t, size_t, int, int, void *, uint64_t), to, 1, INT32, peer, comm, stream)

// A rank waits for another as long as that one computes, and gives up when they wait for each other.
static int run_waits(struct id id, int rank) {
    const int32_t number = 7;
    int32_t received = 0;
    void *comm = comm_of(id, RANKS, rank), *other = NULL;
    const uint64_t stream = new_stream(), memory = device_copy(&number, sizeof number), to = device_copy(&received, sizeof received);
    EXPECT(CALL("ncclCommSplit", (void *, int, int, void **, void *), comm, 0, rank, &other, NULL) == 0);
    EXPECT(setenv("VRAM_SIM_NCCL_SECONDS", "15", 1) == 0); // half a second if they wait for each other
    if (rank == 1) compute(1.5);
    EXPECT((rank == 1 ? SEND(memory, 0, comm, stream) : RECEIVE(to, 1, comm, stream)) == 0);
    host_copy(&received, to, sizeof received);
    EXPECT(rank == 1 || received == 7);
    EXPECT(RECEIVE(to, 1 - rank, rank == 0 ? comm : other, stream) == 0);
    EXPECT(SEND(memory, 1 - rank, rank == 0 ? other : comm, stream) == 0);
    EXPECT(setenv("VRAM_SIM_NCCL_SECONDS", "0.1", 1) == 0);
    if (rank == 1) compute(1.5);
    EXPECT(rank == 1 || RECEIVE(to, 1, comm, stream) == TIMEOUT);
    return 0;
}

static struct id new_id(const char *running) {
    struct id id;
    EXPECT(CALL("ncclGetUniqueId", (struct id *), &id) == 0);
    (void)strcat(id.bytes, running);
    return id;
}

// With very many ranks, what each contributes is small but their sum is not: 16,384 times 4 KiB is gathered, 8 KiB is not.
static void many_ranks(uint64_t stream) {
    enum { COUNT = 16384, LAST = COUNT - 1, NUMBERS = 1024 };
    int32_t numbers[2 * NUMBERS] = {7}, last = 0;
    void *comm = comm_of(new_id(":0"), COUNT, 0);
    const uint64_t memory = device_copy(numbers, sizeof numbers), all = device_memory((uint64_t)COUNT * sizeof numbers);
    const int32_t zero = 0;
    for (uint64_t count = NUMBERS; count <= 2 * NUMBERS; count *= 2) {
        const uint64_t at = all + LAST * count * sizeof *numbers;
        EXPECT(DRIVER("cuMemcpyHtoD_v2", (uint64_t, const void *, size_t), at, &zero, sizeof zero) == 0);
        EXPECT(CALL("ncclAllGather", (uint64_t, uint64_t, size_t, int, void *, uint64_t), memory, all, count, INT32, comm, stream) == 0);
        host_copy(&last, at, sizeof last);
        EXPECT(last == (count == NUMBERS ? 7 : 0));
    }
    EXPECT(CALL("ncclCommDestroy", (void *), comm) == 0);
}

static void send_to(uint64_t memory, int rank, void *comm, uint64_t stream) {
    EXPECT(CALL("ncclSend", (uint64_t, size_t, int, int, void *, uint64_t), memory, 1, INT32, rank, comm, stream) == 0);
}

static void receive_from(uint64_t memory, int rank, void *comm, uint64_t stream) {
    EXPECT(CALL("ncclRecv", (uint64_t, size_t, int, int, void *, uint64_t), memory, 1, INT32, rank, comm, stream) == 0);
}

// An exchange between all ranks, as a group of messages. An absent rank gives what its representative gives to the same rank.
static void exchange_messages(void *comm, int rank, uint64_t stream) {
    int32_t numbers[8], results[8] = {9};
    for (int other = 0; other < 8; other++) numbers[other] = 10 * rank + other;
    const uint64_t memory = device_copy(numbers, sizeof numbers), all = device_copy(results, sizeof results);
    EXPECT(CALL("ncclGroupStart", (void)) == 0);
    for (int other = 0; other < 8; other++) {
        send_to(memory + (uint64_t)other * sizeof *numbers, other, comm, stream);
        receive_from(all + (uint64_t)other * sizeof *numbers, other, comm, stream);
    }
    EXPECT(CALL("ncclGroupEnd", (void)) == 0);
    host_copy(results, all, sizeof results);
    for (int other = 0; other < 8; other++) EXPECT(results[other] == (other < 5 ? rank : 50 + rank));
    receive_from(all, 3, comm, stream); // nothing is known of it
    host_copy(results, all, sizeof results);
    EXPECT(results[0] == 0 && results[1] == rank);
}

// Runs two of eight ranks: the calls do not wait for the others, whose contribution is that of the next lower rank that runs.
static int run_folded(struct id id, int process) {
    const int rank = process * 5;
    const int32_t number = rank == 0 ? 1 : 100;
    int32_t results[8] = {0};
    (void)setenv("VRAM_SIM_RANKS", "8:0,5", 1);
    void *comm = comm_of(id, 8, rank), *part = NULL;
    const uint64_t stream = new_stream(), memory = device_copy(&number, sizeof number), all = device_memory(4096);
    EXPECT(ALL_REDUCE(memory, all, 1, INT32, SUM, comm, stream) == 0);
    host_copy(results, all, sizeof *results);
    EXPECT(results[0] == 5 * 1 + 3 * 100);
    EXPECT(CALL("ncclAllGather", (uint64_t, uint64_t, size_t, int, void *, uint64_t), memory, all, 1, INT32, comm, stream) == 0);
    host_copy(results, all, sizeof results);
    EXPECT(results[0] == 1 && results[4] == 1 && results[5] == 100 && results[7] == 100);
    for (int root = 0; root < 8; root++)
        EXPECT(CALL("ncclBroadcast", (uint64_t, uint64_t, size_t, int, int, void *, uint64_t), memory, all, 1, INT32, root, comm, stream) ==
               0);
    if (process == 0) many_ranks(stream);
    send_to(memory, 3, comm, stream);
    receive_from(all, 3, comm, stream);
    exchange_messages(comm, rank, stream);
    EXPECT(CALL("ncclCommSplit", (void *, int, int, void **, void *), comm, rank, rank, &part, NULL) == INVALID_USAGE && part == NULL);
    EXPECT(CALL("ncclCommSplit", (void *, int, int, void **, void *), comm, 0, rank, &part, NULL) == 0 && part != NULL);
    EXPECT(ALL_REDUCE(memory, all, 1, INT32, MAXIMUM, part, stream) == 0);
    host_copy(results, all, sizeof *results);
    EXPECT(results[0] == 100);
    EXPECT(CALL("ncclCommDestroy", (void *), part) == 0 && CALL("ncclCommDestroy", (void *), comm) == 0);
    (void)setenv("VRAM_SIM_RANKS", "8:0,6", 1); // not one of these
    EXPECT(rank == 0 || CALL("ncclCommInitRank", (void **, int, struct id, int), &part, 8, id, rank) == INVALID_USAGE);
    return 0;
}

// Ranks 4 and 5 of eight form a group. Only 5 runs: the group's first rank is absent, and what it would contribute is rank 5's.
static void pair_with_absent_root(uint64_t stream) {
    const int32_t number = 7;
    int32_t results[2] = {0};
    void *pair = comm_of(new_id(":1"), 2, 1);
    const uint64_t memory = device_copy(&number, sizeof number), all = device_memory(4096), other = device_copy(results, sizeof results);
    EXPECT(ALL_REDUCE(memory, all, 1, INT32, SUM, pair, stream) == 0);
    host_copy(results, all, sizeof *results);
    EXPECT(results[0] == 14);
    EXPECT(CALL("ncclAllGather", (uint64_t, uint64_t, size_t, int, void *, uint64_t), memory, all, 1, INT32, pair, stream) == 0);
    host_copy(results, all, sizeof results);
    EXPECT(results[0] == 7 && results[1] == 7);
    EXPECT(CALL("ncclSend", (uint64_t, size_t, int, int, void *, uint64_t), memory, 1, INT32, 0, pair, stream) == 0);
    EXPECT(CALL("ncclRecv", (uint64_t, size_t, int, int, void *, uint64_t), all, 1, INT32, 0, pair, stream) == 0);
    EXPECT(CALL("ncclBroadcast", (uint64_t, uint64_t, size_t, int, int, void *, uint64_t), memory, other, 1, INT32, 0, pair, stream) == 0);
    host_copy(results, other, sizeof *results);
    EXPECT(results[0] == 7);
    const uint64_t gathered = device_copy((int32_t[2]){0}, sizeof results); // by broadcasts into the output
    EXPECT(CALL("ncclGroupStart", (void)) == 0);
    for (int root = 0; root < 2; root++) {
        const uint64_t to = gathered + (uint64_t)root * sizeof number, from = root == 1 ? memory : to;
        EXPECT(CALL("ncclBroadcast", (uint64_t, uint64_t, size_t, int, int, void *, uint64_t), from, to, 1, INT32, root, pair, stream) ==
               0);
    }
    EXPECT(CALL("ncclGroupEnd", (void)) == 0);
    host_copy(results, gathered, sizeof results);
    EXPECT(results[0] == 7 && results[1] == 7);
    EXPECT(CALL("ncclCommDestroy", (void *), pair) == 0);
}

// The ranks that run may be named in the id of a group of some ranks.
static int run_folded_groups(struct id id, int process) {
    static const char *const wrong[] = {":", ":0", ":x", ":1,", ":1,9", ":1;0", "0", ":-1,1", ": 1"};
    (void)setenv("VRAM_SIM_RANKS", "8:0,5", 1);
    const int32_t number = process == 0 ? 1 : 100, excluded = 1;
    int32_t sum = 0;
    const uint64_t stream = new_stream(), memory = device_copy(&number, sizeof number), all = device_memory(4096);
    if (process == 1) pair_with_absent_root(stream);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        void *none = NULL;
        EXPECT(CALL("ncclCommInitRank", (void **, int, struct id, int), &none, 2, new_id(wrong[i]), 1) != 0 && none == NULL);
    }
    // Ranks 0, 1, 4 and 5. The rank that made the id has it without the ranks that run.
    char noted[sizeof id.bytes];
    (void)snprintf(noted, sizeof noted, "%s:0,3", strchr(id.bytes, ':') + 1);
    if (process == 0)
        EXPECT(setenv("VRAM_SIM_NCCL_RUNNING", noted, 1) == 0);
    else
        (void)strcat(id.bytes, ":0,3");
    void *comm = comm_of(id, 4, process * 3), *fewer = NULL;
    EXPECT(ALL_REDUCE(memory, all, 1, INT32, SUM, comm, stream) == 0);
    host_copy(&sum, all, sizeof sum);
    EXPECT(sum == 3 * 1 + 100);
    EXPECT(CALL("ncclCommShrink", (void *, const int *, int, void **, void *, int), comm, &excluded, 1, &fewer, NULL, 0) == 0);
    EXPECT(ALL_REDUCE(memory, all, 1, INT32, SUM, fewer, stream) == 0);
    host_copy(&sum, all, sizeof sum);
    EXPECT(sum == 2 * 1 + 100);
    EXPECT(CALL("ncclCommDestroy", (void *), fewer) == 0 && CALL("ncclCommDestroy", (void *), comm) == 0);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(struct id id, int rank);
    int lines; // lines on standard error, of all ranks
} scenarios[] = {
    {"ok", run_ok, 0},         {"mismatch", run_mismatch, 1},           {"death", run_death, 1}, {"hostile", run_hostile, ANY_LINES},
    {"folded", run_folded, 0}, {"folded groups", run_folded_groups, 0}, {"waits", run_waits, 1}};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

// One process with two devices.
static void test_devices(void) {
    void *comms[2] = {NULL, NULL}, *contexts[2] = {NULL, NULL};
    uint64_t memory[2], streams[2];
    for (int i = 0; i < 2; i++) EXPECT(DRIVER("cuDevicePrimaryCtxRetain", (void **, int), &contexts[i], i) == 0);
    EXPECT(CALL("ncclCommInitAll", (void **, int, const int *), comms, 2, NULL) == 0);
    for (int i = 0; i < 2; i++) {
        const int32_t number = 3 + i;
        EXPECT(DRIVER("cuCtxSetCurrent", (void *), contexts[i]) == 0);
        streams[i] = new_stream();
        memory[i] = device_copy(&number, sizeof number);
    }
    EXPECT(CALL("ncclGroupStart", (void)) == 0);
    for (int i = 0; i < 2; i++) EXPECT(ALL_REDUCE(memory[i], memory[i], 1, INT32, SUM, comms[i], streams[i]) == 0);
    EXPECT(CALL("ncclGroupEnd", (void)) == 0);
    for (int i = 0; i < 2; i++) {
        int32_t sum = 0;
        host_copy(&sum, memory[i], sizeof sum);
        EXPECT(sum == 7);
    }
    for (int i = 0; i < 2; i++) EXPECT(CALL("ncclCommDestroy", (void *), comms[i]) == 0);
}

static pid_t start(char *self, char *folder, int scenario, int rank, char *id, int errors) {
    const pid_t child = fork();
    if (child != 0) return child;
    char number[2] = {(char)('0' + scenario), 0}, which[2] = {(char)('0' + rank), 0};
    char *arguments[] = {self, folder, number, which, id, NULL};
    (void)dup2(errors, STDERR_FILENO);
    (void)execv(self, arguments);
    _exit(127);
}

// Runs both ranks as separate processes; counts their lines.
static void test_scenario(char *self, char *folder, int scenario) {
    struct id id;
    int errors[2];
    EXPECT(CALL("ncclGetUniqueId", (struct id *), &id) == 0 && pipe(errors) == 0);
    pid_t children[RANKS];
    for (int rank = 0; rank < RANKS; rank++) children[rank] = start(self, folder, scenario, rank, id.bytes, errors[1]);
    (void)close(errors[1]);
    char text[8192];
    size_t length = 0;
    for (ssize_t got = 0; (got = read(errors[0], text + length, sizeof text - 1 - length)) > 0;) length += (size_t)got;
    text[length] = 0;
    (void)close(errors[0]);
    for (int rank = 0; rank < RANKS; rank++) {
        int status = -1;
        EXPECT(waitpid(children[rank], &status, 0) == children[rank]);
        if (status != 0) printf("%s: rank %d ended with %d: %s\n", scenarios[scenario].name, rank, status, text);
        EXPECT(status == 0);
    }
    int lines = 0;
    for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
    if (scenarios[scenario].lines == ANY_LINES) lines = ANY_LINES;
    if (lines != scenarios[scenario].lines) printf("%s wrote: %s\n", scenarios[scenario].name, text);
    EXPECT(lines == scenarios[scenario].lines);
    char path[200];
    (void)snprintf(path, sizeof path, "/dev/shm/vram-nccl-%s", id.bytes + strlen("vram-nccl:"));
    EXPECT(access(path, F_OK) != 0); // nothing is left
}

int main(int count, char **arguments) {
    struct id id = {{0}};
    EXPECT(count == 2 || count == 5);
    begin_driver();
    library = opened(arguments[1], "libnccl.so.2");
    if (count == 5) { // a rank with its own device
        void *context = NULL;
        EXPECT(DRIVER("cuDevicePrimaryCtxRetain", (void **, int), &context, atoi(arguments[3])) == 0);
        EXPECT(DRIVER("cuCtxSetCurrent", (void *), context) == 0);
        (void)snprintf(id.bytes, sizeof id.bytes, "%s", arguments[4]);
        return scenarios[atoi(arguments[2]) % SCENARIOS].run(id, atoi(arguments[3]));
    }
    int version = 0;
    EXPECT(CALL("ncclGetVersion", (int *), &version) == 0 && version >= 22000);
    EXPECT(CALL("ncclCommInitRank", (void **, int, struct id, int), (void **)&version, 2, id, 0) == 4); // an invalid id
    for (int scenario = 0; scenario < SCENARIOS; scenario++) test_scenario(arguments[0], arguments[1], scenario);
    test_devices();
    return 0;
}
