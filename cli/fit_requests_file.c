// Reads files of requests: JSON lines of lengths (our own, and the traces of Mooncake that SGLang's benchmark plays), and the tables of
// BurstGPT (a data set of vLLM's benchmark) and Azure. Data sets of texts (ShareGPT, a prompt per line) have no lengths without the model's
// tokenizer: refused.
#define _POSIX_C_SOURCE 200809L // fileno, getc_unlocked
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fit_requests.h"

#define MOST_SECONDS   1e9
#define MOONCAKE_BLOCK 512 // tokens of an id in hash_ids
#define CSV_COLUMNS    16
#define LINE_MOST      ((size_t)1 << 20)

struct reading {
    struct fit_requests *requests;
    char *wrong;
    size_t line;
    int arrival_column, prompt_column, output_column; // of a table; -1: absent
    double first_seconds;                             // for a table whose arrivals are dates and times: the first of them
    bool has_rows, is_table;
};

static bool fail(const struct reading *reading, const char *what) {
    (void)snprintf(reading->wrong, FIT_WRONG_CAPACITY, "line %zu: %s", reading->line, what);
    return false;
}

static bool add(struct reading *reading, double seconds, double prompt, double output) {
    if (!(seconds >= 0) || seconds > MOST_SECONDS) return fail(reading, "the arrival is not a number of seconds from 0 on");
    if (!(prompt >= 1) || prompt > (double)FIT_TOKENS_MOST) return fail(reading, "the prompt has no tokens, or too many");
    if (!(output >= 1) || output > (double)FIT_TOKENS_MOST) return fail(reading, "the output has no tokens, or too many");
    if (reading->requests->count >= FIT_REQUESTS_MOST) return fail(reading, "there are more than 10000000 requests");
    return fit_requests_add(reading->requests, (uint64_t)(seconds * 1e9), (uint64_t)prompt, (uint64_t)output);
}

// --- JSON lines -----------------------------------------------------------------------------------------------------------------------

static bool number_of(const cJSON *row, const char *name, double *number) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, name);
    if (!cJSON_IsNumber(item)) return false;
    *number = item->valuedouble;
    return true;
}

// Mooncake's: the prompt's blocks of 512 tokens, each with the id of its text.
static bool add_blocks(struct reading *reading, const cJSON *ids, double prompt) {
    const cJSON *id;
    double left = prompt;
    cJSON_ArrayForEach(id, ids) {
        if (!cJSON_IsNumber(id) || id->valuedouble < 0) return fail(reading, "hash_ids contains something other than numbers");
        const double tokens = left < MOONCAKE_BLOCK ? left : MOONCAKE_BLOCK;
        if (tokens < 1) break;
        if (!fit_requests_add_piece(reading->requests, (uint64_t)id->valuedouble, (uint64_t)tokens)) return false;
        left -= tokens;
    }
    return true;
}

static bool add_prefix(struct reading *reading, const cJSON *row, double prompt) {
    double id = 0, tokens = 0;
    if (!number_of(row, "prefix_tokens", &tokens) || tokens == 0) return true;
    (void)number_of(row, "prefix", &id);
    if (!(id >= 0) || id > 1e15 || !(tokens >= 1) || tokens > prompt)
        return fail(reading, "the prefix is longer than the prompt, or its number is invalid");
    return fit_requests_add_piece(reading->requests, (uint64_t)id, (uint64_t)tokens);
}

static bool add_row(struct reading *reading, const cJSON *row) {
    double arrival = 0, prompt, output;
    if (number_of(row, "input_length", &prompt) && number_of(row, "output_length", &output)) {
        if (number_of(row, "timestamp", &arrival)) arrival /= 1000;
        return add_blocks(reading, cJSON_GetObjectItemCaseSensitive(row, "hash_ids"), prompt) && add(reading, arrival, prompt, output);
    }
    if (number_of(row, "prompt_tokens", &prompt) && number_of(row, "output_tokens", &output)) {
        (void)number_of(row, "arrival", &arrival);
        return add_prefix(reading, row, prompt) && add(reading, arrival, prompt, output);
    }
    if (cJSON_HasObjectItem(row, "prompt") || cJSON_HasObjectItem(row, "conversations") || cJSON_HasObjectItem(row, "messages"))
        return fail(reading,
                    "a data set of texts: their lengths depend on the model's tokenizer; write prompt_tokens and output_tokens instead");
    return fail(reading, "has neither prompt_tokens and output_tokens nor input_length and output_length");
}

static bool read_object(struct reading *reading, const char *line) {
    cJSON *row = cJSON_Parse(line);
    const bool good = cJSON_IsObject(row) ? add_row(reading, row) : fail(reading, "not a JSON object");
    cJSON_Delete(row);
    return good;
}

// --- tables ----------------------------------------------------------------------------------------------------------------------------

// Cuts a line at its commas. Returns the number of cells.
static int cut(char *line, char *cells[CSV_COLUMNS]) {
    int count = 0;
    for (char *at = line; at != NULL && count < CSV_COLUMNS;) {
        cells[count++] = at;
        if ((at = strchr(at, ',')) != NULL) *at++ = '\0';
    }
    return count;
}

static bool read_header(struct reading *reading, char *line) {
    static const struct {
        const char *name;
        int column; // 0: arrival, 1: prompt, 2: output
    } names[] = {{"Timestamp", 0},     {"TIMESTAMP", 0},       {"Request tokens", 1},
                 {"ContextTokens", 1}, {"Response tokens", 2}, {"GeneratedTokens", 2}};
    int *const columns[] = {&reading->arrival_column, &reading->prompt_column, &reading->output_column};
    char *cells[CSV_COLUMNS];
    const int count = cut(line, cells);
    for (int i = 0; i < count; i++)
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            if (strcmp(cells[i], names[j].name) == 0) *columns[names[j].column] = i;
    reading->is_table = reading->prompt_column >= 0 && reading->output_column >= 0;
    return reading->is_table || fail(reading, "neither a JSON object nor the header of a BurstGPT or Azure table");
}

// Reads seconds, or a moment: "2023-11-16 18:15:46.6805900", of which only differences matter. Returns false if it is neither.
static bool read_moment(const char *text, double *seconds) {
    unsigned year, month, day, hour, minute;
    double second;
    if (sscanf(text, "%u-%u-%u%*1[ T]%u:%u:%lf", &year, &month, &day, &hour, &minute, &second) == 6 && month >= 1 && month <= 12) {
        static const unsigned before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
        const unsigned leap = (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)) && month > 2 ? 1 : 0;
        *seconds = (before[month - 1] + leap + day) * 86400.0 + hour * 3600.0 + minute * 60.0 + second;
        return true;
    }
    char *end;
    *seconds = strtod(text, &end);
    return end != text && *end == '\0';
}

static bool read_cells(struct reading *reading, char *line) {
    char *cells[CSV_COLUMNS];
    const int count = cut(line, cells);
    double seconds = 0;
    if (reading->prompt_column >= count || reading->output_column >= count || reading->arrival_column >= count)
        return fail(reading, "fewer cells than the table's header");
    if (reading->arrival_column >= 0 && !read_moment(cells[reading->arrival_column], &seconds))
        return fail(reading, "the arrival is not a time");
    if (reading->requests->count == 0) reading->first_seconds = seconds;
    const double output = strtod(cells[reading->output_column], NULL);
    if (output == 0) return true; // BurstGPT's failed requests
    return add(reading, seconds - reading->first_seconds, strtod(cells[reading->prompt_column], NULL), output);
}

// --- a file -----------------------------------------------------------------------------------------------------------------------------

static bool read_line(struct reading *reading, char *line) {
    reading->line++;
    line[strcspn(line, "\r\n")] = '\0';
    const char *begin = line + strspn(line, " \t");
    if (begin[0] == '\0') return true;
    const bool first = !reading->has_rows;
    reading->has_rows = true;
    if (first && begin[0] == '[')
        return fail(reading,
                    "a JSON array (ShareGPT's texts?): requests are JSON objects, one per line, with prompt_tokens and output_tokens");
    if (reading->is_table) return read_cells(reading, line);
    return first && begin[0] != '{' ? read_header(reading, line) : read_object(reading, begin);
}

// Reads the bytes up to the next newline into `line`, which has room for LINE_MOST of them. Returns false at the end of the file, or if the
// line is wrong.
static bool next_line(struct reading *reading, FILE *file, char *line, bool *good) {
    size_t length = 0;
    int byte;
    while ((byte = getc_unlocked(file)) != EOF && byte != '\n' && byte != '\0' && length < LINE_MOST) line[length++] = (char)byte;
    line[length] = '\0';
    if (byte == EOF) return length > 0;
    if (byte == '\n') return true;
    reading->line++;
    *good = fail(reading, byte == '\0' ? "it has a zero byte" : "it is longer than 1048576 characters");
    return false;
}

bool fit_requests_rows(struct fit_requests *requests, FILE *file, char wrong[FIT_WRONG_CAPACITY]) {
    struct reading reading = {.requests = requests, .wrong = wrong, .arrival_column = -1, .prompt_column = -1, .output_column = -1};
    char *line = malloc(LINE_MOST + 1);
    bool good = line != NULL;
    while (good && next_line(&reading, file, line, &good)) good = read_line(&reading, line);
    free(line);
    return good;
}

// A device may never end.
static bool is_readable(FILE *file, const char *path, char wrong[FIT_WRONG_CAPACITY]) {
    struct stat stat_of;
    const bool known = fstat(fileno(file), &stat_of) == 0;
    if (known && (S_ISREG(stat_of.st_mode) || S_ISFIFO(stat_of.st_mode))) return true;
    if (known && S_ISDIR(stat_of.st_mode))
        (void)snprintf(wrong, FIT_WRONG_CAPACITY, "%.200s: %s", path, strerror(EISDIR));
    else
        (void)snprintf(wrong, FIT_WRONG_CAPACITY, "'%.200s' is not a file", path);
    return false;
}

bool fit_requests_file(struct fit_requests *requests, const char *path, char wrong[FIT_WRONG_CAPACITY]) {
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        (void)snprintf(wrong, FIT_WRONG_CAPACITY, "%.200s: %s", path, strerror(errno));
        return false;
    }
    const bool good = is_readable(file, path, wrong) && fit_requests_rows(requests, file, wrong);
    (void)fclose(file);
    return good;
}
