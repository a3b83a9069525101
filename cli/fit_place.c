#include "fit_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fit_frame_next(const char **stack, struct fit_frame *frame) {
    static const char between[] = " at ";
    char text[FIT_FRAME_CAPACITY];
    const size_t length = strcspn(*stack, "\n");
    if (length == 0) return false;
    (void)snprintf(text, sizeof text, "%.*s", (int)length, *stack);
    *stack += length + ((*stack)[length] == '\n');
    *frame = (struct fit_frame){.line = 0};
    char *at = strstr(text, between), *colon = at == NULL ? NULL : strrchr(at, ':');
    if (colon != NULL) {
        *at = *colon = '\0';
        frame->line = (unsigned)strtoul(colon + 1, NULL, 10);
        (void)snprintf(frame->file, sizeof frame->file, "%s", at + sizeof between - 1);
    }
    (void)snprintf(frame->function, sizeof frame->function, "%s", text);
    return true;
}

bool fit_frame_is_installed(const struct fit_frame *frame) {
    static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/lib/python", "<frozen", "/vram_fit_"};
    const char *file = frame->line != 0 ? frame->file : frame->function;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strstr(file, folders[i]) != NULL) return true;
    return false;
}

bool fit_frame_own(const char *stack, struct fit_frame *frame) {
    const char *at = stack;
    while (fit_frame_next(&at, frame))
        if (!fit_frame_is_installed(frame)) return true;
    return fit_frame_next(&stack, frame);
}

void fit_frame_site(const struct fit_frame *frame, char *site, size_t capacity) {
    if (frame->line != 0)
        (void)snprintf(site, capacity, "%s:%u:%s", frame->file, frame->line, frame->function);
    else
        (void)snprintf(site, capacity, "%s", frame->function);
}

const char *fit_site_short(const char *site) {
    const char *start = site, *end = strchr(site, ':');
    size_t slashes = 0;
    for (const char *at = end == NULL ? site + strlen(site) : end; at > site && slashes < 2; at--)
        if (at[-1] == '/' && ++slashes == 2) start = at;
    return start;
}
