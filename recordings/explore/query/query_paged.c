// `paged`: what paged memory would have saved, in the report's words.
#include "explore/explored/savings.h"
#include "explore/query/selection.h"
#include "present/paged_text.h"

enum vram_status vr_query_paged(const struct vr_query *query) {
    struct vr_explored_recording *recording = NULL;
    struct vr_explored_device *device = NULL;
    const struct vram_paged_saving *saving = NULL;
    double share = 0;
    VR_TRY(vr_select_device(query, &recording, &device));
    VR_TRY(vr_explored_saving(recording, device, SIZE_MAX, &share, &saving, query->error));
    struct vr_json *json = &query->answer->json;
    if (saving == NULL) {
        vr_json_null(json, "paged");
        return VRAM_OK;
    }
    vr_json_object(json, "paged");
    vr_paged_json(saving, json);
    vr_json_object_end(json);
    return VRAM_OK;
}
