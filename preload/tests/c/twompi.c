/* A program without MPI that loads modules, each with an MPI library of its own.
 *
 * Usage: twompi MODULE.., where each MODULE is twompi_lib.c compiled for another MPI library */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        void *module = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (module == NULL) {
            puts(dlerror());
            return 1;
        }
        int (*run)(void) = (int (*)(void))dlsym(module, "run");
        printf("module %d: %s\n", i, run() == 0 ? "right" : "WRONG");
        fflush(stdout);
    }
    return 0;
}
