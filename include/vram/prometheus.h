// vram/prometheus.h: an allocator's live statistics for Prometheus, in its text format: written once, or kept in a file for the node
// exporter's textfile collector. Without code: VRAM_PROMETHEUS=PATTERN[,interval=15s] (docs/guides/prometheus.md, which lists the metrics).
#ifndef VRAM_PROMETHEUS_H
#define VRAM_PROMETHEUS_H

#include "vram/allocator.h"
#include "vram/output.h"

#ifdef __cplusplus
extern "C" {
#endif

// Writes the statistics of every device that was used, each device's at one moment. IO when `write` returns false; NO_HOST_MEMORY. Any
// thread.
VRAM_API VRAM_NODISCARD enum vram_status vram_prometheus_write(struct vram_allocator *allocator, vram_write write, void *user);

struct vram_prometheus_options {
    const char *file;     // a pattern (vram_expand_path()), borrowed; should end in ".prom"
    uint64_t interval_ns; // between two writings; 0: 15 s
};
// Begins a thread that writes the file now, at every interval, and at the end. The file is always whole: it is replaced. The file can be
// written when this returns OK; later failures are tried again. One per allocator: another start replaces the first. INVALID_ARGUMENT for
// the pattern, IO, NO_HOST_MEMORY. Not while another thread starts or stops it on the same allocator.
VRAM_API VRAM_NODISCARD enum vram_status vram_prometheus_start(struct vram_allocator *allocator,
                                                               const struct vram_prometheus_options *options, struct vram_error *error);
// Writes once more and ends the thread. Also done by vram_destroy(). Nothing for an allocator without one.
VRAM_API void vram_prometheus_stop(struct vram_allocator *allocator);

#ifdef __cplusplus
}
#endif
#endif
