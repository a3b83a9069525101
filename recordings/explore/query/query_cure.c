// `cure`: what would have let the last request that failed fit, in the report's words.
#include "explore/explored/cures.h"
#include "explore/query/selection.h"
#include "present/cure_text.h"

static void put_cure_member(const struct vram_cure *cure, uint64_t events, struct vr_json *json) {
    struct vr_text text = {0};
    if (cure->verdict == VRAM_CURE_UNFINISHED)
        vr_text_printf(&text, "A history of %s events takes too long to be replayed while you wait: `vram report` looks for the cure.",
                       vr_count(events).text);
    else
        vr_cure_sentence(cure, &text);
    vr_json_string(json, "text", vr_text_string(&text));
    vr_text_release(&text);
}

enum vram_status vr_query_cure(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    const struct vram_cure *cure = NULL;
    double share = 0;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_explored_cure(recording, device, SIZE_MAX, &share, &cure, query->error));
    struct vr_json *json = &query->answer->json;
    if (cure == NULL) {
        vr_json_null(json, "cure");
        return VRAM_OK;
    }
    vr_json_object(json, "cure");
    vr_cure_json(cure, json);
    vr_json_object_end(json);
    put_cure_member(cure, device->view->history->count, json);
    return VRAM_OK;
}
