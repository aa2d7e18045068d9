/* Starts the library and ends it several times, with the objects that the test has preloaded.
 * `tests/programs.rs` examines what the program writes to standard error. */
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
