// golden FILE...: runs golden traces and reports how far this allocator agrees with the one that made them.
//
// Exit status: 0 all agree, 1 a difference, 2 usage, 3 bad input, 77 (skipped) if nothing was compared because every file needs a feature
// that this allocator lacks.
#include <stdio.h>

#include "golden/golden.h"

static bool all_equal(const struct golden_report *report) { return report->first[0] == '\0'; }

static void print_report(const char *path, const struct golden_report *report) {
    printf("%s: %zu of %zu operations agree, %zu of %zu maps, %zu of %zu peaks, %zu of %zu driver counts\n", path, report->operations_equal,
           report->operations, report->maps_equal, report->maps, report->peaks_equal, report->peaks, report->counts_equal, report->counts);
    if (!all_equal(report)) printf("%s: first difference: %s\n", path, report->first);
}

// Returns the exit status for one file.
static int check_file(const char *path) {
    struct golden_trace trace;
    struct vram_error error = {0};
    enum vram_status status = golden_read(path, &trace, &error);
    if (status != VRAM_OK) {
        fprintf(stderr, "golden: %s: %s\n", path, error.message);
        return 3;
    }
    struct golden_report report;
    status = golden_run(&trace, &report, &error);
    golden_release(&trace);
    print_report(path, &report);
    if (status == VRAM_OK) return all_equal(&report) ? 0 : 1;
    fprintf(stderr, "golden: %s: %s: %s\n", path, vram_status_name(status), error.message);
    return 1;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: golden FILE...\n");
        return 2;
    }
    int worst = 0;
    for (int i = 1; i < argc; i++) {
        const int result = check_file(argv[i]);
        if (result > worst) worst = result;
    }
    return worst;
}
