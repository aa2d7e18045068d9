/* Starts and ends the library several times. `tests/programs.rs` runs this program with
 * preloaded shared libraries that look like a GPU runtime or like MPICH, and checks the warnings on
 * standard error. */
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
