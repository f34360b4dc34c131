/* Preloaded: the wall clock of a process is off by the seconds that a file says. Nothing else is
   touched, which libfaketime cannot say: under it Python's time.sleep is refused. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long off(void) {
  char text[32] = {0};
  const char *path = getenv("WALL_CLOCK_OFF_BY");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return 0;
  if (read(file, text, sizeof text - 1) < 0) text[0] = 0;
  close(file);
  return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *found) {
  int failed = (int)syscall(SYS_clock_gettime, clock, found);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    found->tv_sec += off();
  return failed;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
  int failed = (int)syscall(SYS_gettimeofday, found, zone);
  if (!failed && found) found->tv_sec += off();
  return failed;
}

time_t time(time_t *found) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (found) *found = now.tv_sec;
  return now.tv_sec;
}
