// cuRAND: generators store their settings. Numbers for the device are a launch of work; numbers for the host are generated here.
#include "../common/calls.h"

enum {
    NOT_INITIALIZED = 101,
    ALLOCATION_FAILED = 102,
    TYPE_ERROR = 103,
    OUT_OF_RANGE = 104,
    LAUNCH_FAILURE = 201,
    INITIALIZATION_FAILED = 203
};
enum { INTERNAL_ERROR = 999 };
enum { PSEUDO_FIRST = 100, PSEUDO_LAST = 161, QUASI_FIRST = 200, QUASI_LAST = 204 };

#define GENERATOR UINT64_C(0x637572616e640001)

struct generator {
    struct standin_object object;
    uint64_t stream, seed, offset;
    bool is_host;
};

static int create_generator(struct generator **result, int type, bool is_host) {
    if (result == NULL) return OUT_OF_RANGE;
    if ((type < PSEUDO_FIRST || type > PSEUDO_LAST) && (type < QUASI_FIRST || type > QUASI_LAST)) return TYPE_ERROR;
    if (!is_host && standin_begin() == NULL) return INITIALIZATION_FAILED;
    struct generator *made = standin_new(GENERATOR, sizeof *made);
    if (made == NULL) return ALLOCATION_FAILED;
    made->is_host = is_host;
    *result = made;
    return 0;
}

int curandCreateGenerator(struct generator **generator, int type) { return create_generator(generator, type, false); }
int curandCreateGeneratorHost(struct generator **generator, int type) { return create_generator(generator, type, true); }
int curandDestroyGenerator(struct generator *generator) { return standin_destroy(generator, GENERATOR) ? 0 : NOT_INITIALIZED; }

#define NEEDS(generator)                                                                                                                   \
    if (!standin_is(generator, GENERATOR)) return NOT_INITIALIZED

int curandSetStream(struct generator *generator, uint64_t stream) {
    NEEDS(generator);
    generator->stream = stream;
    return 0;
}

int curandSetPseudoRandomGeneratorSeed(struct generator *generator, uint64_t seed) {
    NEEDS(generator);
    generator->seed = seed;
    return 0;
}

int curandSetGeneratorOffset(struct generator *generator, uint64_t offset) {
    NEEDS(generator);
    generator->offset = offset;
    return 0;
}

int curandSetGeneratorOrdering(struct generator *generator, int order) {
    NEEDS(generator);
    return 0;
}

int curandSetQuasiRandomGeneratorDimensions(struct generator *generator, unsigned dimensions) {
    NEEDS(generator);
    return dimensions < 1 || dimensions > 20000 ? OUT_OF_RANGE : 0;
}

int curandGenerateSeeds(struct generator *generator) {
    NEEDS(generator);
    return generator->is_host || standin_work(generator->stream) == 0 ? 0 : LAUNCH_FAILURE;
}

// Returns a uniform number, reproducible by seed (splitmix64). Differs from NVIDIA's generators.
static uint64_t next_number(struct generator *generator) {
    uint64_t mixed = generator->seed + ++generator->offset * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

// Returns a number in (0, 1], like cuRAND.
static double next_uniform(struct generator *generator) { return ((double)(next_number(generator) >> 11) + 1.0) / 9007199254740992.0; }

// Returns an approximately normal number without libm: a sum of twelve uniform ones.
static double next_normal(struct generator *generator) {
    double sum = -6.0;
    for (int i = 0; i < 12; i++) sum += next_uniform(generator);
    return sum;
}

#define GENERATE(name, type, extra, value)                                                                                                 \
    int name(struct generator *generator, type *numbers, size_t count extra) {                                                             \
        NEEDS(generator);                                                                                                                  \
        const struct standin_operand written = {numbers, count * sizeof *numbers, STANDIN_WRITES};                                         \
        if (!generator->is_host) return standin_work_on(generator->stream, #name, &written, 1) == 0 ? 0 : LAUNCH_FAILURE;                  \
        if (numbers == NULL && count != 0) return OUT_OF_RANGE;                                                                            \
        for (size_t i = 0; i < count; i++) numbers[i] = (type)(value);                                                                     \
        return 0;                                                                                                                          \
    }
#define MOMENTS(type) , type mean, type deviation
#define RATE          , double rate
#define RATE_METHOD   , double rate, int method
#define TRIALS        , unsigned trials, double chance
#define TRIALS_METHOD , unsigned trials, double chance, int method
GENERATE(curandGenerate, unsigned, , next_number(generator))
GENERATE(curandGenerateLongLong, unsigned long long, , next_number(generator))
GENERATE(curandGenerateUniform, float, , next_uniform(generator))
GENERATE(curandGenerateUniformDouble, double, , next_uniform(generator))
GENERATE(curandGenerateNormal, float, MOMENTS(float), (double)mean + (double)deviation * next_normal(generator))
GENERATE(curandGenerateNormalDouble, double, MOMENTS(double), mean + deviation * next_normal(generator))
GENERATE(curandGenerateLogNormal, float, MOMENTS(float), __builtin_exp((double)mean + (double)deviation * next_normal(generator)))
GENERATE(curandGenerateLogNormalDouble, double, MOMENTS(double), __builtin_exp(mean + deviation * next_normal(generator)))
GENERATE(curandGeneratePoisson, unsigned, RATE, 2.0 * rate * next_uniform(generator))
GENERATE(curandGeneratePoissonMethod, unsigned, RATE_METHOD, 2.0 * rate * next_uniform(generator))
GENERATE(curandGenerateBinomial, unsigned, TRIALS, trials *chance *next_uniform(generator))
GENERATE(curandGenerateBinomialMethod, unsigned, TRIALS_METHOD, trials *chance *next_uniform(generator))

int curandCreatePoissonDistribution(double rate, void **distribution) {
    if (distribution == NULL || !(rate > 0)) return OUT_OF_RANGE;
    *distribution = standin_new(STANDIN_PLAIN_OBJECT, sizeof(struct standin_object));
    return *distribution == NULL ? ALLOCATION_FAILED : 0;
}

int curandDestroyDistribution(void *distribution) { return standin_destroy(distribution, STANDIN_PLAIN_OBJECT) ? 0 : NOT_INITIALIZED; }

// major * 1000 + minor * 100 + patch
int curandGetVersion(int *version) {
    if (version == NULL) return OUT_OF_RANGE;
    *version = standin_version_part(0) * 1000 + standin_version_part(1) * 100 + standin_version_part(2);
    return 0;
}

int curandGetProperty(int part, int *value) {
    if (value == NULL || standin_version_part(part) < 0) return OUT_OF_RANGE;
    *value = standin_version_part(part);
    return 0;
}

// Tables that only NVIDIA's library contains.
#undef ABSENT
#define ABSENT(name)                                                                                                                       \
    int name(void **table) {                                                                                                               \
        STANDIN_MISSING(#name);                                                                                                            \
        return INTERNAL_ERROR;                                                                                                             \
    }
ABSENT(curandGetDirectionVectors32)
ABSENT(curandGetDirectionVectors64)
ABSENT(curandGetScrambleConstants32)
ABSENT(curandGetScrambleConstants64)
