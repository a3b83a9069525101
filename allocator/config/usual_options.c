// The default of every option.
#include "config/options.h"

#define VR_OPTION_ALIAS(alias, key)
#define VR_RECORDED(key, usual, meaning)
#define NO_CLASSES                                                                                                                         \
    {                                                                                                                                      \
        {                                                                                                                                  \
            {0}, { 0, 0 }                                                                                                                  \
        }                                                                                                                                  \
    }
#define VR_OPTION(key, kind, field, smallest, usual, reset, recorded, places, syntax, summary) .field = usual,
static const struct vr_options usual_options = {
#include "config/options.def"
};
#undef VR_OPTION
#undef VR_OPTION_ALIAS

// Copies bytes, including padding, because options are compared by bytes.
void vr_options_init(struct vr_options *options) { memcpy(options, &usual_options, sizeof *options); }
