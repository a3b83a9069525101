#include "fit_engine_plan.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fit_cards.h"
#include "fit_print.h"
#include "fit_run.h"
#include "output.h"
#include "ui.h"

#define PATH_CAPACITY 4500

static int copy_file(const char *from, const char *to) {
    char bytes[4096];
    FILE *file = fopen(from, "rb");
    struct output *output = file != NULL && output_folder(to) ? output_open(to) : NULL;
    bool good = output != NULL;
    size_t got;
    while (good && (got = fread(bytes, 1, sizeof bytes, file)) > 0) good = output_write(output, bytes, got);
    if (file != NULL) (void)fclose(file);
    return output == NULL ? CLI_BAD_INPUT : output_close(output, good);
}

// Copies a folder, and the folders in it.
static int copy_folder(const char *from, const char *to) {
    char source[PATH_CAPACITY], target[PATH_CAPACITY];
    struct stat stat_of;
    int code = CLI_OK;
    DIR *entries = opendir(from);
    for (const struct dirent *entry; entries != NULL && code == CLI_OK && (entry = readdir(entries)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (snprintf(source, sizeof source, "%s/%s", from, entry->d_name) >= (int)sizeof source ||
            snprintf(target, sizeof target, "%s/%s", to, entry->d_name) >= (int)sizeof target || stat(source, &stat_of) != 0)
            code = CLI_BAD_INPUT;
        else
            code = S_ISDIR(stat_of.st_mode) ? copy_folder(source, target) : copy_file(source, target);
    }
    if (entries != NULL) (void)closedir(entries);
    return entries == NULL ? CLI_BAD_INPUT : code;
}

// Returns why the engine's plan cannot be relied on; NULL: it can.
static const char *why_not(const struct fit_answer *answer) {
    const struct fit_played *played = &answer->run->played;
    return !played->any                      ? "no requests were played"
           : played->served != played->asked ? "not all requests were served"
           : !answer->fits                   ? "it does not fit"
           : answer->unsure                  ? "it is not certain that it fits"
                                             : NULL;
}

// Writes what the plan leaves free of the card that it was served on, as the file margin.json of the folder. Returns an exit code.
static int write_margin(const struct fit_answer *answer, const char *folder) {
    char path[PATH_CAPACITY], text[400];
    const struct fit_verdict *verdict = answer->verdict;
    const uint64_t need = fit_need_bytes(verdict), memory = verdict->ran_memory_bytes;
    (void)snprintf(path, sizeof path, "%s/margin.json", folder);
    const int length = snprintf(text, sizeof text,
                                "{\"card\": \"%s\", \"memory_bytes\": %" PRIu64 ", \"needed_bytes\": %" PRIu64
                                ", \"margin_bytes\": %" PRIu64 ", \"requests_served\": %" PRIu64 "}\n",
                                verdict->ran_on.key, memory, need, memory > need ? memory - need : 0, (uint64_t)answer->run->played.served);
    struct output *output = output_open(path);
    const bool good = output != NULL && length > 0 && (size_t)length < sizeof text && output_write(output, text, (size_t)length);
    return output == NULL ? CLI_BAD_INPUT : output_close(output, good);
}

static void say_use(const struct fit_answer *answer, const char *folder, bool has_plan) {
    const struct fit_verdict *verdict = answer->verdict;
    char path[PATH_CAPACITY], option[2000] = "", left[UI_SIZE_CAPACITY];
    (void)snprintf(path, sizeof path, "%s/options", folder);
    FILE *file = fopen(path, "r");
    if (file != NULL && fgets(option, sizeof option, file) != NULL) option[strcspn(option, "\n")] = '\0';
    if (file != NULL) (void)fclose(file);
    const uint64_t need = fit_need_bytes(verdict), memory = verdict->ran_memory_bytes;
    (void)ui_size(memory > need ? memory - need : 0, left);
    if (has_plan)
        ui_say("vram fit: plan written: to use it, set VLLM_ENABLE_STARTUP_PLAN=1 VLLM_CACHE_ROOT=%s; without it, use %s", folder, option);
    else
        ui_say("vram fit: plan written: this engine takes %s", option);
    ui_say("vram fit: with it %s of the %s stays free for the additional needs of a real card", left, verdict->ran_on.key);
}

int fit_engine_plan_keep(const struct fit_answer *answer, const char *folder) {
    char from[PATH_CAPACITY], start[PATH_CAPACITY + 20];
    struct stat stat_of;
    const char *reason = why_not(answer);
    (void)snprintf(from, sizeof from, "%s/plan", answer->run->folder);
    if (reason == NULL && stat(from, &stat_of) != 0) reason = "the engine wrote no plan";
    if (reason != NULL) {
        ui_say("vram fit: no plan is written: %s", reason);
        return CLI_FINDING;
    }
    int code = copy_folder(from, folder);
    if (code == CLI_OK) code = write_margin(answer, folder);
    if (code != CLI_OK) {
        ui_say("vram fit: the plan could not be written into %s: %s", folder, strerror(errno));
        return code;
    }
    (void)snprintf(start, sizeof start, "%s/startup_plan", from);
    say_use(answer, folder, stat(start, &stat_of) == 0);
    return CLI_OK;
}
