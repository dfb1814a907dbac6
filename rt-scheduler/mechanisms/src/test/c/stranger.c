/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose file of some kind has the name of a driver's device:
 *
 *   stranger KIND PATH      KIND: file, fifo, fuse or pty; PATH: below /dev
 *
 * It needs no privilege: it makes a user and a mount namespace of its own. The server of the FUSE file answers until
 * the file is open, and nothing after that. Prints "open FD SERVER" (pid of the server or 0) and waits to be killed.
 * The server ends by itself after 100 s: who waits for it could not even be killed. A pty is a character device, as the
 * driver's files are; its output is stopped, so who writes to it or waits for it to drain is not answered either. Exit
 * status 77: not permitted here.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define SERVER_LIMIT_S 100

static void need(int ok, const char *what)
{
	if (!ok) {
		printf("skip %s: %s\n", what, strerror(errno));
		exit(77);
	}
}

static void put(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY);

	need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

static void reply(int fuse, const struct fuse_in_header *in, int error, const void *body, size_t size)
{
	struct {
		struct fuse_out_header header;
		char body[512];
	} out = {.header = {.len = (uint32_t)(sizeof(out.header) + size), .error = error, .unique = in->unique}};

	if (size > 0)
		memcpy(out.body, body, size);
	if (write(fuse, &out, out.header.len) < 0)
		perror("fuse reply");
}

static void serve(int fuse)
{
	static char room[1 << 17];
	int deaf = 0;

	alarm(SERVER_LIMIT_S);
	while (read(fuse, room, sizeof(room)) > 0) {
		const struct fuse_in_header *in = (const struct fuse_in_header *)room;
		struct fuse_init_out init = {.major = 7, .minor = 31, .max_write = 4096};
		struct fuse_attr_out attr = {.attr = {.ino = 1, .mode = S_IFREG | 0666, .nlink = 1}};
		struct fuse_open_out open_out = {.fh = 1};

		if (deaf)
			continue;
		switch (in->opcode) {
		case FUSE_INIT:
			reply(fuse, in, 0, &init, sizeof(init));
			break;
		case FUSE_GETATTR:
			reply(fuse, in, 0, &attr, sizeof(attr));
			break;
		case FUSE_OPEN:
			reply(fuse, in, 0, &open_out, sizeof(open_out));
			deaf = 1;
			break;
		default:
			reply(fuse, in, -ENOSYS, NULL, 0);
			break;
		}
	}
	_exit(0);
}

/* The slave of a new pty, stopped with output under way. The master stays open. */
static int stopped_pty(void)
{
	static char output[1024];
	const int master = posix_openpt(O_RDWR | O_NOCTTY);
	int slave;

	need(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "pty");
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_NONBLOCK);
	need(slave >= 0 && write(slave, output, sizeof(output)) > 0 && tcflow(slave, TCOOFF) == 0, "slave of the pty");
	return slave;
}

int main(int argc, char **argv)
{
	char map[64], options[128], from[64];
	const uid_t uid = getuid();
	const gid_t gid = getgid();
	pid_t server = 0;
	int fuse, slave = -1, fd;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3)
		return 2;
	need(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "unshare");
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	put("/proc/self/gid_map", map);
	fuse = open("/dev/fuse", O_RDWR); /* by the owner of the namespace that mounts it, and before /dev is hidden */
	if (strcmp(argv[1], "pty") == 0)
		slave = stopped_pty();
	need(mount("none", "/dev", "tmpfs", 0, NULL) == 0, "tmpfs");
	if (strcmp(argv[1], "fifo") == 0) {
		need(mkfifo(argv[2], 0666) == 0, "mkfifo");
	} else {
		need(close(open(argv[2], O_CREAT | O_RDWR, 0666)) == 0, argv[2]);
	}
	if (strcmp(argv[1], "fuse") == 0) {
		need(fuse >= 0, "/dev/fuse");
		snprintf(options, sizeof(options), "fd=%d,rootmode=100666,user_id=0,group_id=0", fuse);
		need(mount("stranger", argv[2], "fuse", 0, options) == 0, "mount of fuse");
		server = fork();
		if (server == 0)
			serve(fuse);
		close(fuse);
	}
	if (slave >= 0) {
		snprintf(from, sizeof(from), "/proc/self/fd/%d", slave);
		need(mount(from, argv[2], NULL, MS_BIND, NULL) == 0, "mount of the pty");
	}
	fd = open(argv[2], O_RDWR | O_NOCTTY);
	need(fd >= 0, argv[2]);
	printf("open %d %d\n", fd, (int)server); /* now the server is deaf */
	pause();
	return 0;
}
