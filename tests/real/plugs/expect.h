// expect.h: EXPECT() prints its line and exits if a condition is false; OK() prints "ok", the last line of a row that works.
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
