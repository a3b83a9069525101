// formats.h: the formats that recordings can be written in.
#ifndef CLI_FORMATS_H
#define CLI_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

#include "vram/recording.h"
#include "vram/status.h"

struct convert_options {
    bool pretty;      // with line breaks and indentation
    unsigned measure; // of folded stacks: enum vram_export_measure
    unsigned table;   // of Arrow files: enum vram_export_table
    const char *name; // of the input, for messages
    const char *path; // where the output goes; "-": standard output
};

// Writes the recording through `write`. Returns the status, and sets *error, as vram_recording_write() does.
typedef enum vram_status convert_function(const struct vram_recording *recording, const struct convert_options *options, vram_write write,
                                          void *user, struct vram_error *error);

#define FORMAT(name, extensions, is_text, function, help) convert_function function;
#include "formats.def"
#undef FORMAT

#endif
