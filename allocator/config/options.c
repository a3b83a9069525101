#include "config/options.h"

#include "config/values.h"
#include "os/os.h"
#include "vram/options.h"

#define VR_OPTION_ALIAS(alias, key)
#define VR_RECORDED(key, usual, meaning)
#define VR_OPTION(key, kind, field, smallest, usual, reset, recorded, places, syntax, summary)                                             \
    {                                                                                                                                      \
        #key,                                                                                                                              \
        syntax,                                                                                                                            \
        summary,                                                                                                                           \
        recorded,                                                                                                                          \
        offsetof(struct vr_options, field),                                                                                                \
        sizeof(((struct vr_options *)0)->field),                                                                                           \
        smallest,                                                                                                                          \
        VR_KIND_##kind,                                                                                                                    \
        OPTION_##reset,                                                                                                                    \
        OPTION_##places},
#define OPTION_KEEP   false
#define OPTION_RESET  true
#define OPTION_OTHER  false
#define OPTION_PLACES true
#define ALWAYS(key)                                                                                                                        \
    { key, false }
#define WHEN_SET(key)                                                                                                                      \
    { key, true }
#define NEVER                                                                                                                              \
    { NULL, false }
const struct vr_option_row vr_option_rows[] = {
#include "config/options.def"
};
const size_t vr_option_row_count = VR_COUNT_OF(vr_option_rows);
#undef VR_OPTION
#undef VR_OPTION_ALIAS

static const struct {
    const char *alias;
    const char *key;
} aliases[] = {
#define VR_OPTION(key, kind, field, smallest, usual, reset, recorded, places, syntax, summary)
#define VR_OPTION_ALIAS(alias, key) {#alias, #key},
#include "config/options.def"
#undef VR_OPTION
#undef VR_OPTION_ALIAS
#undef VR_RECORDED
};

// This option is read before all others, because it is the minimum of two of them.
static const char large_segment_key[] = "large_segment_size_mb";

// Gets the defaults that apply with `options`: one of them is the large segment's size.
static void defaults_with(const struct vr_options *options, struct vr_options *defaults) {
    vr_options_init(defaults);
    defaults->max_non_split_rounding_bytes = options->large_segment_bytes;
}

static void copy_field(const struct vr_option_row *row, struct vr_options *to, const struct vr_options *from) {
    memcpy((char *)to + row->field, (const char *)from + row->field, row->field_bytes);
}

static bool check_classes(const struct vr_options *options) {
    if (options->reserve_class_count > VR_RESERVE_CLASSES) return false;
    for (uint32_t i = 0; i < options->reserve_class_count; i++) {
        const char *name = options->reserve_classes[i].name;
        if (name[0] == '\0' || memchr(name, '\0', VR_CLASS_NAME) == NULL) return false;
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(name, options->reserve_classes[j].name) == 0) return false;
    }
    return true;
}

bool vr_options_check(const struct vr_options *options) {
    const double garbage = options->garbage_collection_threshold, share = options->per_process_memory_fraction;
    if (options->large_segment_bytes < 11 * VR_MIB) return false;
    if (options->max_split_bytes < options->large_segment_bytes || options->max_non_split_rounding_bytes < options->large_segment_bytes)
        return false;
    if (!(garbage >= 0 && garbage < 1) || !(share >= 0 && share <= 1)) return false;
    for (unsigned i = 0; i < VR_ROUNDUP_BUCKETS; i++)
        if (options->roundup_divisions[i] != 0 && !vr_is_power_of_2(options->roundup_divisions[i])) return false;
    if (options->request_padding_bytes > VR_PADDING_MAX || options->base_alignment_kib > VR_ALIGNMENT_KIB_MAX) return false;
    if (options->pytorch < VR_PYTORCH(2, 0) || options->pytorch > VR_PYTORCH_NEWEST) return false;
    return vr_is_power_of_2(options->pinned_register_threads) && check_classes(options);
}

// --- keys ---------------------------------------------------------------------------------------------------------------
static const struct vr_option_row *find_row(const char *key) {
    for (size_t i = 0; i < VR_COUNT_OF(aliases); i++)
        if (strcmp(key, aliases[i].alias) == 0) key = aliases[i].key;
    for (size_t i = 0; i < vr_option_row_count; i++)
        if (strcmp(key, vr_option_rows[i].key) == 0) return &vr_option_rows[i];
    return NULL;
}

size_t vram_edit_distance(const char *word, const char *known) {
    if (word == NULL || known == NULL) return SIZE_MAX;
    size_t row[VR_WORD_MAX + 1];
    const size_t length = strlen(known);
    if (length > VR_WORD_MAX) return SIZE_MAX;
    for (size_t j = 0; j <= length; j++) row[j] = j;
    for (size_t i = 0; word[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t best = diagonal + (word[i] != known[j]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j + 1] + 1 < best) best = row[j + 1] + 1;
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[length];
}

// Returns the known key most similar to `word`; NULL if none is similar enough to be what was meant.
static const char *nearest_key(const char *word) {
    const char *nearest = NULL;
    size_t best = 3 + strlen(word) / 4;
    for (size_t i = 0; i < vr_option_row_count + VR_COUNT_OF(aliases); i++) {
        const char *key = i < vr_option_row_count ? vr_option_rows[i].key : aliases[i - vr_option_row_count].alias;
        const size_t distance = vram_edit_distance(word, key);
        if (distance >= best) continue;
        best = distance;
        nearest = key;
    }
    return nearest;
}

static enum vram_status unknown_key(const struct vr_lexer *lexer) {
    char word[48];
    const char *nearest = nearest_key(lexer->word);
    return vr_option_fail(lexer->error, VRAM_BAD_OPTION, lexer->offset, "unknown option '%s'%s%s%s", vr_word_for_message(lexer->word, word),
                          nearest == NULL ? "" : " (did you mean '", nearest == NULL ? "" : nearest, nearest == NULL ? "" : "'?)");
}

// --- parsing --------------------------------------------------------------------------------------------------------------
// Reads large_segment_size_mb wherever it appears; the last value counts. read_pairs() reports all other mistakes.
static enum vram_status read_large_segment(struct vr_options *options, const char *text, struct vram_error *error) {
    struct vr_lexer lexer;
    VR_TRY(vr_lex_begin(&lexer, text, error));
    bool in_list = false, at_key = true;
    while (lexer.token != VR_TOKEN_END) {
        const bool found = at_key && lexer.token == VR_TOKEN_WORD && strcmp(lexer.word, large_segment_key) == 0;
        if (lexer.token == VR_TOKEN_OPEN || lexer.token == VR_TOKEN_CLOSE) in_list = lexer.token == VR_TOKEN_OPEN;
        at_key = !in_list && lexer.token == VR_TOKEN_COMMA;
        VR_TRY(vr_lex_next(&lexer));
        if (!found) continue;
        VR_TRY(vr_lex_expect(&lexer, VR_TOKEN_COLON, "':'"));
        VR_TRY(vr_option_read(find_row(large_segment_key), options, &lexer));
    }
    return VRAM_OK;
}

// Reads every pair in order. The large segment's size already has the last value in `text` and keeps it: as in PyTorch, the other sizes are
// checked against that value, wherever they appear.
static enum vram_status read_pairs(struct vr_options *options, const char *text, struct vram_error *error) {
    struct vr_lexer lexer;
    const uint64_t large_segment_bytes = options->large_segment_bytes;
    VR_TRY(vr_lex_begin(&lexer, text, error));
    while (lexer.token != VR_TOKEN_END) {
        if (lexer.token != VR_TOKEN_WORD) return vr_lex_fail(&lexer, NULL, "an option name");
        const struct vr_option_row *row = find_row(lexer.word);
        if (row == NULL) return unknown_key(&lexer);
        VR_TRY(vr_lex_next(&lexer));
        VR_TRY(vr_lex_expect(&lexer, VR_TOKEN_COLON, "':'"));
        VR_TRY(vr_option_read(row, options, &lexer));
        options->large_segment_bytes = large_segment_bytes;
        if (lexer.token != VR_TOKEN_END) VR_TRY(vr_lex_expect(&lexer, VR_TOKEN_COMMA, "','"));
    }
    return VRAM_OK;
}

enum vram_status vr_options_parse(struct vr_options *options, const char *text, struct vram_error *error) {
    struct vr_options result = *options, defaults;
    if (text == NULL) text = "";
    VR_TRY(read_large_segment(&result, text, error));
    defaults_with(&result, &defaults);
    for (size_t i = 0; i < vr_option_row_count; i++)
        if (vr_option_rows[i].reset) copy_field(&vr_option_rows[i], &result, &defaults);
    VR_TRY(read_pairs(&result, text, error));
    assert(vr_options_check(&result));
    *options = result;
    return VRAM_OK;
}

// --- one option -------------------------------------------------------------------------------------------------------------

static void set_default(struct vr_options *options, const struct vr_option_row *row) {
    struct vr_options defaults;
    defaults_with(options, &defaults);
    copy_field(row, options, &defaults);
    if (row->kind == VR_KIND_CLASSES) options->reserve_class_count = 0;
}

// Reads "key:value", or sets the default if there is no value.
static enum vram_status read_one(struct vr_options *options, const char *text, bool has_value, struct vram_error *error) {
    struct vr_lexer lexer;
    VR_TRY(vr_lex_begin(&lexer, text, error));
    if (lexer.token != VR_TOKEN_WORD) return vr_lex_fail(&lexer, NULL, "an option name");
    const struct vr_option_row *row = find_row(lexer.word);
    if (row == NULL) return unknown_key(&lexer);
    const bool follows = options->max_non_split_rounding_bytes == options->large_segment_bytes && strcmp(row->key, large_segment_key) == 0;
    set_default(options, row);
    VR_TRY(vr_lex_next(&lexer));
    if (has_value) {
        VR_TRY(vr_lex_expect(&lexer, VR_TOKEN_COLON, "':'"));
        VR_TRY(vr_option_read(row, options, &lexer));
    }
    if (lexer.token != VR_TOKEN_END) return vr_lex_fail(&lexer, NULL, "the end of the value");
    if (follows) options->max_non_split_rounding_bytes = options->large_segment_bytes;
    return VRAM_OK;
}

enum vram_status vr_options_set(struct vr_options *options, const char *key, const char *value, struct vram_error *error) {
    struct vr_options result = *options;
    struct vr_text text = {0};
    vr_text_printf(&text, "%s%s%s", key, value == NULL ? "" : ":", value == NULL ? "" : value);
    enum vram_status status = vr_text_status(&text);
    if (status == VRAM_OK) {
        status = read_one(&result, text.bytes, value != NULL, error);
    } else {
        status = vr_fail(error, status, VRAM_NO_OFFSET, "not enough host memory for the text of an option");
    }
    vr_text_release(&text);
    VR_TRY(status);
    if (!vr_options_check(&result)) {
        return vr_fail(error, VRAM_BAD_OPTION, VRAM_NO_OFFSET,
                       "max_split_size_mb and max_non_split_rounding_mb must be at least large_segment_size_mb");
    }
    *options = result;
    return VRAM_OK;
}

const char *vr_options_environment(const char **variable) {
    static const char *const names[] = {"VRAM_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
    for (size_t i = 0; i < VR_COUNT_OF(names); i++) {
        const char *value = vr_os_getenv(names[i]);
        if (value == NULL) continue;
        *variable = names[i];
        return value;
    }
    return NULL;
}

// --- printing ---------------------------------------------------------------------------------------------------------------
// Prints the values of one row: in `options`, and the default that applies with them. Returns false if host memory ran out.
static bool print_row(const struct vr_option_row *row, const struct vr_options *options, struct vr_text *value, struct vr_text *usual) {
    struct vr_options defaults;
    defaults_with(options, &defaults);
    value->length = usual->length = 0;
    vr_option_print(row, options, value);
    vr_option_print(row, &defaults, usual);
    return !value->failed && !usual->failed;
}

static void print_rows(const struct vr_options *options, bool only_places, struct vr_text *text) {
    struct vr_text value = {0}, usual = {0};
    const char *separator = "";
    for (size_t i = 0; i < vr_option_row_count; i++) {
        const struct vr_option_row *row = &vr_option_rows[i];
        if (only_places && !row->places) continue;
        if (!print_row(row, options, &value, &usual)) {
            text->failed = true;
            break;
        }
        if (strcmp(value.bytes, usual.bytes) == 0) continue;
        vr_text_printf(text, "%s%s:%s", separator, row->key, value.bytes);
        separator = ",";
    }
    vr_text_release(&value);
    vr_text_release(&usual);
}

void vr_options_print(const struct vr_options *options, struct vr_text *text) { print_rows(options, false, text); }
void vr_options_print_places(const struct vr_options *options, struct vr_text *text) { print_rows(options, true, text); }

enum vram_status vram_options_check(const char *text, struct vram_error *error) {
    struct vr_options options;
    vr_options_init(&options);
    return vr_options_parse(&options, text, error);
}

enum vram_status vr_options_visit(const struct vr_options *options, vram_option_visitor visit, void *user, struct vram_error *error) {
    struct vr_text value = {0}, usual = {0};
    enum vram_status status = VRAM_OK;
    for (size_t i = 0; i < vr_option_row_count; i++) {
        const struct vr_option_row *row = &vr_option_rows[i];
        if (!print_row(row, options, &value, &usual)) {
            status = vr_fail(error, VRAM_NO_HOST_MEMORY, VRAM_NO_OFFSET, "not enough host memory for the text of an option");
            break;
        }
        const struct vram_option option = {
            .key = row->key,
            .value = value.bytes,
            .default_value = usual.bytes,
            .is_default = strcmp(value.bytes, usual.bytes) == 0,
            .syntax = row->syntax,
            .summary = row->summary,
        };
        if (!visit(&option, user)) break;
    }
    vr_text_release(&value);
    vr_text_release(&usual);
    return status;
}

enum vram_status vram_options_list(const char *text, vram_option_visitor visit, void *user, struct vram_error *error) {
    VR_REQUIRE_OR_FAIL(error, visit);
    struct vr_options options;
    vr_options_init(&options);
    VR_TRY(vr_options_parse(&options, text, error));
    return vr_options_visit(&options, visit, user, error);
}
