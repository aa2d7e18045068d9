/* An object that refers to a function by which requests are completed past C's names, and never calls it. */
extern int COMPLETE(void) __attribute__((weak));
int (*volatile ddtc_refers)(void) = COMPLETE;
