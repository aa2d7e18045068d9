/* A library that refers to the function that the macro COMPLETE names, but never calls this
 * function. The function may complete requests without calling the C functions that the preload
 * library sees. */
extern int COMPLETE(void) __attribute__((weak));
int (*volatile ddtc_refers)(void) = COMPLETE;
