// Refuses what a WebAssembly program cannot do because it needs processes, devices or sockets. The host program opens browsers.
#include <string.h>

#include "../args.h"
#include "../serve.h"
#include "../mcp.h"
#include "../ui.h"
#include "vram/recording.h"

// Asks the host program to open `target`, of `length` bytes. Returns whether it does.
__attribute__((import_module("vram"), import_name("open_browser"))) int vram_open_browser(const char *target, size_t length);

#define NATIVE_ONLY "needs the Linux command; this one is compiled to WebAssembly, which has no processes and no devices"

#define ELSEWHERE(name)                                                                                                                    \
    int cmd_##name(int argc, char **argv);                                                                                                 \
    int cmd_##name(int argc, char **argv) {                                                                                                \
        (void)argc, (void)argv;                                                                                                            \
        ui_say("vram %s: " NATIVE_ONLY, #name);                                                                                            \
        return CLI_DEVICE;                                                                                                                 \
    }
ELSEWHERE(fit)
ELSEWHERE(export)
ELSEWHERE(run)
ELSEWHERE(symbolize)
ELSEWHERE(sim)
ELSEWHERE(check)
ELSEWHERE(doctor)
ELSEWHERE(top)
ELSEWHERE(attach)

bool browser_open(const char *target) { return vram_open_browser(target, strlen(target)) != 0; }

int serve(struct vram_explorer *explorer, const struct serve_options *options) {
    (void)explorer, (void)options;
    ui_say("vram view --serve: " NATIVE_ONLY);
    return CLI_DEVICE;
}

void mcp_tool_fit(struct mcp_server *server, const struct cJSON *arguments, struct mcp_answer *answer) {
    (void)server, (void)arguments;
    mcp_fail(answer, "fit " NATIVE_ONLY);
}
void mcp_program_end(struct mcp_server *server) { (void)server; }

// Keeps frames as offsets: the files that would name them belong to another system.
enum vram_status vram_recording_symbolize(struct vram_recording *recording, const struct vram_symbols_options *options,
                                          struct vram_symbols_counts *counts) {
    (void)options;
    if (recording == NULL) return VRAM_INVALID_ARGUMENT;
    if (counts != NULL) *counts = (struct vram_symbols_counts){0};
    return VRAM_OK;
}
