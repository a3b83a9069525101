// fit_end.c: PID.begun stands in the folder of a run from a process's first use of a device on, PID.facts once its recording is written.
#include "fit_end.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fit_folder.h"
#include "ui.h"

#define NAME_CAPACITY 300

bool fit_end_began(const struct fit_run *run) {
    char name[NAME_CAPACITY];
    DIR *entries = NULL;
    const bool any = fit_folder_next(run, ".begun", &entries, name, sizeof name);
    if (entries != NULL) (void)closedir(entries);
    return any;
}

static bool is_written(const struct fit_run *run, long process) {
    char path[sizeof run->folder + 40];
    (void)snprintf(path, sizeof path, "%s/%ld.facts", run->folder, process);
    return access(path, F_OK) == 0 || (kill((pid_t)process, 0) != 0 && errno == ESRCH);
}

bool fit_end_written(const struct fit_run *run) {
    char name[NAME_CAPACITY];
    DIR *entries = NULL;
    bool all = true;
    while (fit_folder_next(run, ".begun", &entries, name, sizeof name)) all = is_written(run, strtol(name, NULL, 10)) && all;
    return all;
}

void fit_end_processes(const struct fit_run *run, int64_t program, int number) {
    char name[NAME_CAPACITY];
    DIR *entries = NULL;
    while (fit_folder_next(run, ".begun", &entries, name, sizeof name)) {
        const long process = strtol(name, NULL, 10);
        if (process > 1 && process != program) (void)kill((pid_t)process, number);
    }
}

void fit_end_wanted(const struct fit_run *run) {
    char name[NAME_CAPACITY], path[sizeof run->folder + NAME_CAPACITY], line[4096], last[4096] = "";
    DIR *entries = NULL;
    while (fit_folder_next(run, ".wanted", &entries, name, sizeof name)) {
        (void)snprintf(path, sizeof path, "%s/%s", run->folder, name);
        FILE *file = fopen(path, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            line[strcspn(line, "\n")] = '\0';
            const char *what = strchr(line, ' ');
            if (what == NULL || strcmp(line, last) == 0) continue;
            ui_say("vram fit: %s is not there (%.*s)%s", what + 1, (int)(what - line), line,
                   strncmp(line, "from_pretrained ", 16) == 0 ? ": --dummy-weights makes weights up" : "");
            (void)strcpy(last, line);
        }
        if (file != NULL) (void)fclose(file);
    }
}
