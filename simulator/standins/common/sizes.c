// The sizes that the real libraries take and ask for, by version and device.
#include "common.h"
#include "missing.h"

static const char *const names[] = {
#define X(name) [STANDIN_##name] = #name,
#include "size_names.def"
#undef X
};

static const struct standin_size_row rows[] = {
#define X(what, from_version, below_version, from_capability, below_capability, bytes, source)                                             \
    {STANDIN_##what, from_version, below_version, from_capability, below_capability, bytes, source},
#include "sizes.def"
#undef X
};

static bool is_between(int value, int from, int below) { return value >= from && (below == 0 || value < below); }

static const struct standin_size_row *find_size_row(enum standin_size what, int version) {
    const int capability = standin_capability();
    const struct standin_size_row *row = rows, *last = rows;
    for (; row < rows + sizeof rows / sizeof *rows; row++) {
        if (row->what != what) continue;
        last = row;
        if (is_between(version, row->from_version, row->below_version) &&
            is_between(capability, row->from_capability, row->below_capability))
            return row;
    }
    return last;
}

void standin_size_stake(enum standin_size what, uint64_t bytes) { vr_missing_stake(names[what], bytes); }

const struct standin_size_row *standin_size(enum standin_size what, int version) {
    const struct standin_size_row *row = find_size_row(what, version);
    if (row->source == NULL) vr_missing_count(VR_MISSING_SIZE, names[what], NULL);
    return row;
}
