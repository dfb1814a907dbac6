/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-hostile - an ordinary user who attacks the daemon, for the campaign `gpuseg faults --hostile`.
 *
 *   gpuseg-hostile ATTACK --dir DIR --seed N --duration DURATION [--at-most DURATION]
 *   gpuseg-hostile load --dir DIR --duration DURATION [--threads N] [--share PERMILLE]
 *
 * Goes on for the duration, and until --at-most while it has done too little to be called an attack; the table
 * below says how much that is. Prints one line: what it did, how often, and the processor time that it took. `load`
 * is the control of an attack: it uses as much processor time and leaves the daemon alone. All is bounded: 64
 * connections, 24 processes at a time, 8 MiB in files. Exit status 0: the attack was made, whatever the daemon
 * answered; 3: it did too little; 77: this machine does not permit it, with the reason. SIGKILL at any time leaves
 * nothing behind but what daemon and kernel clean up.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "gpuseg.h"
#include "gpuseg_abi.h"
#include "gpuseg_sim.h"

enum {
	EXIT_DID_NOT_BITE = 3,
	EXIT_NOT_PERMITTED = 77,
	CONNECTIONS = 60,
	THREADS = 4,
	MAPPINGS = 8,
	CONTEXTS = 24,
	KERNELS = 8,
	GROWN_BYTES = 8 << 20,
	MEMBERS_PRIORITY = 49, /* the highest that a member of the group has */
	BURST = 64
};

static const char *dir;
static int64_t until_ns;
static int64_t at_most_ns;	/* until then it goes on while it has done too little */
static long enough;		/* of what it counts, to be called an attack */
static atomic_long done_so_far; /* any thread of the attack; relaxed, it orders nothing */
static int64_t seed;
static long load_threads = 1;
static long load_share = 1000; /* of a processor for each thread, in thousandths */

static bool goes_on(void)
{
	const int64_t now = now_ns();

	return now < until_ns ||
	       (now < at_most_ns && atomic_load_explicit(&done_so_far, memory_order_relaxed) < enough);
}

static void did(long more)
{
	atomic_fetch_add_explicit(&done_so_far, more, memory_order_relaxed);
}

static void pause_us(long us)
{
	sleep_until(now_ns() + us * NS_PER_US, NULL);
}

static long draw(long below)
{
	return lrand48() % below;
}

/* ---- raw connections --------------------------------------------------------------------------------------------- */

static int dial(int flags)
{
	struct sockaddr_un to;
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);

	if (fd < 0)
		return -1;
	if (unix_address(&to, dir, "gpuseg.sock") < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct gpuseg_msg header(uint32_t type, size_t size)
{
	return (struct gpuseg_msg){.magic = GPUSEG_MSG_MAGIC,
				   .version = GPUSEG_ABI_VERSION,
				   .type = type,
				   .size = (uint32_t)size,
				   .seq = (uint32_t)draw(1000)};
}

static size_t command(unsigned char *packet, const char *json)
{
	const size_t length = strlen(json), size = sizeof(struct gpuseg_msg_admin) + length;
	const struct gpuseg_msg_admin ask = {.msg = header(GPUSEG_MSG_ADMIN, size), .text_size = (uint32_t)length};

	memcpy(packet, &ask, sizeof(ask));
	memcpy(packet + sizeof(ask), json, length);
	return size;
}

/* A registered connection, or -1. The descriptors of the reply are closed. */
static int hello(const char *name)
{
	struct gpuseg_msg_hello ask = {.msg = header(GPUSEG_MSG_HELLO, sizeof(ask))};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct gpuseg_msg_hello_reply reply;
	struct iovec part = {&reply, sizeof(reply)};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	const int fd = dial(0);

	if (fd < 0)
		return -1;
	memcpy(ask.name, name, strnlen(name, sizeof(ask.name)));
	if (send(fd, &ask, sizeof(ask), MSG_NOSIGNAL) < 0 ||
	    recvmsg(fd, &message, MSG_CMSG_CLOEXEC) < (ssize_t)sizeof(struct gpuseg_msg)) {
		close(fd);
		return -1;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c)) {
		for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int passed;

			memcpy(&passed, CMSG_DATA(c) + i * sizeof(int), sizeof(passed));
			close(passed);
		}
	}
	if (reply.msg.status < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void deep(char *json, size_t size)
{
	memset(json, draw(2) == 0 ? '[' : '{', size - 1);
	json[size - 1] = '\0';
}

/* One of the commands that an administrator has, or what looks like one. */
static void draw_command(char *json, size_t size)
{
	static const char *const known[] = {
		"{\"command\":\"status\"}",
		"{\"command\":\"stop\"}",
		"{\"command\":\"policy\",\"policy\":\"rr\"}",
		"{\"command\":\"hint\",\"task\":\"innocent\",\"priority\":0}",
		"{\"command\":\"hint\",\"task\":\"1\",\"priority\":99}",
		"{\"command\":\"live\",\"since\":-2}",
		"{\"command\":\"\\u001b[31m\\u202e\"}",
		"{\"command\":1e308}",
		"{\"command\":\"status\",\"command\":\"stop\"}",
		"",
		"null",
		"{\"command\":",
	};
	const long which = draw(14);

	if (which < (long)ARRAY_LENGTH(known)) {
		snprintf(json, size, "%s", known[which]);
	} else if (which == 12) {
		deep(json, 2 + (size_t)draw((long)size - 2));
	} else {
		memset(json, 'x', size - 1);
		json[size - 1] = '\0';
	}
}

/* Commands on many connections; no answer is read. */
static long flood(bool status_only)
{
	static unsigned char packet[GPUSEG_MSG_BYTES_MAX];
	static char json[GPUSEG_MSG_BYTES_MAX - sizeof(struct gpuseg_msg_admin)];
	int fds[CONNECTIONS];
	long sent = 0;

	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = -1;
	while (goes_on()) {
		for (int i = 0; i < CONNECTIONS; i++) {
			size_t size;

			if (fds[i] < 0)
				fds[i] = dial(SOCK_NONBLOCK);
			snprintf(json, sizeof(json), "{\"command\":\"status\"}");
			if (!status_only)
				draw_command(json, sizeof(json));
			size = command(packet, json);
			if (fds[i] < 0)
				continue;
			if (send(fds[i], packet, size, MSG_NOSIGNAL) > 0) {
				sent++;
				did(1);
			} else if (errno != EAGAIN) {
				close(fds[i]);
				fds[i] = -1;
			}
		}
		pause_us(1000);
	}
	return sent;
}

static long flood_status(void)
{
	return flood(true);
}

static long flood_commands(void)
{
	return flood(false);
}

/* Passes descriptors that nobody asked for. */
static void pass_descriptors(int fd, void *data, size_t size)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(16 * sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec part = {data, size};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(16 * sizeof(int));
	for (size_t i = 0; i < 16; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	(void)sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Connections that say hello and leave, say half of it, nonsense, or nothing. */
static long connect_storm(void)
{
	unsigned char noise[512];
	long made = 0;

	for (; goes_on(); made++, did(1)) {
		const int fd = draw(3) == 0 ? hello("storm") : dial(SOCK_NONBLOCK);
		struct gpuseg_msg_hello ask = {.msg = header(GPUSEG_MSG_HELLO, sizeof(ask)), .name = "storm"};

		if (fd < 0) {
			made--;
			did(-1);
			pause_us(2000);
			continue;
		}
		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (unsigned char)draw(256);
		switch (draw(5)) {
		case 0:
			(void)send(fd, &ask, (size_t)draw(sizeof(ask)), MSG_NOSIGNAL | MSG_DONTWAIT);
			break;
		case 1:
			(void)send(fd, noise, 1 + (size_t)draw(sizeof(noise)), MSG_NOSIGNAL | MSG_DONTWAIT);
			break;
		case 2:
			memcpy(noise, &ask, sizeof(ask.msg));
			(void)send(fd, noise, sizeof(ask), MSG_NOSIGNAL | MSG_DONTWAIT);
			break;
		case 3:
			pass_descriptors(fd, &ask, sizeof(ask));
			break;
		default:
			break;
		}
		close(fd);
	}
	return made;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static void draw_name(char *name, size_t size)
{
	static const char *const bad[] = {"\x1b[31mred",
					  "\x1b]0;title\a",
					  ("\xc2\x9b"
					   "31m"),
					  "a\nb",
					  "\xe2\x80\xaegnp",
					  "\xff\xfe",
					  "<script>alert(1)</script>",
					  "../../etc",
					  "%s%n",
					  "innocent",
					  "",
					  "\xe2\x81\xa6",
					  "zero\xe2\x80\x8bwidth"};
	const long which = draw(ARRAY_LENGTH(bad) + 2);

	memset(name, 0, size);
	if (which < (long)ARRAY_LENGTH(bad))
		memcpy(name, bad[which], strlen(bad[which]));
	else if (which == (long)ARRAY_LENGTH(bad))
		memset(name, 'x', size); /* no terminator */
	else
		snprintf(name, size, "t%ld", draw(100000));
}

/* Opens tasks with whatever parameters and names, and closes what it never opened. */
static long flood_opens(void)
{
	int fd = -1;
	long sent = 0;

	while (goes_on()) {
		struct gpuseg_msg_task_open ask = {.msg = header(GPUSEG_MSG_TASK_OPEN, sizeof(ask))};
		const struct gpuseg_msg_task_close leave = {.msg = header(GPUSEG_MSG_TASK_CLOSE, sizeof(leave)),
							    .task_id = (uint32_t)lrand48()};
		char name[GPUSEG_NAME_BYTES];

		if (fd < 0) {
			draw_name(name, sizeof(name));
			fd = hello(draw(2) == 0 ? name : "opens");
			if (fd < 0) {
				pause_us(5000);
				continue;
			}
		}
		draw_name(ask.name, sizeof(ask.name));
		ask.priority = draw(4) == 0 ? (uint32_t)lrand48() : (uint32_t)draw(100);
		ask.gpu_priority = draw(4) == 0 ? (uint32_t)draw(100) : 0;
		ask.gpu = draw(8) == 0 ? (uint32_t)lrand48() : 0;
		ask.flags = draw(8) == 0 ? (uint32_t)lrand48() : 0;
		ask.period_ns = draw(4) == 0 ? ((int64_t)lrand48() << 32) : draw(100) * NS_PER_MS;
		ask.deadline_ns = draw(8) == 0 ? -1 : 0;
		ask.budget_ns = draw(4) == 0 ? INT64_MAX : draw(300) * NS_PER_MS;
		ask.overrun = (uint8_t)draw(6);
		ask.weight = (uint16_t)draw(20000);
		if (send(fd, &ask, sizeof(ask), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
		    (draw(4) == 0 && send(fd, &leave, sizeof(leave), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)) {
			if (errno != EAGAIN || draw(4) == 0) {
				close(fd);
				fd = -1;
			} else {
				pause_us(200);
			}
			continue;
		}
		sent++;
		did(1);
	}
	return sent;
}

static gpuseg_client *join(void)
{
	struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
	gpuseg_client *client = NULL;

	attr.dir = dir;
	attr.name = "hostile";
	attr.flags = GPUSEG_CONNECT_FAIL_IF_LOST; /* its attacks are on a daemon */
	while (goes_on() && gpuseg_connect(&attr, &client) < 0) {
		client = NULL;
		pause_us(5000);
	}
	return client;
}

static gpuseg_task *open_task(gpuseg_client *client, const char *name, uint32_t priority, int64_t budget_ns)
{
	struct gpuseg_task_attr attr = GPUSEG_TASK_ATTR_INIT;
	gpuseg_task *task = NULL;

	attr.name = name;
	attr.priority = priority;
	attr.budget_ns = budget_ns;
	attr.timeout_ns = 20 * NS_PER_MS;
	while (goes_on() && gpuseg_task_open(client, &attr, &task) < 0) {
		task = NULL;
		pause_us(5000);
	}
	return task;
}

struct writer {
	gpuseg_task *task;
	long written;
};

/* Marks as fast as they can be written, and announcements in any number. */
static void *write_records(void *of)
{
	struct writer *writer = of;
	unsigned int state = (unsigned int)(uintptr_t)of;

	while (goes_on()) {
		const int64_t now = gpuseg_now_ns();

		for (int i = 0; i < BURST; i++) {
			switch (rand_r(&state) % 4) {
			case 0:
				gpuseg_hint(writer->task, now + rand_r(&state) % (2 * NS_PER_MS));
				break;
			case 1:
				gpuseg_job_release(writer->task, now);
				break;
			case 2:
				gpuseg_hint(writer->task, now + (int64_t)rand_r(&state) * NS_PER_S);
				break;
			default:
				if (gpuseg_begin_try(writer->task) >= 0)
					gpuseg_end(writer->task);
			}
		}
		writer->written += BURST;
		did(BURST);
	}
	return NULL;
}

static long flood_records(void)
{
	static const char *const names[THREADS] = {"r0", "r1", "r2", "r3"};
	struct writer writers[THREADS] = {{NULL, 0}};
	pthread_t threads[THREADS];
	gpuseg_client *client = join();
	int started = 0;
	long written = 0;

	for (; client != NULL && started < THREADS; started++) {
		writers[started].task = open_task(client, names[started], started % 2 == 0 ? MEMBERS_PRIORITY : 0, 0);
		if (writers[started].task == NULL ||
		    pthread_create(&threads[started], NULL, write_records, &writers[started]) != 0)
			break;
	}
	for (int i = 0; i < started; i++) {
		pthread_join(threads[i], NULL);
		written += writers[i].written;
	}
	return written;
}

/* Segments of the highest priority that a member has, begun and never ended. */
static long hold_the_gpu(void)
{
	gpuseg_client *client = join();
	gpuseg_task *task = client == NULL ? NULL : open_task(client, "holder", MEMBERS_PRIORITY, 0);
	long begun = 0;

	while (task != NULL && goes_on()) {
		if (gpuseg_begin(task) >= 0) {
			begun++;
			did(1);
		}
		while (goes_on() && draw(4) != 0)
			pause_us(50000);
		if (draw(2) == 0)
			gpuseg_end(task);
	}
	return begun;
}

/* ---- shared memory and files ------------------------------------------------------------------------------------- */

struct mapping {
	unsigned char *base;
	size_t size;
	char path[256];
};

/* What this process shares with the daemon: the session (a memfd) and the queue. */
static int shared_memory(struct mapping *found)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int n = 0;

	while (maps != NULL && n < MAPPINGS && fgets(line, sizeof(line), maps) != NULL) {
		unsigned long from, to;
		char mode[5], path[256] = "";

		if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %255s", &from, &to, mode, path) >= 3 && mode[1] == 'w' &&
		    mode[3] == 's' && (strstr(path, "memfd:") != NULL || strstr(path, ".cq4") != NULL)) {
			found[n].base = (unsigned char *)from;
			found[n].size = to - from;
			snprintf(found[n++].path, sizeof(found->path), "%s", path);
		}
	}
	if (maps != NULL)
		fclose(maps);
	return n;
}

static long scribble(void)
{
	struct mapping shared[MAPPINGS];
	gpuseg_client *client = join();
	gpuseg_task *task = client == NULL ? NULL : open_task(client, "scribbler", 10, 0);
	const int n = shared_memory(shared);
	long written = 0;

	for (; task != NULL && n > 0 && goes_on(); written++, did(1)) {
		const struct mapping *m = &shared[draw(n)];
		const size_t reach = draw(2) == 0 ? 4096 : draw(2) == 0 ? 131072 : m->size;

		for (long k = 1 + draw(16); k > 0; k--)
			m->base[(size_t)lrand48() % (reach < m->size ? reach : m->size)] = (unsigned char)draw(256);
		if (gpuseg_begin_try(task) >= 0)
			gpuseg_end(task);
		if (draw(64) == 0)
			pause_us(500);
	}
	return written;
}

/* A fault in a file that this process has shortened itself is its own. */
static void end_at_once(int signal)
{
	static const char said[] = "1 changes of files, after which it met its own missing page, processor time 0 ms\n";

	(void)signal;
	(void)!write(STDOUT_FILENO, said, sizeof(said) - 1);
	_exit(0);
}

/* Its own files: shortened, grown, emptied in the middle, replaced where that is possible. */
static long spoil_files(void)
{
	struct mapping shared[MAPPINGS];
	gpuseg_client *client = join();
	gpuseg_task *task = client == NULL ? NULL : open_task(client, "spoiler", 10, 0);
	const int n = shared_memory(shared);
	long done = 0;

	signal(SIGBUS, end_at_once);
	for (; task != NULL && n > 0 && goes_on(); done++, did(1)) {
		const struct mapping *m = &shared[draw(n)];
		const int fd = open(m->path, O_RDWR | O_CLOEXEC);
		char other[300];

		if (fd >= 0) {
			switch (draw(4)) {
			case 0:
				(void)!ftruncate(fd, (off_t)((size_t)draw(4) * m->size / 4));
				break;
			case 1:
				(void)!ftruncate(fd, (off_t)1 << (30 + draw(10)));
				break;
			case 2:
				(void)!posix_fallocate(fd, 0, GROWN_BYTES);
				break;
			default:
				(void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)m->size / 2);
			}
			close(fd);
		}
		snprintf(other, sizeof(other), "%s.new", m->path);
		(void)!symlink("/etc/passwd", other);
		(void)!rename(other, m->path);
		(void)!unlink(m->path);
		if (gpuseg_begin_try(task) >= 0)
			gpuseg_end(task);
		pause_us(2000);
	}
	return done;
}

/* ---- processes and namespaces ------------------------------------------------------------------------------------ */

/* Processes that register and are killed, as fast as they can be made. */
static long flood_processes(void)
{
	long made = 0;

	while (goes_on()) {
		const pid_t child = fork();

		if (child == 0) {
			gpuseg_client *client = NULL;
			struct gpuseg_connect_attr attr = GPUSEG_CONNECT_ATTR_INIT;
			char name[16];

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			srand48(seed + made);
			draw_name(name, sizeof(name));
			prctl(PR_SET_NAME, name);
			attr.dir = dir;
			attr.name = "child";
			_exit(draw(2) == 0 && gpuseg_connect(&attr, &client) < 0);
		}
		if (child < 0) {
			pause_us(5000);
			continue;
		}
		if (draw(2) == 0)
			kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		made++;
		did(1);
	}
	return made;
}

/* Exit status 0: it had a context, with kernels that do not end, for a while. */
static pid_t start_context(long number)
{
	const pid_t child = fork();
	gpuseg_sim *gpu;

	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srand48(seed + number);
	if (join() == NULL || gpuseg_sim_open(dir, &gpu) < 0)
		_exit(1);
	for (long i = 1 + draw(KERNELS); i > 0; i--) {
		if (gpuseg_sim_submit(gpu, 3600 * NS_PER_S, NULL) < 0)
			_exit(1);
	}
	pause_us(1000 + draw(200000));
	if (draw(2) == 0)
		gpuseg_sim_close(gpu);
	_exit(0);
}

/* Processes that come and go, each with a context whose work does not end: all of them have to be disabled. */
static long flood_contexts(void)
{
	pid_t children[CONTEXTS] = {0};
	long started = 0, made = 0;

	while (goes_on()) {
		for (int i = 0; i < CONTEXTS; i++) {
			int status;

			if (children[i] <= 0)
				children[i] = start_context(started++);
			if (children[i] > 0 && waitpid(children[i], &status, WNOHANG) == children[i]) {
				children[i] = 0;
				if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
					made++;
					did(1);
				}
			}
		}
		pause_us(2000);
	}
	for (int i = 0; i < CONTEXTS; i++) {
		if (children[i] > 0) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
		}
	}
	return made;
}

static void write_text(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!write(fd, text, strlen(text));
		close(fd);
	}
}

/*
 * Root of a namespace of its own, with files and FIFOs that are named like devices, held open. What it asks the daemon
 * as "root" must be refused: the kernel's user counts.
 */
static long pretend(void)
{
	static const char *const devices[] = {"nvidiactl", "nvidia0", "kfd", "nvhost-gpu", "nvmap"};
	static unsigned char packet[512];
	char map[64], path[256];
	long asked = 0;

	const gid_t group = getegid();

	snprintf(map, sizeof(map), "0 %u 1", (unsigned int)geteuid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
		message("namespaces of its own: %s", strerror(errno));
		exit(EXIT_NOT_PERMITTED);
	}
	write_text("/proc/self/uid_map", map);
	write_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", (unsigned int)group);
	write_text("/proc/self/gid_map", map);
	/* The runtime directory may be in /dev/shm: that one stays. */
	if (mount("none", "/mnt", "tmpfs", 0, "size=64k") < 0 || mkdir("/mnt/shm", 0755) < 0 ||
	    mount("/dev/shm", "/mnt/shm", NULL, MS_BIND | MS_REC, NULL) < 0 ||
	    mount("/mnt", "/dev", NULL, MS_BIND | MS_REC, NULL) < 0) {
		message("a /dev of its own: %s", strerror(errno));
		exit(EXIT_NOT_PERMITTED);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(devices); i++) {
		snprintf(path, sizeof(path), "/dev/%s", devices[i]);
		if (i % 2 == 0) {
			(void)!mkfifo(path, 0666);
			(void)!open(path, O_RDWR | O_NONBLOCK);
		} else {
			(void)!open(path, O_RDWR | O_CREAT, 0666);
		}
	}
	gpuseg_client *client = join();
	gpuseg_task *task = client == NULL ? NULL : open_task(client, "pretender", 10, 0);

	while (goes_on()) {
		const int fd = dial(SOCK_NONBLOCK);

		if (fd >= 0) {
			if (send(fd, packet, command(packet, "{\"command\":\"stop\"}"), MSG_NOSIGNAL) > 0) {
				asked++;
				did(1);
			}
			pause_us(5000);
			close(fd);
		}
		if (task != NULL && gpuseg_begin_try(task) >= 0)
			gpuseg_end(task);
	}
	return asked;
}

/*
 * Waits for a lock on every file of the runtime directory that it can open: a lock for reading needs no more than the
 * right to read.
 */
static long hold_locks(void)
{
	DIR *files = opendir(dir);
	struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	long waiting = 0;

	for (struct dirent *file; files != NULL && (file = readdir(files)) != NULL;) {
		const int fd = openat(dirfd(files), file->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

		if (fd < 0 || file->d_type != DT_REG)
			continue;
		waiting++;
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			fcntl(fd, F_SETLKW, &whole);
			for (;;)
				pause();
		}
	}
	printf("waits for locks on %ld files\n", waiting);
	fflush(stdout);
	while (goes_on())
		pause_us(20000);
	return waiting;
}

/* Spins; the caller has given it a real-time priority and a processor. */
static long hog(void)
{
	long turns = 0;

	while (goes_on())
		turns++;
	return turns;
}

/* ---- the control ------------------------------------------------------------------------------------------------- */

/* Spins for its share of each millisecond, and sleeps for the rest. */
static void *spin(void *turns)
{
	const int64_t busy_ns = load_share * NS_PER_MS / 1000;

	while (goes_on()) {
		const int64_t from_ns = now_ns();

		while (now_ns() - from_ns < busy_ns && goes_on())
			++*(long *)turns;
		if (busy_ns < NS_PER_MS)
			sleep_until(from_ns + NS_PER_MS, NULL);
	}
	return NULL;
}

static long load(void)
{
	pthread_t threads[THREADS];
	long turns[THREADS] = {0};
	long started = 0, all = 0;

	while (started < load_threads && pthread_create(&threads[started], NULL, spin, &turns[started]) == 0)
		started++;
	for (long i = 0; i < started; i++) {
		pthread_join(threads[i], NULL);
		all += turns[i];
	}
	return all;
}

static long milliseconds(struct timeval t)
{
	return t.tv_sec * 1000 + t.tv_usec / 1000;
}

/* Of this process and of those children that it has waited for. */
static long processor_ms(void)
{
	struct rusage own, children;

	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	return milliseconds(own.ru_utime) + milliseconds(own.ru_stime) + milliseconds(children.ru_utime) +
	       milliseconds(children.ru_stime);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	long (*make)(void);
	const char *does;
	long enough;
} attacks[] = {
	{"flood-status", flood_status, "status requests", 100},
	{"flood-commands", flood_commands, "commands", 100},
	{"flood-connections", connect_storm, "connections", 20},
	{"flood-opens", flood_opens, "requests to open a task", 20},
	{"flood-records", flood_records, "records", 1000},
	{"flood-processes", flood_processes, "processes", 5},
	{"flood-contexts", flood_contexts, "contexts", 5},
	{"hold-gpu", hold_the_gpu, "segments without an end", 1},
	{"forge-memory", scribble, "scribbles", 100},
	{"forge-files", spoil_files, "changes of files", 3},
	{"fake-devices", pretend, "requests as root of a namespace", 5},
	{"hold-locks", hold_locks, "files, for whose locks it waited", 0},
	{"fifo-hog", hog, "turns", 0}, /* never longer than asked: it has a real-time priority */
	{"load", load, "turns without an attack", 0},
};

int main(int argc, char **argv)
{
	static const struct option options[] = {{"dir", required_argument, NULL, 'd'},
						{"seed", required_argument, NULL, 's'},
						{"duration", required_argument, NULL, 't'},
						{"threads", required_argument, NULL, 'n'},
						{"share", required_argument, NULL, 'p'},
						{"at-most", required_argument, NULL, 'm'},
						{NULL, 0, NULL, 0}};
	int64_t duration_ns = NS_PER_S, longest_ns = 0;
	int letter;

	program_name = "gpuseg-hostile";
	while ((letter = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (letter) {
		case 'd':
			dir = optarg;
			break;
		case 's':
			seed = option_integer("--seed", optarg, 0, INT64_MAX);
			break;
		case 't':
			duration_ns = option_duration("--duration", optarg, NS_PER_MS, 60 * NS_PER_S);
			break;
		case 'm':
			longest_ns = option_duration("--at-most", optarg, NS_PER_MS, 60 * NS_PER_S);
			break;
		case 'n':
			load_threads = option_integer("--threads", optarg, 1, THREADS);
			break;
		case 'p':
			load_share = option_integer("--share", optarg, 1, 1000);
			break;
		default:
			usage_error("use ATTACK --dir DIR --seed N --duration DURATION");
		}
	}
	if (dir == NULL || optind != argc - 1)
		usage_error("use ATTACK --dir DIR --seed N --duration DURATION");
	srand48(seed);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < ARRAY_LENGTH(attacks); i++) {
		if (strcmp(argv[optind], attacks[i].name) == 0) {
			const int64_t now = now_ns();

			until_ns = now + duration_ns;
			at_most_ns = now + longest_ns;
			enough = attacks[i].enough;
			const long done = attacks[i].make();

			printf("%ld %s, processor time %ld ms\n", done, attacks[i].does, processor_ms());
			return done < enough ? EXIT_DID_NOT_BITE : 0;
		}
	}
	usage_error("there is no attack \"%s\"", argv[optind]);
}
