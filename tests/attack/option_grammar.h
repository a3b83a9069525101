// option_grammar.h: random option strings and random settings of recordings, drawn from what each key may say and from what it may not.
#ifndef VR_TEST_OPTION_GRAMMAR_H
#define VR_TEST_OPTION_GRAMMAR_H

#include "base/text.h"

enum { GRAMMAR_PAIRS = 10 };

// A string, the pairs it was made of, and the shorter string in which each key is written once, with its last value.
struct grammar_string {
    struct vr_text text, last_only;
    bool is_damaged; // characters were changed afterwards: the pairs say nothing about it
};

// Draws a string; the texts keep their memory between calls, vr_text_release() frees them.
void grammar_draw(uint64_t *random, struct grammar_string *string);
// Appends a JSON object: an `allocator_settings` with keys of every spelling that recordings have. `conf` is the value of one of those
// that hold an option string.
void grammar_draw_settings(uint64_t *random, const char *conf, struct vr_text *json);

#endif
