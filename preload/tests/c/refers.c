/* A library that refers to a function which completes requests without the C functions, and
 * never calls it. */
extern int COMPLETE(void) __attribute__((weak));
int (*volatile ddtc_refers)(void) = COMPLETE;
