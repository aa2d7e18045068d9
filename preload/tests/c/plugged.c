/* Loads the library that the first argument names with RTLD_LOCAL, and calls its function `run`
 * with the other arguments. This is what programs do that get their MPI library together with a
 * plugin. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  int (*run)(int, char **) = library ? (int (*)(int, char **))dlsym(library, "run") : 0;
  if (run) return run(argc - 1, argv + 1);
  printf("%s\n", dlerror());
  return 1;
}
