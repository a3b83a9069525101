#include "role_rules_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui.h"

enum { MOST_BYTES = 1 << 20 };

static char *refuse(const char *path, const char *why, char *text) {
    ui_say("vram: --roles %s: %s", path, why);
    free(text);
    return NULL;
}

char *role_rules_file_read(const char *path) {
    char *text = malloc(MOST_BYTES + 1);
    if (text == NULL) return refuse(path, "there is not enough memory to read it", NULL);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return refuse(path, strerror(errno), text);
    const size_t length = fread(text, 1, MOST_BYTES + 1, file);
    const bool failed = ferror(file) != 0;
    const int why = errno;
    (void)fclose(file);
    if (failed) return refuse(path, strerror(why), text);
    if (length > MOST_BYTES) return refuse(path, "more than 1 MiB is no list of rules", text);
    if (memchr(text, '\0', length) != NULL) return refuse(path, "a NUL byte is in it: this is no text", text);
    text[length] = '\0';
    return text;
}
