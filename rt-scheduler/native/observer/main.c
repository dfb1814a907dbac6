/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-observer - loads the BPF program that sees GPU processes, and passes its records on to one daemon.
 *
 * It needs CAP_BPF and CAP_PERFMON (or root), a kernel of 5.11 or later with BTF, and nothing else: it opens no GPU
 * device and touches no process. The daemon needs none of these capabilities.
 *
 * Records go to standard output, a pipe or socket of the daemon that started it; or, with --socket, to one daemon at a
 * time, the last that has connected and sent a byte. What cannot be written is dropped, counted, and announced by a
 * LOST record. It ends when its reader is gone, or on SIGTERM.
 */
#define _GNU_SOURCE
#include "observer/observer_abi.h"

#include "common/base.h"
#include "common/device_file.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define QUEUE_RECORDS 16384 /* a power of two; 1 MiB */
#define LOOK_NS (2 * NS_PER_S)
#define ACCOUNT_NS NS_PER_S
#define PROBLEM_BYTES 512
#define ALERT_NS (2 * NS_PER_MS) /* as in class Alert of the daemon */
#define ALERT_PROCESSORS 4

extern const char observer_program[], observer_program_end[];

struct device_option {
	uint32_t number; /* the kernel's form */
	struct gpuseg_observer_device device;
};

/* Records on their way to the daemon. `from` and `to` only grow. */
struct queue {
	struct gpuseg_observer_record records[QUEUE_RECORDS];
	uint64_t from, to;
	size_t written; /* bytes of the first record */
	uint64_t dropped;
};

static struct queue queue;
static volatile sig_atomic_t stopping;
static struct device_option given[64];
static unsigned given_count;
static struct bpf_object *object;
static int devices_map = -1, groups_map = -1;
static const volatile uint64_t *lost_in_kernel;
static int reader = -1;
static int caller = -1; /* has connected and not said that it is a daemon */
static uint64_t seen_from_ns;

static void on_signal(int number)
{
	(void)number;
	stopping = 1;
}

static int64_t boottime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* Last message of libbpf: it holds the reason of the kernel's verifier. */
static char library_message[PROBLEM_BYTES];

static int keep_message(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_WARN)
		vsnprintf(library_message, sizeof(library_message), format, arguments);
	return 0;
}

static const char *reason(int error)
{
	static char text[2 * PROBLEM_BYTES];
	const char *remedy = "";

	library_message[strcspn(library_message, "\n")] = 0;
	if (error == -EPERM || error == -EACCES)
		remedy = "; it needs CAP_BPF and CAP_PERFMON, which a container seldom has: run it as root on the host";
	else if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
		remedy = "; this kernel has no BTF (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF";
	snprintf(text, sizeof(text), "%s%s%s%s", strerror(-error), library_message[0] ? ": " : "", library_message,
		 remedy);
	return text;
}

static void watch_device(uint32_t number, struct gpuseg_observer_device device)
{
	const int error = bpf_map_update_elem(devices_map, &number, &device, BPF_ANY);

	if (error)
		message("device %u:%u is not watched: %s", number >> 20, number & 0xfffff, strerror(-error));
}

/* Drivers may be loaded after this program: /proc/devices is read again and again. */
static void watch_drivers(void)
{
	static const char *const nvidia[] = {"nvidia-frontend", "nvidia", "nvidiactl"};
	static const char *const kfd[] = {"kfd"};
	static const char *const nvgpu[] = {"nvgpu", "nvhost-gpu", "nvhost"};
	int major = device_file_major(nvidia, ARRAY_LENGTH(nvidia));

	if (major > 0)
		watch_device((uint32_t)major << 20 | 255, (struct gpuseg_observer_device){GPUSEG_OBSERVER_NVIDIA, 0});
	major = device_file_major(kfd, ARRAY_LENGTH(kfd));
	if (major > 0)
		watch_device((uint32_t)major << 20, (struct gpuseg_observer_device){GPUSEG_OBSERVER_KFD, 0});
	major = device_file_major(nvgpu, ARRAY_LENGTH(nvgpu));
	for (uint32_t minor = 0; major > 0 && minor < 32; minor++)
		watch_device((uint32_t)major << 20 | minor, (struct gpuseg_observer_device){GPUSEG_OBSERVER_NVGPU, 0});
}

/* DRIVER:MAJOR:MINOR[:any] */
static void add_device(const char *text)
{
	static const char *const names[] = {"", "nvidia", "kfd", "nvgpu"};
	char name[16], any[8] = "";
	unsigned major, minor;
	int used = 0;
	const int fields = sscanf(text, "%15[a-z]:%u:%u%n:%7[a-z]%n", name, &major, &minor, &used, any, &used);

	for (uint32_t i = 1; fields >= 3 && text[used] == 0 && i < ARRAY_LENGTH(names); i++) {
		if (strcmp(name, names[i]) == 0 && major < 4096 && minor < 1u << 20 &&
		    (fields == 3 || strcmp(any, "any") == 0) && given_count < ARRAY_LENGTH(given)) {
			given[given_count++] = (struct device_option){major << 20 | minor, {i, fields == 4}};
			return;
		}
	}
	usage_error("--device %s: expected nvidia|kfd|nvgpu:MAJOR:MINOR, for instance nvidia:195:255", text);
}

/* 0 or -errno; then reason() tells more. */
static int load(void)
{
	const struct bpf_object_open_opts options = {.sz = sizeof(options), .object_name = "gpuseg_observer"};
	struct bpf_program *program;
	struct bpf_map *map;
	struct stat pid_namespace;
	uint32_t inum;
	int error, bss;

	if (stat("/proc/self/ns/pid", &pid_namespace) != 0)
		return -errno;
	object = bpf_object__open_mem(observer_program, (size_t)(observer_program_end - observer_program), &options);
	if (!object)
		return -errno;
	inum = (uint32_t)pid_namespace.st_ino;
	map = bpf_object__find_map_by_name(object, ".rodata");
	error = map ? bpf_map__set_initial_value(map, &inum, sizeof(inum)) : -EINVAL;
	if (!error)
		error = bpf_object__load(object);
	if (error)
		return error;
	devices_map = bpf_object__find_map_fd_by_name(object, "devices");
	groups_map = bpf_object__find_map_fd_by_name(object, "groups");
	bss = bpf_object__find_map_fd_by_name(object, ".bss");
	if (devices_map < 0 || groups_map < 0 || bss < 0)
		return -EINVAL;
	lost_in_kernel = mmap(NULL, sizeof(uint64_t), PROT_READ, MAP_SHARED, bss, 0);
	if (lost_in_kernel == MAP_FAILED)
		return -errno;
	for (unsigned i = 0; i < given_count; i++)
		watch_device(given[i].number, given[i].device);
	if (given_count == 0)
		watch_drivers();
	seen_from_ns = (uint64_t)boottime_ns();
	bpf_object__for_each_program(program, object)
	{
		const struct bpf_link *link = bpf_program__attach(program);

		if (!link)
			return -errno;
	}
	seen_from_ns = (uint64_t)boottime_ns();
	return 0;
}

/* ------------------------------------------------------------------------------------------------ to the daemon -- */

static void put(const void *record)
{
	if (reader < 0)
		return;
	if (queue.to - queue.from == QUEUE_RECORDS) {
		queue.dropped++;
		return;
	}
	memcpy(&queue.records[queue.to++ % QUEUE_RECORDS], record, sizeof(queue.records[0]));
}

/*
 * Until when the ring is looked at without a pause, or 0: what a process schedules runs on until it is disabled, and a
 * thread that sleeps may need as long to wake as the driver to disable. Only where processors are left for others.
 */
static int64_t alert_until_ns;

static void be_alert(uint32_t kind)
{
	static long processors;

	if (processors == 0)
		processors = sysconf(_SC_NPROCESSORS_ONLN);
	if (kind == GPUSEG_OBSERVER_SCHEDULES && processors >= ALERT_PROCESSORS)
		alert_until_ns = now_ns() + ALERT_NS;
	else if (kind == GPUSEG_OBSERVER_SCHEDULED)
		alert_until_ns = 0;
}

static int on_record(void *context, void *data, size_t size)
{
	struct gpuseg_observer_record r;
	int64_t passed_ns;

	(void)context;
	if (size != sizeof(r))
		return 0;
	memcpy(&r, data, sizeof(r));
	if (r.kind == GPUSEG_OBSERVER_GROUP_GONE) {
		put(&r); /* has no place for a time */
		return 0;
	}
	passed_ns = now_ns() - (int64_t)r.time_ns;
	r.passed_ns = passed_ns < 0 ? 0 : passed_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)passed_ns;
	be_alert(r.kind);
	put(&r);
	return 0;
}

static void hang_up(const char *why)
{
	if (why)
		message("the daemon's connection ends: %s", why);
	close(reader);
	reader = -1;
	queue.from = queue.to;
	queue.written = 0;
	queue.dropped = 0;
}

static void flush_queue(void)
{
	while (reader >= 0 && queue.from < queue.to) {
		const uint64_t at = queue.from % QUEUE_RECORDS;
		const uint64_t run =
			queue.to - queue.from < QUEUE_RECORDS - at ? queue.to - queue.from : QUEUE_RECORDS - at;
		const char *bytes = (const char *)&queue.records[at] + queue.written;
		const ssize_t n = write(reader, bytes, run * sizeof(queue.records[0]) - queue.written);
		size_t done;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			hang_up(errno == EPIPE ? NULL : strerror(errno));
			return;
		}
		done = queue.written + (size_t)n;
		queue.from += done / sizeof(queue.records[0]);
		queue.written = done % sizeof(queue.records[0]);
	}
}

static void announce_loss(void)
{
	static uint64_t announced;
	const uint64_t kernel = *lost_in_kernel;
	struct gpuseg_observer_record r = {.kind = GPUSEG_OBSERVER_LOST, .fd = -1};
	const uint64_t count = kernel - announced + queue.dropped;

	if (count == 0 || reader < 0 || queue.to - queue.from == QUEUE_RECORDS)
		return;
	r.time_ns = (uint64_t)now_ns();
	r.start_ns = (uint64_t)boottime_ns(); /* what begins from now on is seen whole again */
	r.handle = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
	announced = kernel;
	queue.dropped = 0;
	put(&r);
}

static void say_hello(bool later)
{
	struct gpuseg_observer_record r = {.kind = GPUSEG_OBSERVER_HELLO, .fd = -1, .handle = GPUSEG_OBSERVER_VERSION};

	r.pid = (uint32_t)getpid();
	r.time_ns = (uint64_t)now_ns();
	r.start_ns = later ? (uint64_t)boottime_ns() : seen_from_ns;
	put(&r);
}

/* Accounts that have changed since the last time. */
static void send_accounts(bool all)
{
	static struct {
		uint64_t id;
		struct gpuseg_observer_group last;
	} sent[GPUSEG_OBSERVER_GROUPS_MAX];
	uint64_t id;
	const uint64_t *previous = NULL;

	for (unsigned n = 0; n < GPUSEG_OBSERVER_GROUPS_MAX && bpf_map_get_next_key(groups_map, previous, &id) == 0;
	     n++) {
		struct gpuseg_observer_group g;
		struct gpuseg_observer_group_record r;
		const unsigned slot = (unsigned)(id % GPUSEG_OBSERVER_GROUPS_MAX);

		previous = &id;
		if (bpf_map_lookup_elem(groups_map, &id, &g) != 0)
			break; /* dropped meanwhile; the next round begins anew */
		if (!all && sent[slot].id == id && memcmp(&sent[slot].last, &g, sizeof(g)) == 0)
			continue;
		sent[slot].id = id;
		sent[slot].last = g;
		gpuseg_observer_account(&r, GPUSEG_OBSERVER_GROUP, id, &g);
		put(&r);
	}
}

/* ------------------------------------------------------------------------------------------------ its own socket -- */

static int listen_at(const char *path, const char *group)
{
	struct sockaddr_un address;
	const struct group *entry = group ? getgrnam(group) : NULL;
	const int error = unix_address(&address, path, NULL);
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (error)
		usage_error("--socket %s: %s", path, strerror(-error));
	if (group && !entry)
		usage_error("--group %s: there is no such group", group);
	unlink(path);
	umask(0177); /* nobody else may connect before the group is set */
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 4) != 0 ||
	    (entry && (chown(path, (uid_t)-1, entry->gr_gid) != 0 || chmod(path, 0660) != 0))) {
		message("socket %s: %s", path, strerror(errno));
		exit(EXIT_FAILURE);
	}
	return fd;
}

static void accept_caller(int listener)
{
	const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (caller >= 0)
		close(caller);
	caller = fd;
}

/* A daemon has sent a byte; who only looked whether somebody listens has gone. */
static void serve_caller(void)
{
	char byte;
	const ssize_t n = recv(caller, &byte, 1, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != 1) {
		close(caller);
		caller = -1;
		return;
	}
	if (reader >= 0)
		hang_up("another daemon has connected");
	reader = caller;
	caller = -1;
	say_hello(true);
	send_accounts(true);
}

static int priority_of(const char *text)
{
	char *end;
	const long n = strtol(text, &end, 10);

	if (*text == 0 || *end != 0 || n < 1 || n > 99)
		usage_error("--priority %s: expected 1 to 99", text);
	return (int)n;
}

/* Records must not wait for busy programs; without the right to that, this program works as an ordinary one. */
static void become_real_time(int priority)
{
	const struct sched_param parameter = {.sched_priority = priority};

	if (sched_setscheduler(0, SCHED_RR, &parameter) != 0)
		message("priority %d: %s; it needs CAP_SYS_NICE", priority, strerror(errno));
}

static void usage(void)
{
	printf("usage: gpuseg-observer [--socket PATH [--group NAME]] [--priority N] [--device DRIVER:MAJOR:MINOR]... "
	       "[--check]\n"
	       "\n"
	       "Sees GPU processes by BPF and passes what they do on to the gpuseg daemon, which starts it.\n"
	       "\n"
	       "  --check         load and attach the program, say whether that works, and end\n"
	       "  --socket PATH   serve one daemon at a time there; without it records go to standard output\n"
	       "  --group NAME    who may connect, beside root\n"
	       "  --priority N    SCHED_RR, 1 to 99\n"
	       "  --device D:M:N  watch this device, not those of /proc/devices; driver nvidia, kfd or nvgpu\n");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"socket", required_argument, NULL, 's'},
						{"group", required_argument, NULL, 'g'},
						{"device", required_argument, NULL, 'd'},
						{"check", no_argument, NULL, 'c'},
						{"priority", required_argument, NULL, 'p'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	const struct sigaction stop = {.sa_handler = on_signal};
	const char *path = NULL, *group = NULL;
	struct ring_buffer *ring;
	bool check = false;
	int64_t look_ns, account_ns;
	int listener = -1;
	int priority = 0;
	int option, error;

	program_name = "gpuseg-observer";
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (option) {
		case 's':
			path = optarg;
			break;
		case 'g':
			group = optarg;
			break;
		case 'd':
			add_device(optarg);
			break;
		case 'p':
			priority = priority_of(optarg);
			break;
		case 'c':
			check = true;
			break;
		case 'h':
			usage();
			return 0;
		default:
			usage_error("see gpuseg-observer --help");
		}
	}
	if (optind < argc)
		usage_error("argument \"%s\" is unexpected; see gpuseg-observer --help", argv[optind]);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGINT, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);
	libbpf_set_print(keep_message);
	if (priority > 0)
		become_real_time(priority);
	error = load();
	if (error) {
		message("the BPF program cannot be used: %s", reason(error));
		return EXIT_FAILURE;
	}
	if (check) {
		printf("the BPF program loads and is attached\n");
		return 0;
	}
	ring = ring_buffer__new(bpf_object__find_map_fd_by_name(object, "ring"), on_record, NULL, NULL);
	if (!ring) {
		message("ring buffer: %s", reason(-errno));
		return EXIT_FAILURE;
	}
	if (path) {
		listener = listen_at(path, group);
	} else {
		struct stat out;

		if (fstat(STDOUT_FILENO, &out) != 0 || !(S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode)))
			usage_error("standard output is no pipe; the daemon starts this program, or use --socket PATH");
		reader = STDOUT_FILENO;
		if (fcntl(reader, F_SETFL, O_NONBLOCK) != 0)
			message("standard output stays blocking: %s", strerror(errno));
		fcntl(reader, F_SETPIPE_SZ, 1 << 20); /* a smaller pipe does, too: records wait in the queue */
		say_hello(false);
	}
	look_ns = now_ns() + LOOK_NS;
	account_ns = now_ns() + ACCOUNT_NS;
	while (!stopping && (path || reader >= 0)) {
		struct pollfd polls[4] = {
			{.fd = ring_buffer__epoll_fd(ring), .events = POLLIN},
			{.fd = reader, .events = (short)(queue.from < queue.to ? POLLOUT : 0)},
			{.fd = listener, .events = POLLIN},
			{.fd = caller, .events = POLLIN},
		};
		int64_t now;

		/* a reader that has gone shows itself by POLLERR or POLLHUP */
		if (alert_until_ns && now_ns() - alert_until_ns >= 0)
			alert_until_ns = 0;
		if (poll(polls, ARRAY_LENGTH(polls), alert_until_ns ? 0 : (int)(ACCOUNT_NS / NS_PER_MS)) < 0 &&
		    errno != EINTR) {
			message("poll: %s", strerror(errno));
			break;
		}
		if (reader >= 0 && polls[1].fd == reader && (polls[1].revents & (POLLERR | POLLHUP)))
			hang_up(NULL);
		if (polls[3].revents)
			serve_caller();
		if (polls[2].revents & POLLIN)
			accept_caller(listener);
		ring_buffer__consume(ring);
		announce_loss();
		now = now_ns();
		if (now - account_ns >= 0) {
			account_ns = now + ACCOUNT_NS;
			send_accounts(false);
		}
		if (now - look_ns >= 0 && given_count == 0) {
			look_ns = now + LOOK_NS;
			watch_drivers();
		}
		flush_queue();
	}
	ring_buffer__free(ring);
	bpf_object__close(object);
	if (path)
		unlink(path);
	return 0;
}
