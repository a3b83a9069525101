#include "fit_route.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_rows.h"
#include "fit_page.h"
#include "fit_run.h"
#include "ui.h"

#define VARIABLE      "VRAM_FIT_ROUTE"
#define LINE_CAPACITY 400
#define ROW_CAPACITY  40 // "1023:1.79769e+308,"

// --- the file -------------------------------------------------------------------------------------------------------------------------

struct shares {
    bool is_listed[FIT_EXPERTS_MOST];
    double share[FIT_EXPERTS_MOST];
    double sum;
};

// Reads "EXPERT SHARE". Returns what is wrong, or NULL.
static const char *read_share(struct shares *shares, const char *line) {
    char *end;
    const long expert = isdigit((unsigned char)*line) ? strtol(line, &end, 10) : -1;
    if (expert < 0 || expert >= FIT_EXPERTS_MOST) return "the expert is not a number from 0 to 1023";
    if (!isspace((unsigned char)*end)) return "it is not 'EXPERT SHARE'";
    const char *text = end + strspn(end, " \t");
    const double share = strtod(text, &end);
    if (end == text || !isfinite(share) || share < 0) return "the share is not a number from 0 on";
    if (end[strspn(end, " \t\r\n")] != '\0') return "it is not 'EXPERT SHARE'";
    if (shares->is_listed[expert]) return "the expert occurs twice";
    shares->is_listed[expert] = true;
    shares->share[expert] = share;
    shares->sum += share;
    return NULL;
}

// Reads lines; '#' begins a comment. Returns what is wrong, with the line's number, or NULL.
static const char *read_shares(struct shares *shares, FILE *file, size_t *number) {
    char line[LINE_CAPACITY];
    const char *wrong = NULL;
    for (*number = 0; wrong == NULL && fgets(line, sizeof line, file) != NULL;) {
        ++*number;
        if (strchr(line, '\n') == NULL && strlen(line) + 1 == sizeof line) return "it is too long";
        line[strcspn(line, "#")] = '\0';
        const char *begin = line + strspn(line, " \t\r\n");
        if (*begin != '\0') wrong = read_share(shares, begin);
    }
    return wrong;
}

static char *text_of(const struct shares *shares) {
    char *text = malloc((size_t)FIT_EXPERTS_MOST * ROW_CAPACITY);
    size_t used = 0;
    for (int expert = 0; text != NULL && expert < FIT_EXPERTS_MOST; expert++)
        if (shares->is_listed[expert])
            used += (size_t)snprintf(text + used, ROW_CAPACITY, "%s%d:%g", used == 0 ? "" : ",", expert, shares->share[expert]);
    return text;
}

static bool put(const char *text) {
    if (text != NULL && setenv(VARIABLE, text, 1) == 0) return true;
    ui_say("vram fit: cannot set the program's environment: %s", strerror(errno));
    return false;
}

static bool settle_file(const char *path) {
    struct shares shares = {.sum = 0};
    size_t number;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        (void)ui_usage("fit", "vram fit: --route takes balanced, worst or a file of shares: %s: %s", path, strerror(errno));
        return false;
    }
    const char *wrong = read_shares(&shares, file, &number);
    const bool unread = ferror(file) != 0;
    (void)fclose(file);
    if (unread)
        (void)ui_usage("fit", "vram fit: --route: %s cannot be read", path);
    else if (wrong != NULL)
        (void)ui_usage("fit", "vram fit: --route: %s: line %zu: %s", path, number, wrong);
    else if (!(shares.sum > 0) || !isfinite(shares.sum))
        (void)ui_usage("fit", "vram fit: --route: %s has no expert with a share", path);
    if (unread || wrong != NULL || !(shares.sum > 0) || !isfinite(shares.sum)) return false;
    char *text = text_of(&shares);
    const bool good = put(text);
    free(text);
    return good;
}

bool fit_route_settle(const char *route, bool computes) {
    (void)unsetenv(VARIABLE);
    if (route == NULL) return true;
    if (!computes) {
        (void)ui_usage("fit", "vram fit: --route needs computed values: leave out --values none and --compute 0");
        return false;
    }
    return strcmp(route, "balanced") == 0 || strcmp(route, "worst") == 0 ? put(route) : settle_file(route);
}

// --- the answer -----------------------------------------------------------------------------------------------------------------------

bool fit_route_asked(void) { return getenv(VARIABLE) != NULL; }

bool fit_route_fact(struct fit_routed *routed, const char *line) {
    struct fit_routed read;
    if (sscanf(line, "routed %" SCNu64 " %" SCNu64 " %" SCNu64, &read.calls, &read.experts, &read.per_token) != 3) return false;
    if (read.experts > routed->experts) *routed = read;
    return true;
}

static struct fit_routed routed_of(const struct fit_run *run) {
    struct fit_routed most = {.calls = 0};
    for (size_t i = 0; i < run->process_count; i++)
        if (run->processes[i].routed.experts > most.experts) most = run->processes[i].routed;
    return most;
}

static const char *name_of_route(void) {
    const char *text = getenv(VARIABLE);
    return text != NULL && strchr(text, ':') != NULL ? "by the file" : text;
}

void fit_route_print(FILE *page, const struct fit_run *run) {
    const struct fit_routed routed = routed_of(run);
    char text[300];
    if (!fit_route_asked()) return;
    if (routed.calls == 0)
        (void)snprintf(text, sizeof text,
                       "no choice of experts was found, so --route had no effect: the program calls neither topk() nor argmax() over the "
                       "scores of the experts, or the file names an expert that it does not have");
    else
        (void)snprintf(text, sizeof text, "%s: %" PRIu64 " of %" PRIu64 " experts for each token, chosen %" PRIu64 " times (--route)",
                       name_of_route(), routed.per_token, routed.experts, routed.calls);
    fprintf(page, "  %-*s", FIT_TEXT_COLUMN - 2, "Routing");
    ui_wrap(page, text, FIT_TEXT_COLUMN, UINT32_MAX);
    fprintf(page, "\n");
}

#define FIT_ROUTE_FACTS(X)                                                                                                                 \
    X(TEXT, "by", name_of_route(), ALWAYS, "`balanced`, `worst` or `by the file`")                                                         \
    X(U64, "calls", it.calls, ALWAYS,                                                                                                      \
      "choices of a rank: calls of topk() or argmax() over the experts' scores; 0: the option had no effect")                              \
    X(U64, "experts", it.experts, ALWAYS, "number of experts")                                                                             \
    X(U64, "per_token", it.per_token, ALWAYS, "experts for each token")

void fit_route_json(struct vr_json *json, const char *name, const struct fit_run *run) {
    const struct fit_routed it = routed_of(run);
    vr_json_object(json, name);
    FIT_ROUTE_FACTS(VR_FACT_JSON)
    vr_json_object_end(json);
}
