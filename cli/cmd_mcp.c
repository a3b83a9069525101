// vram mcp: answers agents' questions about recordings.
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "args.h"
#include "input.h"
#include "mcp.h"
#include "program.h"
#include "ui.h"

int cmd_mcp(int argc, char **argv);

// A request has a few hundred bytes. A line beyond this is not a request and is dropped.
#define LINE_MOST (1 << 20)

// Reads a line without its newline. Returns -1 at the end. Skips a line that is too long and returns it as empty.
static ssize_t read_line(char *line, size_t capacity) {
    size_t length = 0;
    int c;
    while ((c = getchar()) != EOF && c != '\n') {
        if (length < capacity) line[length] = (char)c;
        length++;
    }
    if (c == EOF && length == 0) return -1;
    return length > capacity ? 0 : (ssize_t)length;
}

static bool is_blank(const char *line, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
    }
    return true;
}

static int serve_messages(struct mcp_server *server) {
    char *line = malloc(LINE_MOST);
    if (line == NULL) {
        ui_say("vram: %s", vram_status_text(VRAM_NO_HOST_MEMORY));
        return exit_code_of(VRAM_NO_HOST_MEMORY);
    }
    bool goes_on = true;
    ssize_t length;
    while (goes_on && (length = read_line(line, LINE_MOST)) >= 0) {
        if (length == 0 || !is_blank(line, (size_t)length)) goes_on = mcp_message(server, line, (size_t)length, stdout);
    }
    free(line);
    return ui_finish() ? CLI_OK : CLI_BAD_INPUT;
}

int cmd_mcp(int argc, char **argv) {
    struct mcp_server server = {.calls = 0};
    const struct args_option options[] = {
        {.name = "no-programs", .kind = ARGS_FLAG, .help = "omit the tool fit, which runs programs", .target = &server.no_programs},
        INPUT_OPTION,
        SKIP_OPTION,
        {.name = NULL},
    };
    const struct args_command command = {
        .name = "mcp",
        .usage = "[options]",
        .summary = "Answers agents' questions about recordings: a Model Context Protocol server on standard input and output. The\nagent's "
                   "program starts it (docs/guides/agents.md).",
        .examples = "  claude mcp add vram -- vram mcp\n"
                    "  vram mcp --no-programs\n",
        .options = options,
        .min_operands = 0,
        .max_operands = 0,
        .operand = "nothing",
    };
    int count, code;
    if (!args_parse(&command, argc, argv, &count, &code)) return code;
    code = serve_messages(&server);
    mcp_server_end(&server);
    return code;
}
