// option_string.h: option strings with one option changed.
#ifndef VR_REPLAY_OPTION_STRING_H
#define VR_REPLAY_OPTION_STRING_H

#include <stdbool.h>
#include <stddef.h>

// conf with its own value of the option's key replaced ("paged:True" in "paged:False,...") or added at the end. False when it is the same
// string, or longer than `capacity` with its NUL; `changed` is not to be used then.
bool vr_option_string_with(const char *conf, const char *option, char *changed, size_t capacity);

#endif
