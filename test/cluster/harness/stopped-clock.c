/*
 * Preloaded into a node under test: CLOCK_MONOTONIC lags by the number of nanoseconds in the file named by STOPPED_CLOCK, as after a
 * suspension that stops this clock. All other clocks continue.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static const volatile int64_t *lag_ns;

__attribute__((constructor)) static void open_lag(void) {
  real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const char *file = getenv("STOPPED_CLOCK");
  const int fd = file == NULL ? -1 : open(file, O_RDONLY);
  if (fd < 0) return;
  void *page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (page != MAP_FAILED) lag_ns = page;
  close(fd);
}

int clock_gettime(clockid_t id, struct timespec *now) {
  if (real_clock_gettime == NULL) real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real_clock_gettime(id, now);
  if (result != 0 || lag_ns == NULL || (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_COARSE)) return result;
  const int64_t ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec - *lag_ns;
  now->tv_sec = ns / 1000000000;
  now->tv_nsec = ns % 1000000000;
  return 0;
}
