/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-rm - lists, disables and enables the GPU contexts of processes by hand, without a daemon. Needs ptrace rights.
 *
 *   gpuseg-rm list PID...                what a late attach finds, as JSON lines
 *   gpuseg-rm hold MS PID...             disables for MS milliseconds (at most 10000), then enables, whatever happens
 *   gpuseg-rm enable PID...              enables
 *   gpuseg-rm cost ROUNDS PID...         microseconds of one disable and enable of all of them: p50 p99 max
 *   gpuseg-rm turns MS US SECONDS PID... one after the other has the GPU for MS milliseconds, with a time slice of US
 *                                        microseconds; the next is enabled before the last is disabled, with MS < 0
 *                                        after. 0: all have it. At the end all are enabled and have slices of 2,048 us,
 *                                        CUDA's own
 *   gpuseg-rm stats | inject CMD N ST    of the stand-in (GPUSEG_RM_STANDIN is set)
 */
#define _GNU_SOURCE
#include "gpuseg_rm.h"
#include "rm_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES_MAX 16
#define TURNS_MAX 10000
#define OWN_SLICE_US 2048

static struct gpuseg_rm_process processes[PROCESSES_MAX];
static struct gpuseg_rm_process *list[PROCESSES_MAX];
static uint32_t count;
static volatile sig_atomic_t stopping;

static void on_signal(int signal)
{
	(void)signal;
	stopping = 1;
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static int fail(const char *what, int64_t status)
{
	if (status < 0)
		fprintf(stderr, "gpuseg-rm: %s: %s\n", what, strerror((int)-status));
	else
		fprintf(stderr, "gpuseg-rm: %s: RM status 0x%x\n", what, (unsigned int)status);
	return 1;
}

static void show(const struct gpuseg_rm_process *p)
{
	printf("{\"pid\":%d,\"descriptors\":%u,\"controls\":%u,\"devices\":[", p->pid, p->fd_count, p->controls);
	for (uint32_t i = 0; i < p->device_count; i++)
		printf("%s{\"client\":\"%08x\",\"subdevice\":\"%08x\",\"gpu_id\":\"%x\"}", i ? "," : "",
		       p->devices[i].client, p->devices[i].subdevice, p->devices[i].gpu_id);
	printf("],\"tsgs\":[");
	for (uint32_t i = 0; i < p->tsg_count; i++) {
		uint64_t slice = 0;

		gpuseg_rm_control(p->tsgs[i].fd, p->tsgs[i].client, p->tsgs[i].handle, GPUSEG_RM_GET_TIMESLICE, &slice,
				  sizeof(slice));
		printf("%s{\"client\":\"%08x\",\"handle\":\"%08x\",\"gr0\":%s,\"channels\":%u,\"timeslice_us\":%lu,"
		       "\"gpu_id\":\"%x\"}",
		       i ? "," : "", p->tsgs[i].client, p->tsgs[i].handle, p->tsgs[i].engine == 1 ? "true" : "false",
		       p->tsgs[i].channels, (unsigned long)slice, gpuseg_rm_gpu_id(p, &p->tsgs[i]));
	}
	printf("]}\n");
}

static int standin(int argc, char **argv)
{
	int fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);

	if (!getenv(RM_WIRE_ENV) || fd < 0) {
		fprintf(stderr, "gpuseg-rm: no stand-in: %s is not set or nothing listens there\n", RM_WIRE_ENV);
		return 1;
	}
	if (strcmp(argv[1], "inject") == 0) {
		struct rm_wire_inject i = {0};

		if (argc < 5)
			return 2;
		i.command = (uint32_t)strtoul(argv[2], NULL, 0);
		i.count = (uint32_t)strtoul(argv[3], NULL, 0);
		i.rm_status = (uint32_t)strtoul(argv[4], NULL, 0);
		return ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', RM_WIRE_ESC_INJECT, sizeof(i)), &i) ? 1 : 0;
	}
	struct rm_wire_stats s = {0};
	if (ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', RM_WIRE_ESC_STATS, sizeof(s)), &s) != 0)
		return fail("stats", -errno);
	printf("{\"controls\":%lu,\"disables\":%lu,\"enables\":%lu,\"largest_batch\":%lu,\"foreign_commands\":%lu,"
	       "\"disabled_channels\":%lu,\"ran_while_disabled\":%lu,\"clients\":%u}\n",
	       (unsigned long)s.controls, (unsigned long)s.disables, (unsigned long)s.enables,
	       (unsigned long)s.largest_batch, (unsigned long)s.foreign_commands, (unsigned long)s.disabled_channels,
	       (unsigned long)s.ran_while_disabled, s.clients);
	return 0;
}

static int cost(int rounds)
{
	static double off[10000];
	static double on[10000];
	int64_t status = 0;
	int n = 0;

	for (; n < rounds && n < 10000 && !stopping && status == 0; n++) {
		double t = now_us();

		status = gpuseg_rm_switch_processes(list, count, 1, 1);
		off[n] = now_us() - t;
		usleep(2000);
		t = now_us();
		int64_t enabled = gpuseg_rm_switch_processes(list, count, 0, 1);
		on[n] = now_us() - t;
		if (status == 0)
			status = enabled;
		usleep(10000);
	}
	if (status != 0)
		return fail("switch", status);
	qsort(off, (size_t)n, sizeof(off[0]), ascending);
	qsort(on, (size_t)n, sizeof(on[0]), ascending);
	printf("{\"rounds\":%d,\"processes\":%u,\"disable_us\":{\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f},"
	       "\"enable_us\":{\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f}}\n",
	       n, count, off[n / 2], off[n * 99 / 100], off[n - 1], on[n / 2], on[n * 99 / 100], on[n - 1]);
	return 0;
}

static int64_t slices(uint64_t us)
{
	int64_t status = 0;

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t t = 0; t < processes[i].tsg_count; t++) {
			struct gpuseg_rm_tsg *tsg = &processes[i].tsgs[t];
			int64_t s = tsg->engine != GPUSEG_RM_ENGINE_GR0
					    ? 0
					    : gpuseg_rm_control(tsg->fd, tsg->client, tsg->handle,
								GPUSEG_RM_SET_TIMESLICE, &us, sizeof(us));
			status = status ? status : s;
		}
	return status;
}

static int turns(double ms, uint64_t us, double seconds)
{
	static double took[TURNS_MAX];
	const double until = now_us() + seconds * 1e6;
	const int apart = ms < 0;
	uint32_t has = 0;
	int n = 0;
	int64_t status = slices(us);
	int64_t given_back;

	if (apart)
		ms = -ms;
	if (status == 0 && ms > 0 && count > 1)
		status = gpuseg_rm_switch_processes(list + 1, count - 1, 1, 1);
	while (status == 0 && !stopping && now_us() < until) {
		const uint32_t next = (has + 1) % count;
		double from;

		usleep(ms > 0 ? (useconds_t)(ms * 1e3) : 10000);
		if (ms <= 0 || count < 2)
			continue;
		from = now_us();
		status = gpuseg_rm_switch_processes(&list[apart ? has : next], 1, apart, 1);
		if (status == 0)
			status = gpuseg_rm_switch_processes(&list[apart ? next : has], 1, !apart, 1);
		has = next;
		if (n < TURNS_MAX)
			took[n++] = now_us() - from;
	}
	given_back = gpuseg_rm_switch_processes(list, count, 0, 1);
	status = status ? status : given_back;
	given_back = slices(OWN_SLICE_US);
	status = status ? status : given_back;
	if (status != 0)
		return fail("turns", status);
	qsort(took, (size_t)n, sizeof(took[0]), ascending);
	printf("{\"turns\":%d,\"turn_us\":{\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f}}\n", n, n ? took[n / 2] : 0,
	       n ? took[n * 99 / 100] : 0, n ? took[n - 1] : 0);
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	const char *verb = argc > 1 ? argv[1] : "";
	int first = strcmp(verb, "turns") == 0 ? 5 : strcmp(verb, "hold") == 0 || strcmp(verb, "cost") == 0 ? 3 : 2;
	int64_t status;

	if (strcmp(verb, "stats") == 0 || strcmp(verb, "inject") == 0)
		return standin(argc, argv);
	if (argc <= first || (strcmp(verb, "list") && strcmp(verb, "hold") && strcmp(verb, "enable") &&
			      strcmp(verb, "cost") && strcmp(verb, "turns"))) {
		fprintf(stderr,
			"usage: gpuseg-rm list|enable PID... | hold MS PID... | cost ROUNDS PID... | turns MS US "
			"SECONDS PID...\n");
		return 2;
	}
	for (int i = first; i < argc && count < PROCESSES_MAX; i++) {
		int error = gpuseg_rm_attach(&processes[count], atoi(argv[i]));

		if (error)
			return fail(argv[i], error);
		list[count] = &processes[count];
		count++;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	if (strcmp(verb, "list") == 0) {
		for (uint32_t i = 0; i < count; i++)
			show(&processes[i]);
		return 0;
	}
	if (strcmp(verb, "cost") == 0)
		return cost(atoi(argv[2]));
	if (strcmp(verb, "turns") == 0)
		return turns(atof(argv[2]), strtoul(argv[3], NULL, 10), atof(argv[4]));
	if (strcmp(verb, "hold") == 0) {
		long ms = atol(argv[2]);

		status = gpuseg_rm_switch_processes(list, count, 1, 1);
		for (long waited = 0; status == 0 && waited < ms && waited < 10000 && !stopping; waited++)
			usleep(1000);
		if (status != 0)
			fail("disable", status);
	}
	status = gpuseg_rm_switch_processes(list, count, 0, 1);
	return status ? fail("enable", status) : 0;
}
