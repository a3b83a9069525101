#include "snapshot/vocabulary.h"

const char *vr_word_text(enum vr_word word) {
    static const char *const words[VR_WORD_COUNT] = {"",
#define ACTION_TEXT(name, text) text,
                                                     VR_ACTIONS(ACTION_TEXT)
#undef ACTION_TEXT
#define WORD_TEXT(name, text) text,
                                                         VR_WORDS(WORD_TEXT)
#undef WORD_TEXT
#define LATER_FIRST(column)
#define LATER_LATER(column)                                      #column,
#define VR_FIELD(column, type, density, number, LOG, since, KEY) LATER_##since(column)
#include "model/entry_fields.def"
    };
    return words[word];
}
