// apart.h: gives a model its own columns for events' streams and `has`, instead of shared zeros, so that a test can change them.
#ifndef VR_TESTS_SUPPORT_APART_H
#define VR_TESTS_SUPPORT_APART_H

#include "model/columns.h"
#include "model/model.h"

static inline bool is_shared(const struct vr_history *history, const void *column) {
    size_t same = 0;
    for (size_t i = 0; i < vr_history_columns.count; i++) same += vr_column_pointer(&vr_history_columns, history, i) == column;
    return same > 1;
}

static inline void open_apart(struct vr_history *history) {
    if (history->stream.apart == NULL || is_shared(history, history->stream.apart))
        history->stream.apart = calloc(history->count + 1, sizeof *history->stream.apart);
    if (history->has.apart == NULL || is_shared(history, history->has.apart))
        history->has.apart = calloc(history->count + 1, sizeof *history->has.apart);
    assert(history->stream.apart != NULL && history->has.apart != NULL);
}
static inline void set_stream(struct vr_history *history, size_t event, uint64_t stream) {
    history->stream.apart[event] = stream ^ history->stream.common;
}
static inline void set_has(struct vr_history *history, size_t event, uint32_t has) {
    history->has.apart[event] = has ^ history->has.common;
}

#endif
