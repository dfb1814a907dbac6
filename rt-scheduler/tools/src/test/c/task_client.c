/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client as an application has it, driven from the command line:
 *
 *   task_client DIR ACTION...
 *     open:NAME:PRIORITY:GPU_PRIORITY:PERIOD_NS:DEADLINE_NS:BUDGET_NS   -> "open NAME RC TEXT"
 *     close:NAME                                                        -> "close NAME RC"
 *     segments:NAME:COUNT:WINDOW_US                                     -> "segments NAME RC"
 *     begin:NAME                         begins a segment that is not ended -> "begin RC"
 *     jobs:NAME:COUNT:WINDOW_US     the same within marked jobs          -> "jobs RC"
 *     sleep:MS                                                          -> "sleep"
 *     admin:JSON                                                        -> "admin STATUS TEXT" (first packet)
 *     read:PATH                                                         -> "read ERRNO", 0 if it can be opened
 *     write:PATH                                                        -> the same for writing
 *     fuzz:SEED:ROUNDS   one open task; scribbles over the session and the queue's files between segments
 *                                                                       -> "fuzz done", if it gets so far
 *     flood:CONNECTIONS:SECONDS:JSON  commands on so many connections, whose answers are not read
 *                                                                       -> "flood SENT CLOSED"
 *     pause                                                             -> "pause", then waits to be killed
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpuseg.h"
#include "gpuseg_abi.h"

static gpuseg_client *client;
static struct {
	char name[64];
	gpuseg_task *task;
} tasks[64];

static gpuseg_task **slot(const char *name)
{
	for (int i = 0; i < 64; i++) {
		if (tasks[i].name[0] == '\0' || strcmp(tasks[i].name, name) == 0) {
			snprintf(tasks[i].name, sizeof(tasks[i].name), "%s", name);
			return &tasks[i].task;
		}
	}
	exit(2);
}

static int connected(const char *dir)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;

	attr.dir = dir;
	attr.name = "task_client";
	return client != NULL ? 0 : gpuseg_connect(&attr, &client);
}

static void open_task(const char *dir, char *words)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	int rc = connected(dir);

	attr.name = strsep(&words, ":");
	attr.priority = (uint32_t)atoi(strsep(&words, ":"));
	attr.gpu_priority = (uint32_t)atoi(strsep(&words, ":"));
	attr.period_ns = atoll(strsep(&words, ":"));
	attr.deadline_ns = atoll(strsep(&words, ":"));
	attr.budget_ns = atoll(strsep(&words, ":"));
	if (rc >= 0)
		rc = gpuseg_task_open(client, &attr, slot(attr.name));
	printf("open %s %d %s\n", attr.name, rc, rc < 0 ? gpuseg_last_message(client) : "");
}

static int run_segments(char *words, int marked)
{
	gpuseg_task *task = *slot(strsep(&words, ":"));
	const int count = atoi(strsep(&words, ":"));
	const int window_us = atoi(words);

	for (int i = 0; i < count; i++) {
		int rc = marked ? gpuseg_job_release(task, 0) : 0;

		if (rc == 0)
			rc = gpuseg_begin(task);
		if (rc < 0)
			return rc;
		usleep((useconds_t)window_us);
		rc = gpuseg_end(task);
		if (rc == 0 && marked)
			rc = gpuseg_job_end(task);
		if (rc < 0)
			return rc;
		usleep(200);
	}
	return 0;
}

static void admin(const char *dir, const char *json)
{
	static char packet[65536];
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct gpuseg_msg_admin ask = {.msg = {.magic = GPUSEG_MSG_MAGIC,
					       .version = GPUSEG_ABI_VERSION,
					       .type = GPUSEG_MSG_ADMIN,
					       .size = (uint32_t)(sizeof(ask) + strlen(json)),
					       .seq = 1},
				       .text_size = (uint32_t)strlen(json)};
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	ssize_t n;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s/gpuseg.sock", dir);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		printf("admin %d cannot connect\n", -errno);
		close(fd);
		return;
	}
	memcpy(packet, &ask, sizeof(ask));
	memcpy(packet + sizeof(ask), json, strlen(json));
	n = send(fd, packet, sizeof(ask) + strlen(json), 0);
	if (n > 0)
		n = recv(fd, packet, sizeof(packet) - 1, 0);
	if (n < (ssize_t)sizeof(struct gpuseg_msg_admin_reply)) {
		printf("admin -1000 hung up\n");
	} else {
		struct gpuseg_msg_admin_reply reply;

		memcpy(&reply, packet, sizeof(reply));
		packet[n] = '\0';
		printf("admin %d %s\n", reply.msg.status, packet + sizeof(reply));
	}
	close(fd);
}

/* Maps every file that this process shares with the daemon: the session (a memfd) and the queue. */
static int shared_memory(unsigned char *bases[8], size_t sizes[8])
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (maps != NULL && n < 8 && fgets(line, sizeof(line), maps) != NULL) {
		unsigned long from, to;
		char mode[5];

		if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3 && mode[1] == 'w' && mode[3] == 's' &&
		    (strstr(line, "memfd:") != NULL || strstr(line, ".cq4") != NULL)) {
			bases[n] = (unsigned char *)from;
			sizes[n++] = to - from;
		}
	}
	if (maps != NULL)
		fclose(maps);
	return n;
}

static void fuzz(const char *dir, char *words)
{
	char open[] = "fuzz:10:0:0:0:0";
	unsigned char *bases[8];
	size_t sizes[8];
	gpuseg_task *task;
	int n;

	srand48(atol(strsep(&words, ":")));
	open_task(dir, open);
	task = *slot("fuzz");
	n = shared_memory(bases, sizes);
	printf("fuzz %d mappings\n", n);
	for (long i = atol(words); task != NULL && i > 0; i--) {
		const int m = n > 0 ? (int)(lrand48() % n) : 0;
		/* mostly where it matters: the first pages, and where records are */
		const size_t reach = lrand48() % 2 == 0 ? 4096 : lrand48() % 2 == 0 ? 131072 : sizes[m];

		for (long k = 1 + lrand48() % 16; n > 0 && k > 0 && lrand48() % 4 == 0; k--)
			bases[m][(size_t)lrand48() % (reach < sizes[m] ? reach : sizes[m])] = (unsigned char)lrand48();
		if (gpuseg_begin_try(task) >= 0)
			gpuseg_end(task);
		if (lrand48() % 8 == 0)
			gpuseg_hint(task, gpuseg_now_ns() + lrand48() % 1000000);
		if (lrand48() % 64 == 0)
			usleep(500);
	}
	printf("fuzz done\n");
}

static int can_open(const char *path, int flags)
{
	const int fd = open(path, flags);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Sends a command on many connections for some time, and reads no answer. */
static void flood(const char *dir, char *words)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	static unsigned char packet[4096];
	struct gpuseg_msg_admin ask;
	const int count = atoi(strsep(&words, ":")); /* at most 256 */
	const int64_t end_ns = gpuseg_now_ns() + atoll(strsep(&words, ":")) * 1000000000;
	long sent = 0, closed = 0;
	int turn = 0;
	int fds[256];

	ask = (struct gpuseg_msg_admin){.msg = {.magic = GPUSEG_MSG_MAGIC,
						.version = GPUSEG_ABI_VERSION,
						.type = GPUSEG_MSG_ADMIN,
						.size = (uint32_t)(sizeof(ask) + strlen(words)),
						.seq = 1},
					.text_size = (uint32_t)strlen(words)};
	memcpy(packet, &ask, sizeof(ask));
	memcpy(packet + sizeof(ask), words, strlen(words));
	snprintf(to.sun_path, sizeof(to.sun_path), "%s/gpuseg.sock", dir);
	for (int i = 0; i < count && i < 256; i++)
		fds[i] = -1;
	while (gpuseg_now_ns() < end_ns) {
		/* each time another one is the first, which has the best chance of being answered */
		for (int k = 0; k < count && k < 256; k++) {
			const int i = (turn + k) % count;

			if (fds[i] < 0) {
				fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
				if (connect(fds[i], (struct sockaddr *)&to, sizeof(to)) < 0) {
					close(fds[i]);
					fds[i] = -1;
					continue;
				}
			}
			if (send(fds[i], packet, ask.msg.size, MSG_NOSIGNAL) > 0) {
				sent++;
			} else if (errno != EAGAIN) {
				close(fds[i]);
				fds[i] = -1;
				closed++;
			}
		}
		/* a connection with 1024 unread replies is closed: slow enough to keep all of them for a minute */
		usleep(50000);
		turn = (turn + 1) % count;
	}
	printf("flood %ld %ld\n", sent, closed);
	for (int i = 0; i < count && i < 256; i++)
		close(fds[i]);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 2; i < argc; i++) {
		char *words = argv[i];
		const char *action = strsep(&words, ":");

		if (strcmp(action, "open") == 0) {
			open_task(argv[1], words);
		} else if (strcmp(action, "close") == 0) {
			printf("close %s %d\n", words, gpuseg_task_close(*slot(words)));
			*slot(words) = NULL;
		} else if (strcmp(action, "segments") == 0) {
			printf("segments %d\n", run_segments(words, 0));
		} else if (strcmp(action, "begin") == 0) {
			const int64_t rc = gpuseg_begin(*slot(words));

			printf("begin %d\n", rc < 0 ? (int)rc : 0);
		} else if (strcmp(action, "jobs") == 0) {
			printf("jobs %d\n", run_segments(words, 1));
		} else if (strcmp(action, "sleep") == 0) {
			usleep((useconds_t)atoi(words) * 1000);
			printf("sleep\n");
		} else if (strcmp(action, "admin") == 0) {
			admin(argv[1], words);
		} else if (strcmp(action, "fuzz") == 0) {
			fuzz(argv[1], words);
		} else if (strcmp(action, "flood") == 0) {
			flood(argv[1], words);
		} else if (strcmp(action, "read") == 0) {
			printf("read %d\n", can_open(words, O_RDONLY));
		} else if (strcmp(action, "write") == 0) {
			printf("write %d\n", can_open(words, O_WRONLY));
		} else {
			printf("pause\n");
			pause();
		}
	}
	gpuseg_disconnect(client);
	return 0;
}
