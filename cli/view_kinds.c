#include "view_kinds.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit_kinds.h"
#include "ui.h"
#include "view_page.h"

#define MOST_BYTES ((size_t)256 << 10) // 32 kinds have about 16 KiB

static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = file == NULL ? NULL : calloc(1, MOST_BYTES + 1);
    if (text != NULL && fread(text, 1, MOST_BYTES + 1, file) > MOST_BYTES) text[0] = '\0'; // too large: no JSON
    if (file != NULL) (void)fclose(file);
    return text;
}

static char *compact(const char *text) {
    cJSON *value = cJSON_Parse(text);
    char *made = cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(value, "kinds")) ? cJSON_PrintUnformatted(value) : NULL;
    cJSON_Delete(value);
    return made;
}

char *view_kinds_read(const struct input_files *files) {
    char path[4200];
    const char *first = files->had_folder && files->count > 0 ? files->paths[0] : NULL, *slash = first == NULL ? NULL : strrchr(first, '/');
    if (first == NULL) return NULL;
    const int length = slash == NULL ? 0 : (int)(slash - first) + 1;
    const int size = snprintf(path, sizeof path, "%.*s%s", length, first, FIT_KINDS_FILE);
    char *text = size < 0 || (size_t)size >= sizeof path ? NULL : read_text(path);
    if (text == NULL) return NULL;
    char *made = compact(text);
    free(text);
    if (made == NULL) ui_say("vram: %s: not a list of kinds; the page has no table of them", path);
    return made;
}

int view_kinds_put(const char *kinds, vram_write write, void *user) {
    return kinds == NULL ? CLI_OK : view_page_meta("vram-kinds", kinds, write, user);
}
