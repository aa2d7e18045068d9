/* A program that is not linked with MPI and loads modules that are linked with MPI (module.c).
 *
 *     loads again N MODULE: loads and unloads a module N times, and its MPI library with it
 *     loads both N MODULE MODULE: two modules with different MPI libraries, used in turn N times */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int call(void);
typedef int numbered(int);
static int wrong;

static void *load(const char *file) {
  void *module = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!module) printf("%s\n", dlerror()), exit(2);
  wrong += ((call *)dlsym(module, "module_begin"))() != 0;
  return module;
}
static void use(void *module, int round) { wrong += ((numbered *)dlsym(module, "module_round"))(round); }
static void unload(void *module) {
  wrong += ((call *)dlsym(module, "module_end"))() != 0;
  dlclose(module);
}
/* Returns whether an MPI library is mapped in the memory of this process. */
static int mapped(void) {
  char line[1000];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) found |= strstr(line, "/libmpi.so") != NULL;
  fclose(maps);
  return found;
}

int main(int argc, char **argv) {
  int n = argc > 3 ? atoi(argv[2]) : 0;
  if (n && !strcmp(argv[1], "again"))
    for (int i = 0; i < n; i++) {
      void *module = load(argv[3]);
      for (int round = 0; round < 20; round++) use(module, round);
      unload(module);
      if (mapped()) wrong++, printf("the library is still there\n");
    }
  else if (n && argc > 4) {
    void *first = load(argv[3]), *second = NULL;
    use(first, 0);
    second = load(argv[4]);
    for (int round = 1; round < n; round++) {
      use(first, round);
      use(second, round);
    }
    unload(second);
    use(first, n);
    unload(first);
  } else return 3;
  printf("wrong %d\n", wrong);
  return 0;
}
