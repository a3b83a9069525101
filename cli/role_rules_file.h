// role_rules_file.h: the file of `--roles`: rules of the user for what memory is for.
#ifndef CLI_ROLE_RULES_FILE_H
#define CLI_ROLE_RULES_FILE_H

#include <stdbool.h>

// The text of the file, at most 1 MiB and without NUL. NULL, with a line on standard error, where it cannot be read. The caller's to
// free(). What stands in it is looked at by the library.
char *role_rules_file_read(const char *path);

#endif
