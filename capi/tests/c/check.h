/* Checks. If a check fails, it prints its line and its expression, and ends the program. */
#ifndef CHECK_H
#define CHECK_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void check_failed(const char *file, int line, const char *what, long long a, long long b)
{
    char text[512] = "";
    int n;
    ddtc_error_string((int)a, text, &n);
    fprintf(stderr, "%s:%d: %s: %lld, expected %lld (%s)\n", file, line, what, a, b, text);
    exit(1);
}

#define EQ(a, b)                                                                                                       \
    do {                                                                                                               \
        long long check_a = (long long)(a), check_b = (long long)(b);                                                  \
        if (check_a != check_b) check_failed(__FILE__, __LINE__, #a, check_a, check_b);                                \
    } while (0)
#define TRUE(a) EQ(!!(a), 1)
#define OK(call) EQ(call, 0)
/* Checks that a call fails with an error of `class` whose message contains `argument`. */
#define FAILS(class, argument, call)                                                                                   \
    do {                                                                                                               \
        EQ(call, class);                                                                                               \
        char check_text[512];                                                                                          \
        int check_n;                                                                                                   \
        ddtc_error_string(class, check_text, &check_n);                                                                \
        if (!strstr(check_text, argument)) {                                                                           \
            fprintf(stderr, "%s:%d: %s: message \"%s\" lacks \"%s\"\n", __FILE__, __LINE__, #call, check_text,         \
                    argument);                                                                                         \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
#define BYTES(a, b, n) EQ(memcmp(a, b, n), 0)
#define LENGTH(a) ((int)(sizeof(a) / sizeof((a)[0])))
#endif
