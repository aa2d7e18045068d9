/* A replacement for a GPU driver, with one range of ordinary memory that it reports as device
 * memory, for tests without a GPU. */
#include <stddef.h>
static unsigned char *low, *high;
static int asked;
void fake_device_memory(void *p, size_t n) { low = p; high = low + n; }
int fake_asked(void) { return asked; }
int cuPointerGetAttribute(void *data, int attribute, unsigned long long pointer) {
  asked++;
  if (attribute != 2) return 1;
  unsigned char *p = (unsigned char *)pointer;
  if (p < low || p >= high) return 1;
  *(unsigned *)data = 2;
  return 0;
}
