// bench_driver.c: measures the cost of driver calls for the calling thread on this machine's device, for the simulator's price list
// (docs/internals/simulated-device.md). Prints the minimum and median in nanoseconds. Nothing else may use the device meanwhile.
//
// Usage: bench_driver
#include <time.h>

#include "cu.h"

enum { ROUNDS = 60, PAGE = 2 << 20 };

// CUmemAllocationProp and CUmemAccessDesc in cuda.h's layout: pinned memory of device 0, readable and writable by it.
static const struct {
    int type, handle_types, location, device;
    void *win32;
    unsigned char flags[8];
} properties = {.type = 1, .location = 1};
static const struct { int location, device, flags; } access = {1, 0, 3};

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

struct series {
    const char *name;
    uint64_t ns[ROUNDS];
    size_t count;
};

static void print(struct series *series, unsigned long mib) {
    qsort(series->ns, series->count, sizeof series->ns[0], by_value);
    printf("%-22s %6lu MiB  %9llu %9llu\n", series->name, mib, (unsigned long long)series->ns[0],
           (unsigned long long)series->ns[series->count / 2]);
}

#define TIMED(series, call)                                                                                                                \
    do {                                                                                                                                   \
        const uint64_t begun = now_ns();                                                                                                   \
        CU(call);                                                                                                                          \
        (series)->ns[(series)->count++ % ROUNDS] = now_ns() - begun;                                                                       \
    } while (0)

static void time_plain(unsigned long mib) {
    struct series alloc = {.name = "cuMemAlloc"}, release = {.name = "cuMemFree"};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t address;
        TIMED(&alloc, mem_alloc(&address, mib << 20));
        TIMED(&release, mem_free(address));
    }
    print(&alloc, mib);
    print(&release, mib);
}

static void time_pages(unsigned long mib) {
    struct series reserve = {.name = "cuMemAddressReserve"}, create = {.name = "cuMemCreate"}, map = {.name = "cuMemMap"},
                  set = {.name = "cuMemSetAccess"}, unmap = {.name = "cuMemUnmap"}, release = {.name = "cuMemRelease"},
                  address_free = {.name = "cuMemAddressFree"};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t address, handle;
        TIMED(&reserve, reserve(&address, mib << 20, 0, 0, 0));
        TIMED(&create, create(&handle, mib << 20, &properties, 0));
        TIMED(&map, map(address, mib << 20, 0, handle, 0));
        TIMED(&set, set_access(address, mib << 20, &access, 1));
        TIMED(&unmap, unmap(address, mib << 20));
        TIMED(&release, release(handle));
        TIMED(&address_free, address_free(address, mib << 20));
    }
    struct series *all[] = {&reserve, &create, &map, &set, &unmap, &release, &address_free};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) print(all[i], mib);
}

// Maps pages of 2 MiB one by one and sets access to all in one call, as a growing expandable segment does.
static void time_access_to_pages(unsigned long pages) {
    struct series set = {.name = "cuMemSetAccess, pages"};
    uint64_t handles[256], address;
    for (int i = 0; i < ROUNDS / 6; i++) {
        CU(reserve(&address, pages * PAGE, 0, 0, 0));
        for (unsigned long page = 0; page < pages; page++) {
            CU(create(&handles[page], PAGE, &properties, 0));
            CU(map(address + page * PAGE, PAGE, 0, handles[page], 0));
        }
        TIMED(&set, set_access(address, pages * PAGE, &access, 1));
        for (unsigned long page = 0; page < pages; page++) {
            CU(unmap(address + page * PAGE, PAGE));
            CU(release(handles[page]));
        }
        CU(address_free(address, pages * PAGE));
    }
    print(&set, pages * 2);
}

static void time_rest(void) {
    struct series info = {.name = "cuMemGetInfo"}, record = {.name = "cuEventRecord"}, query = {.name = "cuEventQuery"},
                  wait = {.name = "cuStreamWaitEvent"}, fill = {.name = "cuMemsetD32Async"}, host = {.name = "cuMemHostAlloc"},
                  host_free = {.name = "cuMemFreeHost"};
    void *stream, *other, *event, *memory;
    uint64_t address;
    CU(stream_create(&stream, 1));
    CU(stream_create(&other, 1));
    CU(event_create(&event, 2));
    CU(mem_alloc(&address, PAGE));
    for (int i = 0; i < ROUNDS; i++) {
        size_t free_bytes, total;
        TIMED(&info, mem_info(&free_bytes, &total));
        TIMED(&fill, fill(address, 1, PAGE / 4, stream));
        TIMED(&record, event_record(event, stream));
        TIMED(&wait, stream_wait_event(other, event, 0));
        CU(stream_synchronize(stream));
        TIMED(&query, event_query(event));
    }
    for (int i = 0; i < ROUNDS / 3; i++) {
        TIMED(&host, host_alloc(&memory, (size_t)64 << 20, 0));
        TIMED(&host_free, host_free(memory));
    }
    print(&info, 0);
    print(&fill, 2);
    print(&record, 0);
    print(&wait, 0);
    print(&query, 0);
    print(&host, 64);
    print(&host_free, 64);
}

int main(void) {
    size_t before, total;
    cu_begin();
    CU(mem_info(&before, &total));
    printf("total %zu bytes, free with a context of its own alone %zu bytes\n", total, before);
    printf("%-22s %10s  %9s %9s\n", "call", "size", "least ns", "median");
    const unsigned long sizes[] = {2, 20, 200, 2000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) time_plain(sizes[i]);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) time_pages(sizes[i]);
    time_access_to_pages(10);
    time_access_to_pages(100);
    time_rest();
    return 0;
}
