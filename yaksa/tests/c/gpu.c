/* Starts and ends the library several times. `tests/programs.rs` runs this program with preloaded
 * objects and examines what it writes to standard error. */
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
