// jsontext.h: a value of the machine as JSON text (compact, ASCII), for settings and for metadata that is no string.
#ifndef VR_SNAPSHOT_JSONTEXT_H
#define VR_SNAPSHOT_JSONTEXT_H

#include "base/text.h"
#include "snapshot/machine.h"

// Appends `value` to *text; what JSON has no word for as python_text.h says. What was not kept becomes null. LIMIT for nesting
// beyond 60 levels (a container may be inside itself) or text beyond the machine's budget; NO_HOST_MEMORY.
enum vram_status vr_json_text_write(struct vr_text *text, struct vr_machine *machine, uint64_t value);
// The string id of the JSON text of a value, strings included.
enum vram_status vr_json_text_string(struct vr_machine *machine, uint64_t value, uint32_t *id);

#endif
