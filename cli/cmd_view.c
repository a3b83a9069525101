// vram view: shows recordings in the viewer, as one self-contained page or from a server on this machine.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "serve.h"
#include "input.h"
#include "input_files.h"
#include "output.h"
#include "ui.h"
#include "view_kinds.h"
#include "view_page.h"
#include "vram/explorer.h"

int cmd_view(int argc, char **argv);

// Browsers cannot keep a larger page in one text. It is written anyway, with a hint.
#define LARGE_PAGE_BYTES ((uint64_t)400 << 20)

struct embedding {
    const struct input_files *files;
    const char *kinds; // of ranks; NULL: none
    int put;           // recordings written to the page
    int code;          // the worst exit code of the recordings left out
};

// Writes to the page which frames to skip, after checking that they can be skipped.
static int put_skip(struct vram_recording *recording, vram_write write, void *user) {
    const int code = input_skip_frames(recording);
    return code == CLI_OK ? view_page_skip(input_skip, write, user) : code;
}

// Writes every readable recording. Failures have been reported on standard error.
static int put_recordings(vram_write write, void *user, void *context) {
    struct embedding *embedding = context;
    if (view_kinds_put(embedding->kinds, write, user) != CLI_OK) return CLI_BAD_INPUT;
    for (int i = 0; i < embedding->files->count; i++) {
        const char *path = embedding->files->paths[i];
        struct vram_recording *recording;
        struct input_facts facts;
        int code = input_recording(path, &recording, &facts);
        if (code == CLI_OK) {
            (void)!vram_recording_symbolize(recording, NULL, NULL); // the page cannot look names up in modules
            if (embedding->put == 0 && input_skip != NULL) code = put_skip(recording, write, user);
            if (code == CLI_OK)
                code = view_page_recording(recording, strcmp(path, "-") == 0 ? facts.name : input_base_name(path), write, user);
            vram_recording_destroy(recording);
            if (code != CLI_OK) return code;
            embedding->put++;
        } else if (code > embedding->code) {
            embedding->code = code;
        }
    }
    return embedding->files->count != 0 && embedding->put == 0 ? embedding->code : CLI_OK;
}

struct counted {
    struct output *output;
    uint64_t bytes;
};

static bool write_counted(void *user, const char *bytes, size_t length) {
    struct counted *counted = user;
    counted->bytes += length;
    return output_write(counted->output, bytes, length);
}

static int write_page(const struct input_files *files, const char *path) {
    char *kinds = view_kinds_read(files);
    struct embedding embedding = {.files = files, .kinds = kinds};
    struct counted counted = {.output = output_open(path)};
    const int code = counted.output == NULL ? CLI_BAD_INPUT : view_page_write(false, put_recordings, &embedding, write_counted, &counted);
    free(kinds);
    if (counted.output == NULL) return CLI_BAD_INPUT;
    const int closed = output_close(counted.output, code == CLI_OK);
    if (code == CLI_OK && counted.bytes > LARGE_PAGE_BYTES)
        ui_say("vram: the page is %llu MiB, too large for most browsers; vram view --serve shows files of any size",
               (unsigned long long)(counted.bytes >> 20));
    return code != CLI_OK ? code : closed != CLI_OK ? closed : embedding.code;
}

// Creates a new folder for the page, so that the page can have a descriptive name. Returns the page's path; NULL after a line on standard
// error.
static char *temporary_path(const struct input_files *files) {
    const char *folder = getenv("TMPDIR"), *name = files->count == 0 ? "vram" : input_base_name(files->paths[0]);
    char *path = NULL;
    if (folder == NULL || *folder == '\0') folder = "/tmp";
    if (strcmp(name, "-") == 0) name = "recording";
    const size_t size = strlen(folder) + strlen(name) + sizeof "/vram-view-XXXXXX/.html";
    char *made = malloc(size);
    if (made != NULL) (void)snprintf(made, size, "%s/vram-view-XXXXXX", folder);
    if (made == NULL || mkdtemp(made) == NULL) {
        ui_say("vram: %s: %s", folder, strerror(errno));
    } else {
        path = malloc(size);
        if (path != NULL) (void)snprintf(path, size, "%s/%s.html", made, name);
    }
    free(made);
    return path;
}

// Removes the folder of temporary_path() after the page could not be written.
static void remove_folder(char *path) {
    char *slash = strrchr(path, '/');
    *slash = '\0';
    (void)rmdir(path);
    *slash = '/';
}

static int view_file(const struct input_files *files, const char *output, bool open) {
    char *path = output == NULL ? temporary_path(files) : strdup(output);
    if (path == NULL) return CLI_BAD_INPUT;
    const int code = write_page(files, path);
    if (output == NULL && access(path, F_OK) != 0) remove_folder(path);
    if (code <= CLI_FINDING && strcmp(path, "-") != 0) {
        // Print the name unchanged if a program reads it.
        if (output == NULL && isatty(STDOUT_FILENO))
            ui_put(stdout, path);
        else if (output == NULL)
            printf("%s", path);
        if (output == NULL) printf("\n");
        if (open && !browser_open(path)) ui_say("vram: cannot open a browser; open %s yourself", path);
    }
    free(path);
    return code;
}

static int add_all(struct vram_explorer *explorer, const struct input_files *files, int *added) {
    int worst = CLI_OK;
    for (int i = 0; i < files->count; i++) {
        struct vram_recording *recording;
        struct input_facts facts;
        struct vram_error error = {.status = VRAM_OK, .offset = VRAM_NO_OFFSET};
        int code = input_named_recording(files->paths[i], &recording, &facts);
        if (code == CLI_OK && vram_explorer_add(explorer, recording, input_base_name(facts.name), facts.bytes, &error) != VRAM_OK) {
            vram_recording_destroy(recording);
            code = ui_error(files->paths[i], &error);
        } else if (code == CLI_OK) {
            ++*added;
        }
        if (code > worst) worst = code;
    }
    return worst;
}

static int view_server(const struct input_files *files, const struct serve_options *options) {
    struct vram_explorer *explorer;
    int added = 0;
    if (vram_explorer_create(&explorer) != VRAM_OK) {
        ui_say("vram: not enough host memory");
        return CLI_BAD_INPUT;
    }
    int code = add_all(explorer, files, &added);
    if (added != 0) code = serve(explorer, options);
    vram_explorer_destroy(explorer);
    return code;
}

static int check_usage(bool serves, const char *output, uint64_t port, int operands) {
    const char *wrong = serves && output != NULL  ? "--serve writes no file; omit -o"
                        : serves && operands == 0 ? "--serve needs a recording"
                        : !serves && port != 0    ? "--port needs --serve"
                        : port > UINT16_MAX       ? "--port takes a port up to 65535"
                                                  : NULL;
    if (wrong == NULL) return CLI_OK;
    return ui_usage("view", "vram: %s", wrong);
}

int cmd_view(int argc, char **argv) {
    const char *output = NULL;
    bool serves = false, stays = false;
    uint64_t port = 0;
    const struct args_option options[] = {
        {.name = "output",
         .letter = 'o',
         .kind = ARGS_STRING,
         .value = "PAGE",
         .help = "the page to write, - for standard output (default: a temporary file)",
         .target = &output},
        {.name = "no-open", .kind = ARGS_FLAG, .help = "do not open a browser", .target = &stays},
        {.name = "serve",
         .kind = ARGS_FLAG,
         .help = "serve the page from this process until interrupted, for files that exceed a browser's memory",
         .target = &serves},
        {.name = "port", .kind = ARGS_COUNT, .value = "N", .help = "with --serve: the port (default: any free one)", .target = &port},
        SKIP_OPTION,
        INPUT_OPTION,
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "view",
        .usage = "[FILE...] [options]",
        .summary = "Shows recordings in the viewer: one page that contains the recordings, works without a network and can be shared.\nA "
                   "folder means the recordings in it. Without FILE the page is empty and can open files itself.",
        .examples = "  vram view snapshot.pickle\n"
                    "  vram view ranks/ -o job.html --no-open\n"
                    "  vram view --serve huge.pickle\n",
        .options = options,
        .min_operands = 0,
        .max_operands = -1,
        .operand = "a recording",
    };
    struct input_files files;
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    code = check_usage(serves, output, port, count);
    if (code != CLI_OK) return code;
    code = input_files_open(argv + 1, count, &files);
    if (code != CLI_OK) return code;
    for (int i = 0; i < files.count && output != NULL && code == CLI_OK; i++) {
        if (!output_is_input(output, files.paths[i])) continue;
        ui_say("vram: %s: the output would replace the input", output);
        code = CLI_USAGE;
    }
    char *kinds = serves && code == CLI_OK ? view_kinds_read(&files) : NULL;
    const struct serve_options serving = {.port = (uint16_t)port, .open = !stays, .kinds = kinds};
    if (code == CLI_OK) code = serves ? view_server(&files, &serving) : view_file(&files, output, !stays);
    free(kinds);
    input_files_close(&files);
    return code;
}
