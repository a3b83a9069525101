// random_ops: random operations on the allocator and on the naive model, compared step by step.
//
// random_ops [--seed N] [--seeds COUNT] [--ops M] [--conf KIND] [--every K] [--streams S] [--bare] [--verbose]
//
// --streams: use this many additional streams. --bare: no listener, so records are not compared. Counters are compared after each
// operation, without a call that would settle them; everything else after every K.
//
// Without --conf, seed n uses kind n modulo the number of kinds. Exit status: 0 all agree, 1 a difference (with the line that repeats it),
// 2 usage.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "model/both.h"

struct arguments {
    uint64_t seed, seeds, operations, every, streams;
    bool any_kind, bare, verbose;
    enum conf_kind kind;
};

static bool parse_number(const char *text, uint64_t least, uint64_t *value) {
    char *end = NULL;
    if (!text || *text < '0' || *text > '9') return false;
    const unsigned long long parsed = strtoull(text, &end, 10);
    if (*end || parsed < least) return false;
    *value = parsed;
    return true;
}

static bool parse_arguments(int argc, char **argv, struct arguments *arguments) {
    const struct {
        const char *name;
        uint64_t least;
        uint64_t *value;
    } numbers[] = {{"--seed", 0, &arguments->seed},
                   {"--seeds", 1, &arguments->seeds},
                   {"--ops", 1, &arguments->operations},
                   {"--every", 1, &arguments->every},
                   {"--streams", 0, &arguments->streams}};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            arguments->verbose = true;
            continue;
        }
        if (strcmp(argv[i], "--bare") == 0) {
            arguments->bare = true;
            continue;
        }
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool known = false;
        for (size_t k = 0; k < VR_COUNT_OF(numbers); k++)
            if (strcmp(argv[i], numbers[k].name) == 0) known = parse_number(value, numbers[k].least, numbers[k].value);
        if (strcmp(argv[i], "--conf") == 0 && value && conf_kind_parse(value, &arguments->kind)) {
            known = true;
            arguments->any_kind = false;
        }
        if (!known) return false;
        i++;
    }
    return arguments->streams <= BOTH_MORE_STREAMS;
}

int main(int argc, char **argv) {
    struct arguments arguments = {.seed = 1, .seeds = 1, .operations = 10000, .every = 64, .any_kind = true};
    if (!parse_arguments(argc, argv, &arguments)) {
        fprintf(
            stderr,
            "usage: random_ops [--seed N] [--seeds COUNT] [--ops M] [--conf KIND] [--every K] [--streams S] [--bare] [--verbose]\nkinds:");
        for (int kind = 0; kind < CONF_KIND_COUNT; kind++) fprintf(stderr, " %s", conf_kind_name((enum conf_kind)kind));
        fprintf(stderr, "\n");
        return 2;
    }
    static struct both both;
    const clock_t start = clock();
    int failed = 0;
    uint64_t operations = 0;
    for (uint64_t i = 0; i < arguments.seeds; i++) {
        const uint64_t seed = arguments.seed + i;
        struct both_setup setup = {.seed = seed,
                                   .operations = arguments.operations,
                                   .every = arguments.every,
                                   .streams = arguments.streams,
                                   .bare = arguments.bare,
                                   .verbose = arguments.verbose};
        setup.kind = arguments.any_kind ? (enum conf_kind)(seed % CONF_KIND_COUNT) : arguments.kind;
        const bool equal = both_run(&both, &setup);
        operations += both.operation;
        if (equal) continue;
        failed = 1;
        printf("seed %" PRIu64 ", conf %s \"%s\": %s\nrepeat: random_ops --seed %" PRIu64 " --conf %s --ops %" PRIu64 " --every %" PRIu64
               " --streams %" PRIu64 "%s\n",
               seed, conf_kind_name(setup.kind), both.conf, both.difference, seed, conf_kind_name(setup.kind),
               both.operation ? both.operation : 1, setup.every, setup.streams, setup.bare ? " --bare" : "");
    }
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("%" PRIu64 " operations, %" PRIu64 " seeds, %.1f s: %s\n", operations, arguments.seeds, seconds,
           failed ? "differences" : "all agree");
    return failed;
}
