/* Loads a replacement for a GPU driver (libcuda.c) in the middle of the program, and packs from and
 * to memory that the replacement calls device memory. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
  static int user[1024], device[1024], packed[1024];
  MPI_Datatype t;
  MPI_Init(&argc, &argv);
  MPI_Type_vector(10, 1, 3, MPI_INT, &t);
  MPI_Type_commit(&t);
  int at, wrong = 0;
  for (int i = 0; i < 1024; i++) user[i] = device[i] = i;
  for (int i = 0; i < 10; i++) { at = 0; MPI_Pack(user, 1, t, packed, sizeof packed, &at, MPI_COMM_WORLD); }
  void *driver = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!driver) return 2;
  void (*device_memory)(void *, size_t) = (void (*)(void *, size_t))dlsym(driver, "fake_device_memory");
  int (*asked)(void) = (int (*)(void))dlsym(driver, "fake_asked");
  usleep(50000); /* 50 ms; a real driver takes longer to start. */
  device_memory(device, sizeof device);
  for (int i = 0; i < 7; i++) { at = 0; MPI_Pack(device, 1, t, packed, sizeof packed, &at, MPI_COMM_WORLD); }
  for (int i = 0; i < 10; i++) if (packed[i] != 3 * i) wrong++;
  for (int i = 0; i < 5; i++) { at = 0; MPI_Unpack(packed, 40, &at, device, 1, t, MPI_COMM_WORLD); }
  for (int i = 0; i < 3; i++) { at = 0; MPI_Pack(user, 1, t, device, sizeof device, &at, MPI_COMM_WORLD); }
  for (int i = 0; i < 4; i++) { at = 0; MPI_Pack(user, 1, t, packed, sizeof packed, &at, MPI_COMM_WORLD); }
  printf("wrong %d asked %d\n", wrong, asked() > 0);
  MPI_Finalize();
  return wrong;
}
