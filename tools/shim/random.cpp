// Random numbers where the C library may be older than its arc4random (glibc 2.36), which LLVM's archives refer to. Used by
// what is linked with archives; hidden, so that nobody else finds it.

#include <cstdint>
#include <sys/random.h>

extern "C" __attribute__((visibility("hidden"))) uint32_t arc4random(void) noexcept {
  uint32_t number = 0;
  while (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
  }
  return number;
}
