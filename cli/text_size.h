// text_size.h: how long the text of a recording will be where each row has its stack written out.
#ifndef CLI_TEXT_SIZE_H
#define CLI_TEXT_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "vram/recording.h"

// About how many bytes: JSON, or a table of the events alone. 0 without memory to count.
uint64_t text_size(const struct vram_recording *recording, bool events_alone);

// Whether text of about `text_bytes` may be made of an input of `input_bytes`. Says on standard error what will be written where that is
// much, and why it is not where that is too much: a file of a megabyte can share one stack among so many events that its JSON has 20 GB.
bool text_size_is_good(const char *name, const char *format, uint64_t input_bytes, uint64_t text_bytes);

#endif
