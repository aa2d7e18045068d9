/* For programs that include mpi.h: -I<prefix>/include/ddtc. */
#include "../ddtc_mpi.h"
