/* Notes for the timeline of a run, from C and C++ on Linux: `appliance annotate --code c` writes this file.
 * EIDETIC_ANNOTATE names the pipe or socket of `appliance annotate --fifo FILE` or `--socket FILE`; without it nothing
 * happens. eidetic_note("begin", "read", 0) ... ("end", "read", 0); also "mark", "pause", "resume", "send" and
 * "receive" of one text (an arrow), and "set", which lasts until the next. A colour is "#rrggbb" or 0. Each thread has a row of its own. A note is one write of less than
 * PIPE_BUF bytes, never mixed with another's, and never waits: it is -1 where there was no room; the next says so. */
#ifndef EIDETIC_ANNOTATE_H
#define EIDETIC_ANNOTATE_H
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
static int eidetic_open(void) {
	const char *path = getenv("EIDETIC_ANNOTATE");
	struct sockaddr_un a;
	struct stat s;
	int fd = -1;
	if (!path || strlen(path) >= sizeof a.sun_path || stat(path, &s) != 0) return -1;
	if (S_ISFIFO(s.st_mode)) return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC); /* reading too: no SIGPIPE */
	memset(&a, 0, sizeof a);
	a.sun_family = AF_UNIX;
	strcpy(a.sun_path, path);
	if (S_ISSOCK(s.st_mode)) fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) != 0) { close(fd); fd = -1; }
	return fd;
}
static __attribute__((unused)) int eidetic_note(const char *op, const char *text, const char *colour) {
	static int fd = -1;
	static __thread int lost;
	char name[17] = "", b[4096]; /* PIPE_BUF */
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	if (fd < 0 && (fd = eidetic_open()) < 0) return -1;
	prctl(PR_GET_NAME, name);
	int n = 1 + snprintf(b, sizeof b, "\001note\037%.8s\037%s %ld\037%lld\037%.7s\037%d\037%.3900s", op, name,
		(long)syscall(SYS_gettid), t.tv_sec * 1000000000LL + t.tv_nsec, colour ? colour : "", lost, text ? text : "");
	if (send(fd, b, n, MSG_NOSIGNAL) == n || (errno == ENOTSOCK && write(fd, b, n) == n)) return lost = 0;
	lost++;
	return -1;
}
#endif
