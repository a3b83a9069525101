// option_grammar.h: draws random option strings and recorded settings, with valid and invalid values for each key.
#ifndef VR_TEST_OPTION_GRAMMAR_H
#define VR_TEST_OPTION_GRAMMAR_H

#include "base/text.h"

enum { GRAMMAR_PAIRS = 10 };

// A string, its pairs, and the shorter string that has each key once, with its last value.
struct grammar_string {
    struct vr_text text, last_only;
    bool is_damaged; // characters were changed afterwards, so the pairs do not describe it
};

// Draws a string. The texts keep their memory between calls; free them with vr_text_release().
void grammar_draw(uint64_t *random, struct grammar_string *string);
// Appends a JSON object: `allocator_settings` with keys in every spelling that recordings have. `conf` is the value of the keys that hold
// an option string.
void grammar_draw_settings(uint64_t *random, const char *conf, struct vr_text *json);

#endif
