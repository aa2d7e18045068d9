/* A program without MPI that loads a plugin with an MPI library of its own and unloads it, twice.
 *
 * Between the two loads, the MPI library must leave the process: MPI cannot be initialized a second
 * time in one copy of a library, so the second load needs a fresh copy.
 *
 * Usage: plug PLUGIN, where PLUGIN is plug_lib.c as a shared library */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Returns whether a file whose name contains `name` is mapped in this process. */
static int mapped(const char *name)
{
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, name) != NULL;
    fclose(maps);
    return found;
}

int main(int argc, char **argv)
{
    (void)argc;
    for (int round = 0; round < 2; round++) {
        void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (plugin == NULL) {
            puts(dlerror());
            return 1;
        }
        int (*run)(void) = (int (*)(void))dlsym(plugin, "run");
        int wrong = run();
        dlclose(plugin);
        printf("round %d: %d exchanges wrong; libmpi is %s\n", round, wrong, mapped("libmpi.so") ? "still there" : "gone");
        fflush(stdout);
    }
    return 0;
}
