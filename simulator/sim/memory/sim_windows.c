#include "sim/memory/sim_content.h"

#include "os/os.h"

enum { BLOCK_BYTES = VR_SIM_WINDOW_BYTES / VR_SIM_WINDOW_BLOCKS };

static unsigned char *bytes_at(const struct vr_sim_window *window, uint64_t at) {
    return (unsigned char *)(uintptr_t)(window->host + at % VR_SIM_WINDOW_BYTES);
}

void vr_sim_windows_release(struct vr_sim_windows *windows) {
    for (size_t i = 0; i < windows->count; i++) vr_os_unmap(windows->items[i].host, VR_SIM_WINDOW_BYTES);
    free(windows->items);
    vr_map_release(&windows->by_number);
    *windows = (struct vr_sim_windows){.file = -1};
}

bool vr_sim_windows_lengthen(struct vr_sim_windows *windows, uint64_t end) {
    if (end <= windows->file_bytes) return true;
    end = vr_round_up(end, VR_SIM_WINDOW_BYTES);
    if (vr_os_shared_resize(windows->file, end) != VRAM_OK) return false;
    windows->file_bytes = end;
    return true;
}

static struct vr_sim_window *find_window(const struct vr_sim_windows *windows, uint64_t number) {
    const uint64_t position = vr_map_get(&windows->by_number, number + 1);
    return position == 0 ? NULL : &windows->items[position - 1];
}

static bool map_window(const struct vr_sim_windows *windows, uint64_t number, uint64_t *host) {
    uint64_t mapped;
    if (vr_os_map(0, VR_SIM_WINDOW_BYTES, 0, false, &mapped) != VRAM_OK) return false;
    const bool shown = vr_os_shared_map(windows->file, number * VR_SIM_WINDOW_BYTES, VR_SIM_WINDOW_BYTES, mapped) == VRAM_OK &&
                       vr_os_protect(mapped, VR_SIM_WINDOW_BYTES, true, true) == VRAM_OK;
    if (!shown) vr_os_unmap(mapped, VR_SIM_WINDOW_BYTES);
    if (shown) *host = mapped;
    return shown;
}

static struct vr_sim_window *open_window(struct vr_sim_windows *windows, uint64_t number) {
    struct vr_sim_window made = {.number = number};
    if (!vr_sim_windows_lengthen(windows, (number + 1) * VR_SIM_WINDOW_BYTES)) return NULL;
    if (VR_GROW(windows, items, windows->count + 1) != VRAM_OK || vr_map_reserve(&windows->by_number, 1) != VRAM_OK) return NULL;
    if (!map_window(windows, number, &made.host)) return NULL;
    windows->items[windows->count++] = made;
    if (vr_map_set(&windows->by_number, number + 1, windows->count) != VRAM_OK) assert(!"there is room");
    return &windows->items[windows->count - 1];
}

static void close_window(struct vr_sim_windows *windows, struct vr_sim_window *window) {
    struct vr_sim_window *last = &windows->items[windows->count - 1];
    const uint64_t position = vr_map_take(&windows->by_number, window->number + 1);
    vr_os_unmap(window->host, VR_SIM_WINDOW_BYTES);
    if (window != last) {
        *window = *last;
        if (vr_map_set(&windows->by_number, window->number + 1, position) != VRAM_OK) assert(!"the map already has the key");
    }
    windows->count--;
}

// Returns the blocks [first, last) that contain part of a range in one window.
static void blocks_of(uint64_t at, uint64_t size_bytes, size_t *first, size_t *last) {
    const uint64_t within = at % VR_SIM_WINDOW_BYTES;
    *first = (size_t)(within / BLOCK_BYTES);
    *last = (size_t)((within + size_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES);
}

static bool is_touched(const struct vr_sim_window *window, uint64_t at, uint64_t size_bytes) {
    size_t first, last;
    blocks_of(at, size_bytes, &first, &last);
    for (size_t i = first; i < last; i++)
        if ((window->touched[i / 64] >> i % 64 & 1) != 0) return true;
    return false;
}

unsigned char *vr_sim_windows_write(struct vr_sim_windows *windows, uint64_t at, uint64_t size_bytes) {
    assert(size_bytes > 0 && vr_sim_windows_span(at, size_bytes) == size_bytes);
    struct vr_sim_window *window = find_window(windows, at / VR_SIM_WINDOW_BYTES);
    if (window == NULL) window = open_window(windows, at / VR_SIM_WINDOW_BYTES);
    if (window == NULL) return NULL;
    size_t first, last;
    blocks_of(at, size_bytes, &first, &last);
    for (size_t i = first; i < last; i++) window->touched[i / 64] |= (uint64_t)1 << i % 64;
    return bytes_at(window, at);
}

const unsigned char *vr_sim_windows_read(const struct vr_sim_windows *windows, uint64_t at) {
    const struct vr_sim_window *window = find_window(windows, at / VR_SIM_WINDOW_BYTES);
    return window == NULL ? NULL : bytes_at(window, at);
}

// Zeroes part of a page.
static bool zero_part(struct vr_sim_windows *windows, uint64_t at, uint64_t size_bytes, bool foreign) {
    if (size_bytes == 0) return true;
    const struct vr_sim_window *window = find_window(windows, at / VR_SIM_WINDOW_BYTES);
    if (!foreign && (window == NULL || !is_touched(window, at, size_bytes))) return true;
    unsigned char *bytes = vr_sim_windows_write(windows, at, size_bytes);
    if (bytes != NULL) memset(bytes, 0, (size_t)size_bytes);
    return bytes != NULL;
}

bool vr_sim_windows_zero(struct vr_sim_windows *windows, uint64_t at, uint64_t size_bytes, bool foreign) {
    const uint64_t end = at + size_bytes, page = vr_os_page_bytes();
    const uint64_t first = vr_round_up(at, page), last = vr_round_down(end, page);
    if (first > last) return zero_part(windows, at, size_bytes, foreign);
    if (foreign && first < last)
        vr_os_shared_discard(windows->file, first, last - first);
    else
        vr_sim_windows_discard(windows, first, last - first, 0);
    return zero_part(windows, at, first - at, foreign) && zero_part(windows, last, end - last, foreign);
}

// Discards pages, except in a forked child: the file belongs to its parent.
static void discard_span(const struct vr_sim_windows *windows, uint64_t at, uint64_t size_bytes) {
    if (windows->process == vr_os_process_id()) vr_os_shared_discard(windows->file, at, size_bytes);
}

// Discards whole pages in one window. Returns true if the window has no pages left.
static bool discard_in(struct vr_sim_windows *windows, struct vr_sim_window *window, uint64_t at, uint64_t size_bytes) {
    if (is_touched(window, at, size_bytes)) {
        discard_span(windows, at, size_bytes);
        const uint64_t within = at % VR_SIM_WINDOW_BYTES;
        const size_t first = (size_t)((within + BLOCK_BYTES - 1) / BLOCK_BYTES), last = (size_t)((within + size_bytes) / BLOCK_BYTES);
        for (size_t i = first; i < last; i++) window->touched[i / 64] &= ~((uint64_t)1 << i % 64);
    }
    uint64_t touched = 0;
    for (size_t i = 0; i < VR_COUNT_OF(window->touched); i++) touched |= window->touched[i];
    return touched == 0;
}

void vr_sim_windows_discard(struct vr_sim_windows *windows, uint64_t at, uint64_t size_bytes, uint64_t settled) {
    const uint64_t page = vr_os_page_bytes(), last = vr_round_down(at + size_bytes, page);
    at = vr_round_up(at, page);
    for (uint64_t span; at < last && windows->count > 0; at += span) {
        span = vr_sim_windows_span(at, last - at);
        const uint64_t number = at / VR_SIM_WINDOW_BYTES;
        struct vr_sim_window *window = find_window(windows, number);
        if (window != NULL && discard_in(windows, window, at, span) && number < settled / VR_SIM_WINDOW_BYTES)
            close_window(windows, window);
    }
}

bool vr_sim_windows_check(const struct vr_sim_windows *windows) {
    if (windows->count != windows->by_number.count) return false;
    for (size_t i = 0; i < windows->count; i++) {
        const struct vr_sim_window *window = &windows->items[i];
        if (vr_map_get(&windows->by_number, window->number + 1) != i + 1) return false;
        if ((window->number + 1) * VR_SIM_WINDOW_BYTES > windows->file_bytes) return false;
    }
    return vr_map_check(&windows->by_number);
}
