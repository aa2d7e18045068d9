/* A library that refers to the function that the macro COMPLETE names, and never calls it. This
 * function may complete requests without the C functions that the preload library sees. */
extern int COMPLETE(void) __attribute__((weak));
int (*volatile ddtc_refers)(void) = COMPLETE;
