// top_draw.h: one frame of `vram top`.
#ifndef CLI_TOP_DRAW_H
#define CLI_TOP_DRAW_H

#include "vram/status.h"
#include "watch.h"

enum top_sort { TOP_BY_LIVE, TOP_BY_PEAK, TOP_BY_COUNT, TOP_BY_MADE, TOP_SORT_COUNT };

struct top_view {
    const char *path, *program;
    int pid; // 0: a file
    struct vram_style style;
    unsigned columns, rows;
    enum watch_by by;
    enum top_sort sort;
    size_t first; // row at the top of the list; cut when it is beyond
    char search[64];
    bool searching, paused;
};

// Prints the frame; with `live` over the one before, as many rows as the terminal has.
void top_draw(const struct watch *watch, struct top_view *view, bool live);
// The same as one JSON object. The exit code.
int top_json(const struct watch *watch, const struct top_view *view);

#endif
