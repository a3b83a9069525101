// Runs a fuzz target on mutated files, without libFuzzer: mutate_NAME [--seed N] [--count COUNT] [--first I] [--memory MIB] [--keep FILE]
// PATH... Input I of a seed is always the same, so --first I --count 1 repeats a finding, and --keep writes its bytes. Memory is limited to
// --memory (2048); an input that takes 10 s, or a crash, is printed and ends the run.
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// GCC defines a macro, clang has a feature test.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer))
#else
#define SANITIZED false
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEED_BYTES_MOST = 4 << 20, SECONDS_MOST = 10, ROOM = 64 << 10 };

struct bytes {
    uint8_t *data;
    size_t size;
};

static struct corpus {
    struct bytes *files;
    size_t count;
} corpus;

static char finding[128]; // printed by a signal handler, which formats nothing

static uint64_t next(uint64_t *state) {
    uint64_t mixed = *state += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
}

static size_t below(uint64_t *state, size_t limit) { return limit == 0 ? 0 : (size_t)(next(state) % limit); }

// --- the corpus -------------------------------------------------------------------------------------------------------------------------

static void add_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) return;
    uint8_t *data = malloc(SEED_BYTES_MOST);
    const size_t size = data == NULL ? 0 : fread(data, 1, SEED_BYTES_MOST, file);
    const bool whole = fgetc(file) == EOF;
    (void)fclose(file);
    struct bytes *grown = whole && size != 0 ? realloc(corpus.files, (corpus.count + 1) * sizeof *grown) : NULL;
    if (grown == NULL) {
        free(data);
        return;
    }
    corpus.files = grown;
    corpus.files[corpus.count++] = (struct bytes){data, size};
}

static int is_shown(const struct dirent *entry) { return entry->d_name[0] != '.'; }

// Sorted by name, so that input I of a seed is the same everywhere.
static void add(const char *path) {
    struct dirent **entries;
    const int count = scandir(path, &entries, is_shown, alphasort);
    if (count < 0) add_file(path);
    for (int i = 0; i < count; i++) {
        char name[4096];
        if (snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name) < (int)sizeof name) add_file(name);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

// --- the mutator ------------------------------------------------------------------------------------------------------------------------

// Writes a boundary number in one to eight bytes of either order.
static void put_number(uint64_t *state, struct bytes *input) {
    static const uint64_t numbers[] = {0, 1, 127, 128, 255, 256, 32767, 65535, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, INT64_MAX, UINT64_MAX};
    const size_t width = (size_t)1 << below(state, 4);
    if (input->size < width) return;
    const uint64_t number = numbers[below(state, sizeof numbers / sizeof *numbers)] + below(state, 3) - 1;
    const bool big = below(state, 2);
    uint8_t *at = input->data + below(state, input->size - width + 1);
    for (size_t i = 0; i < width; i++) at[big ? width - 1 - i : i] = (uint8_t)(number >> 8 * i);
}

static void remove_piece(uint64_t *state, struct bytes *input) {
    const size_t at = below(state, input->size), length = below(state, input->size - at < 512 ? input->size - at : 512);
    memmove(input->data + at, input->data + at + length, input->size - at - length);
    input->size -= length;
}

// Inserts a piece of `from`, which may be the input itself, at another place.
static void insert_piece(uint64_t *state, struct bytes *input, const struct bytes *from) {
    uint8_t piece[4096];
    const size_t start = below(state, from->size), left = from->size - start;
    const size_t length = below(state, left < sizeof piece ? left : sizeof piece), at = below(state, input->size + 1);
    if (input->size + length > SEED_BYTES_MOST + ROOM) return;
    memcpy(piece, from->data + start, length);
    memmove(input->data + at + length, input->data + at, input->size - at);
    memcpy(input->data + at, piece, length);
    input->size += length;
}

static void change_digits(uint64_t *state, struct bytes *input) {
    size_t at = below(state, input->size);
    while (at < input->size && (input->data[at] < '0' || input->data[at] > '9')) at++;
    for (; at < input->size && input->data[at] >= '0' && input->data[at] <= '9'; at++) input->data[at] = (uint8_t)('0' + below(state, 10));
}

static void mutate(uint64_t *state, struct bytes *input) {
    const size_t steps = 1 + below(state, below(state, 4) == 0 ? 32 : 4);
    for (size_t i = 0; i < steps && input->size != 0; i++) {
        switch (below(state, 9)) {
        case 0: input->data[below(state, input->size)] ^= (uint8_t)(1u << below(state, 8)); break;
        case 1: input->data[below(state, input->size)] = (uint8_t)next(state); break;
        case 2:
        case 3: put_number(state, input); break;
        case 4: remove_piece(state, input); break;
        case 5: insert_piece(state, input, input); break;
        case 6: insert_piece(state, input, &corpus.files[below(state, corpus.count)]); break;
        case 7: change_digits(state, input); break;
        default:
            if (below(state, 4) == 0) input->size = below(state, input->size);
        }
    }
}

// --- running ----------------------------------------------------------------------------------------------------------------------------

static void report(int number) {
    (void)!write(2, finding, strlen(finding));
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static void guard(uint64_t memory_mib) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGALRM};
    const struct rlimit limit = {memory_mib << 20, memory_mib << 20};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) (void)signal(signals[i], report);
    // Sanitizers reserve address space.
    if (!SANITIZED) (void)setrlimit(RLIMIT_AS, &limit);
}

static bool run(uint64_t seed, uint64_t number, const char *keep) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u ^ number << 20;
    const struct bytes *origin = &corpus.files[below(&state, corpus.count)];
    struct bytes input = {malloc(SEED_BYTES_MOST + ROOM), origin->size};
    if (input.data == NULL) return false;
    memcpy(input.data, origin->data, origin->size);
    mutate(&state, &input);
    // Exact size, so that a sanitizer detects reads beyond it.
    uint8_t *exact = malloc(input.size == 0 ? 1 : input.size);
    if (exact != NULL) memcpy(exact, input.data, input.size);
    free(input.data);
    FILE *file = keep == NULL ? NULL : fopen(keep, "wb");
    if (file != NULL) {
        if (exact != NULL) (void)fwrite(exact, 1, input.size, file);
        (void)fclose(file);
    }
    (void)snprintf(finding, sizeof finding,
                   "input %" PRIu64 " of seed %" PRIu64 ": repeat with --seed %" PRIu64 " --first %" PRIu64 " --count 1\n", number, seed,
                   seed, number);
    (void)alarm(SECONDS_MOST);
    if (exact != NULL) (void)LLVMFuzzerTestOneInput(exact, input.size);
    (void)alarm(0);
    free(exact);
    return exact != NULL;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"--seed", "--count", "--first", "--memory"};
    uint64_t values[] = {1, 1000, 0, 2048};
    const char *keep = NULL;
    for (int i = 1; i < argc; i++) {
        size_t option = 0;
        while (option < 4 && strcmp(argv[i], names[option]) != 0) option++;
        if (option < 4 && i + 1 < argc)
            values[option] = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--keep") == 0 && i + 1 < argc)
            keep = argv[++i];
        else
            add(argv[i]);
    }
    if (corpus.count == 0) {
        fprintf(stderr, "usage: mutate_NAME [--seed N] [--count COUNT] [--first I] [--memory MIB] [--keep FILE] PATH...\n");
        return 2;
    }
    guard(values[3]);
    uint64_t ran = 0;
    for (uint64_t i = 0; i < values[1]; i++) ran += run(values[0], values[2] + i, keep);
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("%" PRIu64 " inputs from %zu files, seed %" PRIu64 ", at most %ld MiB\n", ran, corpus.count, values[0], usage.ru_maxrss >> 10);
    return ran != values[1];
}
