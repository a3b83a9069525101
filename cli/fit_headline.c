// fit_headline.c: the first lines of the answer of `vram fit`: whether it fits, on which cards, how much it needs; or that the program
// failed.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fit_place.h"
#include "fit_print.h"
#include "ui.h"

#define SIZE(bytes) ui_size((bytes), (char[UI_SIZE_CAPACITY]){0})

#define MOST_NAMED 4 // cards in the first line

enum verdict { FITS, NOT_SURE, DOES_NOT_FIT, VERDICTS };

static enum verdict verdict_of(const struct fit_card *card) { return !card->fits ? DOES_NOT_FIT : card->unsure ? NOT_SURE : FITS; }

void fit_print_need(const struct fit_answer *answer) {
    char low[UI_SIZE_CAPACITY], high[UI_SIZE_CAPACITY];
    const uint64_t need_bytes = fit_need_bytes(answer->verdict);
    (void)ui_size(need_bytes, low);
    (void)ui_size(need_bytes + answer->stake_bytes, high);
    const char *unit = strchr(low, ' '), *other = strchr(high, ' ');
    const bool same = unit != NULL && other != NULL && strcmp(unit, other) == 0;
    if (strcmp(low, high) == 0)
        printf("%s", low);
    else
        printf("%.*s to %s", same ? (int)(unit - low) : (int)strlen(low), low, high);
}

static void print_named(const struct fit_verdict *verdict, enum verdict of) {
    size_t count = 0, printed = 0;
    for (size_t i = 0; i < verdict->card_count; i++) count += verdict->cards[i].asked && verdict_of(&verdict->cards[i]) == of;
    for (size_t i = 0; i < verdict->card_count; i++) {
        if (!verdict->cards[i].asked || verdict_of(&verdict->cards[i]) != of) continue;
        printf("%s%s", printed == 0 ? "" : printed + 1 == count ? " and " : ", ", verdict->cards[i].model.key);
        printed++;
    }
}

// On which of the cards that were asked for.
static void print_where(const struct fit_verdict *verdict) {
    static const char *const first[VERDICTS] = {"Fits on ", "Not sure on ", "Does not fit on "};
    static const char *const further[VERDICTS] = {"", ", not sure on ", ", not on "};
    size_t counts[VERDICTS] = {0}, asked = 0;
    for (size_t i = 0; i < verdict->card_count; i++) {
        if (!verdict->cards[i].asked) continue;
        asked++;
        counts[verdict_of(&verdict->cards[i])]++;
    }
    bool begun = false;
    for (enum verdict of = FITS; of < VERDICTS; of++) {
        if (counts[of] == 0 || (asked > MOST_NAMED && begun && of == DOES_NOT_FIT)) continue;
        printf("%s", begun ? further[of] : first[of]);
        if (asked <= MOST_NAMED)
            print_named(verdict, of);
        else if (counts[of] == asked)
            printf(of == DOES_NOT_FIT ? "any of %zu cards" : "all %zu cards", asked);
        else
            printf(begun ? "%zu" : "%zu of %zu cards", counts[of], asked);
        begun = true;
    }
}

static void print_varied(const char *varied) {
    if (varied == NULL) return;
    printf("With ");
    ui_put(stdout, varied);
    printf("\n");
}

void fit_print_nothing(const struct fit_run *run, const char *varied) {
    char text[2000];
    print_varied(varied);
    fit_failure_text(run, text, sizeof text);
    ui_wrap(stdout, text, 0, 80);
    printf("\n");
    if (run->least_bytes > 0) printf("At least %s reserved until the end of step %" PRIu64 "\n", SIZE(run->least_bytes), run->steps);
}

static void print_failure(const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    char text[2000];
    size_t too_small = 0;
    fit_failure_text(answer->run, text, sizeof text);
    ui_wrap(stdout, text, 0, 80);
    printf("\nAt least %s of a device like %s until then", SIZE(fit_need_bytes(verdict)), verdict->ran_on.key);
    for (size_t i = 0; i < verdict->card_count; i++) too_small += verdict->cards[i].asked && !verdict->cards[i].fits;
    if (answer->limit_bytes != UINT64_MAX)
        printf(verdict->smallest_bytes > answer->limit_bytes ? ", more than the limit" : "; the limit is %s", SIZE(answer->limit_bytes));
    else if (too_small > 0 && too_small <= MOST_NAMED) {
        printf(", too much for ");
        print_named(verdict, DOES_NOT_FIT);
    } else if (too_small > 0)
        printf(", too much for %zu cards", too_small);
    printf("\n");
}

void fit_print_headline(const struct fit_answer *answer) {
    const struct fit_verdict *verdict = answer->verdict;
    print_varied(answer->varied);
    if (fit_run_failed(answer->run)) {
        print_failure(answer);
        return;
    }
    if (answer->limit_bytes != UINT64_MAX) {
        printf("%s: needs ", answer->unsure ? "Not sure" : answer->fits ? "Fits" : "Does not fit");
        fit_print_need(answer);
        printf(", the limit is %s\n", SIZE(answer->limit_bytes));
        return;
    }
    print_where(verdict);
    printf(": needs ");
    fit_print_need(answer);
    printf(" of a device like %s\n", verdict->ran_on.key);
}
