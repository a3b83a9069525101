#include "read_operations.h"

#include <string.h>

// By which PyTorch itself reads what another operation made.
static const char *const carriers[] = {"_local_scalar_dense", "item", "copy_", "_to_copy", "to", "is_nonzero"};

static size_t word_length(const char *text) { return strcspn(text, " "); }

static const char *next_word(const char *text) {
    text += word_length(text);
    return text + strspn(text, " ");
}

static bool is_word(const char *text, const char *word, size_t length) {
    return word_length(text) == length && memcmp(text, word, length) == 0;
}

void vr_read_operations_add(const char *function, char *text, size_t capacity) {
    static const char begin[] = "at::_ops::";
    const char *name = strstr(function, begin);
    if (name == NULL) return;
    name += sizeof begin - 1;
    const size_t length = strcspn(name, ":("), used = strlen(text);
    if (length == 0 || name[length] != ':' || memchr(name, ' ', length) != NULL || used + length + 2 > capacity) return;
    for (const char *word = text; *word != '\0'; word = next_word(word))
        if (is_word(word, name, length)) return;
    if (used > 0) text[used] = ' ';
    memcpy(text + used + (used > 0), name, length);
    text[used + (used > 0) + length] = '\0';
}

// Without the underscore of what PyTorch keeps for itself; behind the name an overload, a variant or a number.
static bool is_called(const char *word, const char *name, size_t length) {
    size_t rest = word_length(word);
    if (rest >= length && memcmp(word, name, length) == 0 && (rest == length || word[length] == '_')) return true;
    if (*word != '_') return false;
    word++;
    rest--;
    if (rest < length || memcmp(word, name, length) != 0) return false;
    return rest == length || word[length] == '_' || (word[length] >= '0' && word[length] <= '9');
}

bool vr_read_operations_have(const char *text, const char *name, size_t length) {
    for (; *text != '\0'; text = next_word(text))
        if (is_called(text, name, length)) return true;
    return false;
}

bool vr_read_operations_count(const char *text) {
    return vr_read_operations_have(text, "nonzero", 7) || vr_read_operations_have(text, "unique", 6) ||
           vr_read_operations_have(text, "unique_consecutive", 18);
}

static bool carries_word(const char *word) {
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++)
        if (is_called(word, carriers[i], strlen(carriers[i]))) return true;
    return false;
}

const char *vr_read_operations_main(const char *text, size_t *length) {
    const char *found = text;
    for (const char *word = text; *word != '\0'; word = next_word(word)) {
        found = word;
        if (!carries_word(word)) break;
    }
    *length = word_length(found);
    return found;
}
