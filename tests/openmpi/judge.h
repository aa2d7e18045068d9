/* What the programs judge and judge6 share: random numbers, and a check that counts differences. */
#include <stdio.h>

static unsigned long long state;
static unsigned long random_below(unsigned long n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n ? (state >> 11) % n : 0;
}

static int differences;
static long type_number;
#define CHECK(CONDITION, ...)                                                             \
    do {                                                                                  \
        if (!(CONDITION)) {                                                               \
            differences++;                                                                \
            printf("type %ld, line %d: %s: ", type_number, __LINE__, #CONDITION);         \
            printf(__VA_ARGS__);                                                          \
            printf("\n");                                                                 \
            return;                                                                       \
        }                                                                                 \
    } while (0)
