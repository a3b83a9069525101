// recorded_conf.h: the settings a recording says were in force.
#ifndef VR_ANALYZE_RECORDED_CONF_H
#define VR_ANALYZE_RECORDED_CONF_H

#include "base/text.h"
#include "model/model.h"

// As an option string of the keys that decide placement (exact-replay 1). Appends to *conf; "" when the recording has no settings. The
// structured values win over the recorded string, which may be older.
void vr_recorded_conf(const struct vr_model *model, struct vr_text *conf);

#endif
