/* Kernels that do nothing, under the names that make_seeds.py gives to those of
 * the corpus. */
#include "runtime/abi/kernel.h"

#define KERNEL(name)                                                          \
  const int64_t name##_use[] = {-1, 0, -1};                                    \
  void name(void *const *buffers, int64_t begin, int64_t end) {               \
    (void)buffers, (void)begin, (void)end;                                     \
  }
#define EIGHT(name)                                                           \
  KERNEL(name##0)                                                              \
  KERNEL(name##1)                                                              \
  KERNEL(name##2)                                                              \
  KERNEL(name##3)                                                              \
  KERNEL(name##4) KERNEL(name##5) KERNEL(name##6) KERNEL(name##7)
EIGHT(k0)
EIGHT(k1)
EIGHT(k2)
EIGHT(k3)
EIGHT(k4)
EIGHT(k5)
EIGHT(k6)
EIGHT(k7)
