/* A library that refers to the function COMPLETE, which may complete requests without the C
 * functions that the preload library sees, and never calls it. */
extern int COMPLETE(void) __attribute__((weak));
int (*volatile ddtc_refers)(void) = COMPLETE;
