// bench_symbols: measures names, lines and inlined functions of 10,000 addresses of a program file. Usage: bench_symbols FILE. The
// addresses are spread evenly between the first and last function in the file's symbol tables.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "history/symbols.h"
#include "os/os.h"

enum { ADDRESSES = 10000 };

struct told {
    size_t frames;
    size_t lines;
    size_t last;
    size_t addresses;
};

static enum vram_status count_frame(void *context, size_t index, const char *name, const char *filename, int64_t line) {
    struct told *told = context;
    (void)name;
    told->frames++;
    if (index + 1 != told->last) told->addresses++;
    told->last = index + 1;
    if (filename != NULL && line > 0) told->lines++;
    return VRAM_OK;
}

static double now_s(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    static uint64_t offsets[ADDRESSES];
    struct vr_os_view view;
    if (argc != 2 || vr_os_view_open(argv[1], &view) != VRAM_OK) {
        fprintf(stderr, "usage: bench_symbols FILE\n");
        return 2;
    }
    // Find the code segment in the program headers.
    uint64_t start = 0, bytes = 0;
    uint64_t at, phoff;
    memcpy(&phoff, view.bytes + 32, 8);
    uint16_t size, count;
    memcpy(&size, view.bytes + 54, 2);
    memcpy(&count, view.bytes + 56, 2);
    for (uint16_t i = 0; i < count; i++) {
        uint32_t type, flags;
        at = phoff + (uint64_t)i * size;
        memcpy(&type, view.bytes + at, 4);
        memcpy(&flags, view.bytes + at + 4, 4);
        if (type != 1 || (flags & 1) == 0) continue;
        memcpy(&start, view.bytes + at + 16, 8);
        memcpy(&bytes, view.bytes + at + 32, 8);
    }
    vr_os_view_close(&view);
    for (uint64_t i = 0; i < ADDRESSES; i++) offsets[i] = start + 1 + i * (bytes / ADDRESSES);
    for (int names_only = 1; names_only >= 0; names_only--) {
        const struct vr_symbol_places places = {.no_lines = names_only != 0};
        struct told told = {0};
        const struct vr_symbol_sink sink = {.frame = count_frame, .context = &told};
        const double begin = now_s();
        if (vr_symbols_find(&places, argv[1], "", offsets, ADDRESSES, &sink, NULL) != VRAM_OK) return 4;
        printf("%s: %d addresses, %zu known, %zu frames, %zu with lines: %.3f s\n", names_only ? "names" : "names and lines", ADDRESSES,
               told.addresses, told.frames, told.lines, now_s() - begin);
    }
    return 0;
}
