/* Starts twice, with whatever the caller has put into the process; standard error is looked at from outside. */
#include "interface.h"

int main(void)
{
    OK(yaksa_init(NULL));
    OK(yaksa_init(NULL));
    OK(yaksa_finalize());
    OK(yaksa_finalize());
    OK(yaksa_init(NULL));
    OK(yaksa_finalize());
    return 0;
}
