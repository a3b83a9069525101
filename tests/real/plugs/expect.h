// expect.h: a check that prints its line, and the last word of a working row.
#ifndef EXPECT_H
#define EXPECT_H
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                                                                                                  \
    do {                                                                                                                                   \
        if (!(condition)) {                                                                                                                \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                                         \
            exit(1);                                                                                                                       \
        }                                                                                                                                  \
    } while (0)
#define OK() (puts("ok"), 0)
#endif
