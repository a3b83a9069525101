#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "args.h"
#include "input.h"
#include "input_files.h"
#include "ui.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Compares names so that rank2 precedes rank10. Digits compare as numbers: by length without leading zeros, then digit by digit.
static int compare_names(const char *a, const char *b) {
    while (*a != '\0' && *b != '\0') {
        if (!is_digit(*a) || !is_digit(*b)) {
            if (*a != *b) return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
            a++;
            b++;
            continue;
        }
        a += strspn(a, "0");
        b += strspn(b, "0");
        const size_t a_digits = strspn(a, "0123456789"), b_digits = strspn(b, "0123456789");
        if (a_digits != b_digits) return a_digits < b_digits ? -1 : 1;
        const int order = memcmp(a, b, a_digits);
        if (order != 0) return order;
        a += a_digits;
        b += b_digits;
    }
    return (*a != '\0') - (*b != '\0');
}

static int by_name(const void *left, const void *right) {
    const char *const *a = left, *const *b = right;
    const int order = compare_names(*a, *b);
    return order != 0 ? order : strcmp(*a, *b);
}

static int folder_failed(const char *path, const char *reason) {
    ui_say("vram: %s: %s", path, reason);
    return CLI_BAD_INPUT;
}

// Adds the path and takes ownership of it.
static bool add_path(struct input_files *files, char *path) {
    char **paths = path == NULL ? NULL : realloc(files->paths, ((size_t)files->count + 1) * sizeof *paths);
    if (paths == NULL) {
        free(path);
        return false;
    }
    files->paths = paths;
    files->paths[files->count++] = path;
    return true;
}

// A page with more recordings is not a real one, and each lookup starts from the beginning.
enum { MOST_IN_A_PAGE = 1000 };

// Collects the names of a page's recordings.
struct listing {
    const char *page;
    struct input_files names;
    bool failed;
};

static void add_name(void *context, const char *name) {
    struct listing *listing = context;
    if (listing->names.count > MOST_IN_A_PAGE) return;
    listing->failed = listing->failed || !add_path(&listing->names, strdup(name));
}

// Returns PAGE#NAME, or PAGE#NUMBER if several have the name.
static char *page_address(const struct listing *listing, int index) {
    const char *name = listing->names.paths[index];
    int same = 0;
    for (int i = 0; i < listing->names.count; i++) same += strcmp(listing->names.paths[i], name) == 0;
    const size_t size = strlen(listing->page) + strlen(name) + 16;
    char *path = malloc(size);
    if (path != NULL && same == 1) (void)snprintf(path, size, "%s#%s", listing->page, name);
    if (path != NULL && same != 1) (void)snprintf(path, size, "%s#%d", listing->page, index + 1);
    return path;
}

// Adds a file. A page with several recordings adds one path each; with too many, its own path, and reading it reports that it has several.
static bool add_file(struct input_files *files, const char *path) {
    struct listing listing = {.page = path};
    if (!input_names(path, add_name, &listing) || listing.names.count < 2 || listing.names.count > MOST_IN_A_PAGE) {
        input_files_close(&listing.names);
        return add_path(files, strdup(path));
    }
    for (int i = 0; i < listing.names.count && !listing.failed; i++) listing.failed = !add_path(files, page_address(&listing, i));
    input_files_close(&listing.names);
    return !listing.failed;
}

static char *join_path(const char *folder, const char *name) {
    const size_t length = strlen(folder), size = length + strlen(name) + 2;
    char *path = malloc(size);
    if (path != NULL) (void)snprintf(path, size, "%s%s%s", folder, length != 0 && folder[length - 1] == '/' ? "" : "/", name);
    return path;
}

static bool is_folder(const char *path) {
    struct stat facts;
    return strcmp(path, "-") != 0 && stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

// Returns whether to skip an entry of a folder that has the name of a recording: a pipe or socket would block, and folders are not entered.
// Prints a line about what is skipped, except folders.
static bool is_left_out(const char *path) {
    struct stat facts;
    if (stat(path, &facts) != 0 || S_ISREG(facts.st_mode)) return false;
    if (!S_ISDIR(facts.st_mode)) ui_say("vram: %s: not a regular file; skipped", path);
    return true;
}

static int add_folder(struct input_files *files, const char *folder) {
    const int first = files->count;
    const struct dirent *entry;
    bool good = true;
    DIR *listing = opendir(folder);
    if (listing == NULL) return folder_failed(folder, strerror(errno));
    while (good && (entry = readdir(listing)) != NULL) {
        if (!input_is_recording_name(entry->d_name)) continue;
        char *path = join_path(folder, entry->d_name);
        good = path != NULL && (is_left_out(path) || add_file(files, path));
        free(path);
    }
    closedir(listing);
    files->had_folder = true;
    if (!good) return folder_failed(folder, "not enough host memory to list it");
    if (files->count == first) return folder_failed(folder, "holds no recording (*.pickle, *.pkl, *.json, *.html, *.vram)");
    qsort(files->paths + first, (size_t)(files->count - first), sizeof *files->paths, by_name);
    return CLI_OK;
}

// Lists the recordings of all operands of which that is possible. Returns the last failure's exit code.
static int list_operands(char **operands, int count, struct input_files *files) {
    int code = CLI_OK;
    *files = (struct input_files){0};
    for (int i = 0; i < count; i++) {
        const int listed = is_folder(operands[i])         ? add_folder(files, operands[i])
                           : add_file(files, operands[i]) ? CLI_OK
                                                          : folder_failed(operands[i], "not enough host memory");
        if (listed != CLI_OK) code = listed;
    }
    return code;
}

int input_files_open(char **operands, int count, struct input_files *files) {
    const int code = list_operands(operands, count, files);
    if (code != CLI_OK) input_files_close(files);
    return code;
}

void input_files_close(struct input_files *files) {
    for (int i = 0; i < files->count; i++) free(files->paths[i]);
    free(files->paths);
    *files = (struct input_files){0};
}

static int answer_for(const char *path, const struct input_work *work, struct answers *answers) {
    struct input_opened opened = {.path = path, .answers = answers};
    int code = (work->plain ? input_recording : input_named_recording)(path, &opened.recording, &opened.facts);
    if (code != CLI_OK) return code;
    answers_expect(answers);
    code = work->answer(&opened, work->context);
    vram_recording_destroy(opened.recording);
    return code;
}

int input_files_run(const struct input_files *files, const struct input_work *work) {
    struct answers answers;
    int result = CLI_OK;
    // A folder makes an array, whatever the number of its recordings.
    answers_open(&answers, work->json, files->count > 1 || files->had_folder, work->between);
    for (int i = 0; i < files->count; i++) {
        const int code = answer_for(files->paths[i], work, &answers);
        if (code > result) result = code;
    }
    answers_close(&answers);
    return result;
}

int run_command(const struct input_work *work, char **operands, int count) {
    struct input_files files;
    const int code = list_operands(operands, count, &files), result = files.count == 0 ? CLI_OK : input_files_run(&files, work);
    input_files_close(&files);
    return code > result ? code : result;
}
