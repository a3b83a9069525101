// html.h: the pickle inside an HTML page, as torch.cuda._memory_viz makes them.
#ifndef VR_SNAPSHOT_HTML_H
#define VR_SNAPSHOT_HTML_H

#include "snapshot/input.h"

// The base64 text of a page, decoded as it is read. Lives where the input made of it is used.
struct vr_html {
    struct vr_input *page;
    bool damaged; // read() failed at a byte that is not base64
    bool ended;
    unsigned char group[3]; // decoded and not yet delivered, where the reader's buffer was full
    size_t group_next, group_end;
};

// Finds the first `"base64": "..."` of the page and makes *input the bytes in it. BAD_INPUT when there is none; IO, NO_HOST_MEMORY.
enum vram_status vr_html_open(struct vr_html *html, struct vr_input *page, const char *name, struct vram_input *input,
                              struct vram_error *error);

#endif
