// The formats of other tools that the library writes.
#include "../formats.h"
#include "vram/export.h"

static enum vram_status export_as(const struct vram_recording *recording, enum vram_export_format format,
                                  const struct convert_options *options, vram_write write, void *user, struct vram_error *error) {
    const struct vram_export_options wanted = {.measure = (enum vram_export_measure)options->measure,
                                               .table = (enum vram_export_table)options->table};
    return vram_recording_export(recording, format, &wanted, write, user, error);
}

#define EXPORT(name, format)                                                                                                               \
    enum vram_status convert_##name(const struct vram_recording *recording, const struct convert_options *options, vram_write write,       \
                                    void *user, struct vram_error *error) {                                                                \
        return export_as(recording, format, options, write, user, error);                                                                  \
    }
EXPORT(csv, VRAM_EXPORT_RMM)
EXPORT(events, VRAM_EXPORT_EVENTS)
EXPORT(perfetto, VRAM_EXPORT_PERFETTO)
EXPORT(folded, VRAM_EXPORT_FOLDED)
EXPORT(pprof, VRAM_EXPORT_PPROF)
EXPORT(arrow, VRAM_EXPORT_ARROW)
