/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c - gpuseg-exec: run a CUDA program as it is as a task of the scheduler. `gpuseg exec` is this program. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "directory.h"
#include "gpuseg.h"
#include "internal.h"
#include "refusal.h"
#include "settings.h"
#include "space.h"
#include "wrap/last.h"

#define INJECTION "CUDA_INJECTION64_PATH"
#define LIBRARY "libgpuseg-inject.so"
#define PRELOAD "LD_PRELOAD"
#define WRAPPERS "libgpuseg-wrap.so" /* beside it */
#define CALLS "GPUSEG_EXEC_CALLS"
#define MPS_PIPE "CUDA_MPS_PIPE_DIRECTORY"
#define MPS_PERCENT "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
#define MPS_PRIORITY "CUDA_MPS_CLIENT_PRIORITY"
#define MPS_BELOW_NORMAL "1"
#define REPLY_BYTES 4096
#define PRELOAD_BYTES (2 * PATH_MAX)
#define STATUS_USAGE 2
#define STATUS_NOT_STARTED 126
#define STATUS_NOT_FOUND 127

static const char usage_line[] =
	"usage: gpuseg exec [--priority N | --best-effort] [OPTION...] -- COMMAND [ARGUMENT...]\n";
static const char help[] =
	"\n"
	"Run a CUDA program as it is as a task of the scheduler, with the processes that it starts. The driver loads "
	"a\n"
	"library that begins a segment at the first launch and ends it when all work is done. Without a daemon the\n"
	"program runs unmanaged, and one line says so; another one says at its end if no CUDA was seen.\n"
	"\n"
	"      --priority N         Priority of the program on the GPU, 1..99, 99 is the highest.\n"
	"      --best-effort        Run it as best effort. This is the default.\n"
	"      --name NAME          Name of the task (default: exec: and the program's name).\n"
	"      --period TIME        Period of its jobs, such as 10ms. For admission and deadlines.\n"
	"      --deadline TIME      Relative deadline (default: the period).\n"
	"      --budget TIME        Longest time that a segment may hold the GPU, besides the hold-off (default: no\n"
	"                           limit).\n"
	"      --reserve N%         Part of the GPU's multiprocessors that the program has for itself, with --priority "
	"and\n"
	"                           a daemon that keeps a part of the GPU free.\n"
	"      --weight N           Share of best-effort time, 1..10000 (initially 100).\n"
	"      --cap TIME/PERIOD    Most GPU time of best-effort work in each period, such as 25ms/100ms. Needs --name "
	"and\n"
	"                           the right to change the policy.\n"
	"      --print-environment  Print the variables that a service needs instead, and run nothing.\n"
	"  -h, --help               Show this help message and exit.\n"
	"  -V, --version            Print version information and exit.\n"
	"\n"
	"Variables of the environment, for programs that need something else than the usual:\n"
	"  GPUSEG_EXEC_HOLD_OFF: launches closer than this time are one segment, 0..1h, or auto: learned from the\n"
	"    pauses of a real-time program, 200us..1.6ms; with --budget 200us (default: auto).\n"
	"  GPUSEG_EXEC_SEGMENTS: what one segment is: auto, from a launch until all work is done; graph, the same, "
	"but\n"
	"    only launches of CUDA graphs begin one; process, from the first launch to the end of the process "
	"(default:\n"
	"    auto).\n"
	"  GPUSEG_EXEC_SLICE: best effort: longest segment, 0 for no limit (default: 500us where the daemon's "
	"mechanism\n"
	"    can only wait for segments, else 0).\n"
	"  GPUSEG_EXEC_STREAMS: none, or priority: while work on a CUDA stream of higher priority is outstanding,\n"
	"    launches on lower streams of the same process wait (default: none).\n"
	"  GPUSEG_EXEC_IN_FLIGHT: most work in flight: on lower streams with streams by priority, and of best effort\n"
	"    where the daemon's mechanism is launch (default: 500us).\n"
	"  GPUSEG_EXEC_TOUCH: on or off; real time: have the GPU switch to the program ahead of a begin that the "
	"daemon\n"
	"    expects, by a small memset (default: on).\n"
	"  GPUSEG_EXEC_CALLS: how calls of the driver are seen: auto, by wrappers that are preloaded, by CUPTI where\n"
	"    that is impossible; cupti; or check, by wrappers, and CUPTI counts what passes them by (default: auto).\n"
	"  GPUSEG_EXEC_WAIT: longest wait of a launch, at least 1ms; then the program runs unmanaged for a minute\n"
	"    (default: 10s).\n"
	"  GPUSEG_EXEC_VERBOSE: 1 to say what the library finds and does.\n"
	"\n"
	"Times have a unit: ns, us, ms or s.\n"
	"\n"
	"Exit status:\n"
	"  the status of COMMAND, or\n"
	"  2     usage\n"
	"  126   COMMAND cannot be started, or the daemon refused --cap\n"
	"  127   COMMAND was not found\n";

__attribute__((noreturn, format(printf, 2, 3))) static void fail(int status, const char *format, ...)
{
	va_list ap;

	fputs("gpuseg exec: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

static int64_t check_duration(const char *option, const char *text)
{
	int64_t ns;

	if (!duration_read(text, &ns))
		fail(STATUS_USAGE, "%s is \"%s\"; give a time such as 200us, 5ms or 1s, at most an hour", option, text);
	return ns;
}

static void check_number(const char *option, const char *text, unsigned long least, unsigned long most)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || number < least || number > most)
		fail(STATUS_USAGE, "%s is \"%s\"; give a number of %lu to %lu", option, text, least, most);
	if (text[0] == '0' && text[1]) /* octal for some, decimal for others */
		fail(STATUS_USAGE, "%s is \"%s\"; write it without leading zeros", option, text);
}

/* The number of "12%". */
static const char *percent_of(const char *option, const char *text)
{
	static char number[4];
	const size_t length = strlen(text);

	if (length < 2 || length > sizeof(number) || text[length - 1] != '%')
		fail(STATUS_USAGE, "%s is \"%s\"; give 1%% to %d%%", option, text, RESERVE_MAX);
	memcpy(number, text, length - 1);
	number[length - 1] = '\0';
	check_number(option, number, 1, RESERVE_MAX);
	return number;
}

/* As libgpuseg and the daemon. */
static void check_name(const char *text)
{
	if (!*text || strlen(text) >= GPUSEG_NAME_BYTES)
		fail(STATUS_USAGE, "--name has %zu bytes; give 1 to %d", strlen(text), GPUSEG_NAME_BYTES - 1);
	if (!plain_name(text))
		fail(STATUS_USAGE,
		     "--name is blank or has characters that cannot be printed; give 1 to %d bytes of printable UTF-8",
		     GPUSEG_NAME_BYTES - 1);
}

static void check_hold_off(const char *variable, const char *text)
{
	if (strcmp(text, "auto") != 0)
		check_duration(variable, text);
}

static void check_time(const char *variable, const char *text)
{
	check_duration(variable, text);
}

static void check_segments(const char *variable, const char *text)
{
	if (strcmp(text, "auto") != 0 && strcmp(text, "graph") != 0 && strcmp(text, "process") != 0)
		fail(STATUS_USAGE, "%s is \"%s\"; give auto, graph or process", variable, text);
}

static void check_streams(const char *variable, const char *text)
{
	if (strcmp(text, "none") != 0 && strcmp(text, "priority") != 0)
		fail(STATUS_USAGE, "%s is \"%s\"; give none or priority", variable, text);
}

static void check_calls(const char *variable, const char *text)
{
	if (strcmp(text, "auto") != 0 && strcmp(text, "cupti") != 0 && strcmp(text, "check") != 0)
		fail(STATUS_USAGE, "%s is \"%s\"; give auto, cupti or check", variable, text);
}

static void check_touch(const char *variable, const char *text)
{
	bool touch;

	if (!touch_read(text, &touch))
		fail(STATUS_USAGE, "%s is \"%s\"; give on or off", variable, text);
}

static void check_wait(const char *variable, const char *text)
{
	if (check_duration(variable, text) < WAIT_LEAST_NS)
		fail(STATUS_USAGE, "%s is \"%s\"; give at least 1ms", variable, text);
}

static void check_verbose(const char *variable, const char *text)
{
	if (strcmp(text, "1") != 0)
		fail(STATUS_USAGE, "%s is \"%s\"; give 1, or leave it out", variable, text);
}

static void check_cap(const char *text)
{
	char time[64];
	const char *slash = strchr(text, '/');
	int64_t ns;

	if (strcmp(text, "none") == 0)
		return;
	if (slash && (size_t)(slash - text) < sizeof(time)) {
		memcpy(time, text, (size_t)(slash - text));
		time[slash - text] = '\0';
		if (duration_read(time, &ns) && duration_read(slash + 1, &ns))
			return;
	}
	fail(STATUS_USAGE, "--cap is \"%s\"; give a time and a period, such as 25ms/100ms, or none", text);
}

/* ---- the daemon ---- */

/* A connection to the daemon's socket in *dir; -1: there is none, and *reason says why. */
static int daemon_socket(char dir[PATH_MAX], char reason[REFUSAL_BYTES])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = 5};
	const char *chosen = secure_getenv("GPUSEG_DIR");
	const bool named = chosen && *chosen;
	int fd;

	if (gpuseg_runtime_dir(dir, PATH_MAX) < 0 ||
	    (size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, GPUSEG_SOCKET_NAME) >=
		    sizeof(address.sun_path)) {
		snprintf(reason, REFUSAL_BYTES, "the path of the runtime directory is too long");
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		if (!named && is_directory(dir) && !is_believed(dir)) {
			errno = ECONNREFUSED;
		} else if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
			if (named || is_daemon_of(fd, dir))
				return fd;
			errno = ECONNREFUSED;
		}
		close(fd);
	}
	if (errno == EACCES)
		say_no_permission(reason, address.sun_path);
	else if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
		say_no_daemon(reason, address.sun_path, dir, chosen, secure_getenv("XDG_RUNTIME_DIR"),
			      "; start one with `gpuseg run`");
	else
		snprintf(reason, REFUSAL_BYTES, "%.150s: %s", address.sun_path, strerror(errno));
	return -1;
}

/* A rule of the policy, as `gpuseg set NAME --cap CAP` makes it. It also holds for tasks that open later. */
static void set_cap(int fd, const char *name, const char *cap)
{
	char quoted[2 * GPUSEG_NAME_BYTES], *to = quoted;
	union {
		struct gpuseg_msg_admin head;
		char bytes[sizeof(struct gpuseg_msg_admin) + 512];
	} request = {.bytes = {0}};
	union {
		struct gpuseg_msg_admin_reply head;
		char bytes[REPLY_BYTES];
	} reply;
	char *text = request.bytes + sizeof(request.head);
	int length;
	ssize_t n;

	for (const char *c = name; *c; c++) { /* printable, so these two are all that JSON needs */
		if (*c == '"' || *c == '\\')
			*to++ = '\\';
		*to++ = *c;
	}
	*to = '\0';
	length = snprintf(text, sizeof(request.bytes) - sizeof(request.head),
			  "{\"command\":\"policy\",\"settings\":{\"tasks\":[{\"task\":\"%s\",\"cap\":\"%s\"}]}}",
			  quoted, cap);
	if (length < 0 || (size_t)length >= sizeof(request.bytes) - sizeof(request.head))
		fail(STATUS_USAGE, "--name and --cap are too long together");
	request.head.msg = (struct gpuseg_msg){.magic = GPUSEG_MSG_MAGIC,
					       .version = GPUSEG_ABI_VERSION,
					       .type = GPUSEG_MSG_ADMIN,
					       .size = (uint32_t)(sizeof(request.head) + (size_t)length),
					       .seq = 1};
	request.head.text_size = (uint32_t)length;
	if (send(fd, &request, request.head.msg.size, MSG_NOSIGNAL) < 0)
		fail(STATUS_NOT_STARTED, "--cap: the daemon does not take the request: %s", strerror(errno));
	do {
		n = recv(fd, &reply, sizeof(reply) - 1, 0);
	} while (n < 0 && errno == EINTR);
	if (n < (ssize_t)sizeof(reply.head) || reply.head.msg.magic != GPUSEG_MSG_MAGIC)
		fail(STATUS_NOT_STARTED, "--cap: no answer from the daemon within 5 s");
	if (reply.head.msg.status < 0) {
		reply.bytes[n] = '\0';
		fail(STATUS_NOT_STARTED, "--cap %s: the daemon refused it: %s", cap,
		     reply.bytes[sizeof(reply.head)] ? reply.bytes + sizeof(reply.head)
						     : strerror(-reply.head.msg.status));
	}
}

/* ---- the library ---- */

/* Beside this program (a checkout), where it is installed, or where GPUSEG_INJECT_LIBRARY says. */
static void find_library(char path[PATH_MAX])
{
	const char *given = getenv("GPUSEG_INJECT_LIBRARY");
	char self[PATH_MAX];
	const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (given && *given) {
		if (strlen(given) >= PATH_MAX || access(given, R_OK) != 0)
			fail(STATUS_NOT_STARTED, "GPUSEG_INJECT_LIBRARY is %s, which cannot be read: %s", given,
			     strerror(errno));
		strcpy(path, given);
		return;
	}
	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		*slash = '\0';
		snprintf(path, PATH_MAX, "%.*s/" LIBRARY, PATH_MAX - 64, self);
		if (access(path, R_OK) == 0)
			return;
	}
	snprintf(path, PATH_MAX, "%s/" LIBRARY, GPUSEG_INJECT_DIR);
	if (access(path, R_OK) != 0)
		fail(STATUS_NOT_STARTED, "%s is not there; install libgpuseg, or name it in GPUSEG_INJECT_LIBRARY",
		     path);
}

static void set(const char *name, const char *value)
{
	if (setenv(name, value, 1) != 0)
		fail(STATUS_NOT_STARTED, "out of memory");
}

/*
 * What to preload: the wrappers beside `library`, and what the caller wants (without the wrappers of an outer exec).
 * False: nothing. The linker has no way to write a path with a space or a colon; calls are followed by CUPTI then.
 */
static bool preload_of(const char *library, bool wanted, char preload[PRELOAD_BYTES])
{
	const char *given = getenv(PRELOAD), *slash = strrchr(library, '/');
	size_t n = 0;

	if (wanted && slash && !strpbrk(library, ": \t\n")) {
		n = (size_t)snprintf(preload, PRELOAD_BYTES, "%.*s/" WRAPPERS, (int)(slash - library), library);
		if (n >= PRELOAD_BYTES || access(preload, R_OK) != 0)
			n = 0;
	}
	for (const char *item = given; item && *item;) {
		const size_t length = strcspn(item, ": ");
		const bool ours = length >= strlen(WRAPPERS) &&
				  strncmp(item + length - strlen(WRAPPERS), WRAPPERS, strlen(WRAPPERS)) == 0;

		if (length && !ours) {
			if (n + length + 2 > PRELOAD_BYTES)
				fail(STATUS_NOT_STARTED, PRELOAD " is longer than %d bytes", PRELOAD_BYTES);
			n += (size_t)snprintf(preload + n, PRELOAD_BYTES - n, "%s%.*s", n ? ":" : "", (int)length,
					      item);
		}
		item += length + strspn(item + length, ": ");
	}
	return n > 0;
}

static void set_preload(const char *library, bool wanted)
{
	char preload[PRELOAD_BYTES];

	if (preload_of(library, wanted, preload))
		set(PRELOAD, preload);
	else
		unsetenv(PRELOAD);
}

struct request {
	const char *priority;
	const char *name;
	const char *cap;
	bool reserve;
	const char *real_time; /* an option that only makes sense with --priority */
	int64_t period_ns;
	int64_t deadline_ns;
	bool best_effort;
	bool print;
};

/* ---- the part of the GPU that is kept free ---- */

static void say_outside(const char *why)
{
	fprintf(stderr, "gpuseg exec: %s; runs outside of the space, in time slices\n", why);
}

/* Why a program may not go inside; NULL: it may. */
static const char *obstacle(const struct space *space, const char *pipe, char why[REFUSAL_BYTES])
{
	if (space->uid != geteuid())
		snprintf(why, REFUSAL_BYTES,
			 "the space serves user %u, and this is user %u: MPS serves one user at a time",
			 (unsigned int)space->uid, (unsigned int)geteuid());
	else if (pipe && *pipe && strcmp(pipe, space->pipe) != 0)
		snprintf(why, REFUSAL_BYTES, MPS_PIPE " is %.150s, which is left as it is", pipe);
	else
		return NULL;
	return why;
}

/*
 * Put the program where it belongs, if the daemon keeps a part of the GPU free: best effort into a place; real time on
 * all but the reserve, or, with --reserve, without a limit.
 */
static void enter_space(const char *dir, const struct request *r)
{
	const char *outer = getenv(EXEC_INSIDE_ENV), *inside = r->reserve    ? EXEC_RESERVE
							       : r->priority ? EXEC_LONG
									     : EXEC_PLACE;
	char why[REFUSAL_BYTES], percent[16];
	int place = -1;
	struct space space;
	bool same;

	if (!space_read(dir, &space)) {
		if (r->reserve)
			fail(STATUS_NOT_STARTED,
			     "--reserve: the daemon keeps no part of the GPU free; start it with --space, or "
			     "leave --reserve out");
		return;
	}
	same = outer && strcmp(outer, EXEC_PLACE) == 0 && strcmp(inside, EXEC_PLACE) == 0 && getenv(MPS_PERCENT);
	if (obstacle(&space, getenv(MPS_PIPE), why)) {
		if (r->priority) /* outside, the daemon refuses its task */
			fail(STATUS_NOT_STARTED, "%s", why);
		say_outside(why);
		return;
	}
	if (!r->priority && !same && (place = space_take_place(dir, &space)) < 0) {
		snprintf(why, sizeof(why),
			 "all %u places of the space are taken (space-places of the daemon's settings)", space.places);
		unsetenv(MPS_PIPE);
		say_outside(why);
		return;
	}
	set(MPS_PIPE, space.pipe);
	set(EXEC_INSIDE_ENV, inside);
	unsetenv(MPS_PRIORITY);
	if (r->reserve) {
		unsetenv(MPS_PERCENT);
	} else if (r->priority) {
		snprintf(percent, sizeof(percent), "%u", 100 - space.reserve);
		set(MPS_PERCENT, percent);
	} else {
		if (!same) /* else it has its place still, and the limit of that */
			set(MPS_PERCENT, space.limit[place]);
		set(MPS_PRIORITY, MPS_BELOW_NORMAL);
	}
}

enum option_id { PRIORITY = 256, BEST_EFFORT, NAME, PERIOD, DEADLINE, BUDGET, RESERVE, WEIGHT, CAP, PRINT_ENVIRONMENT };

static const struct option options[] = {{"priority", required_argument, NULL, PRIORITY},
					{"best-effort", no_argument, NULL, BEST_EFFORT},
					{"name", required_argument, NULL, NAME},
					{"period", required_argument, NULL, PERIOD},
					{"deadline", required_argument, NULL, DEADLINE},
					{"budget", required_argument, NULL, BUDGET},
					{"reserve", required_argument, NULL, RESERVE},
					{"weight", required_argument, NULL, WEIGHT},
					{"cap", required_argument, NULL, CAP},
					{"print-environment", no_argument, NULL, PRINT_ENVIRONMENT},
					{"help", no_argument, NULL, 'h'},
					{"version", no_argument, NULL, 'V'},
					{NULL, 0, NULL, 0}};

/* What options say. */
static const char *const said[] = {"GPUSEG_EXEC_PRIORITY", "GPUSEG_EXEC_NAME",	 "GPUSEG_EXEC_PERIOD",
				   "GPUSEG_EXEC_DEADLINE", "GPUSEG_EXEC_BUDGET", "GPUSEG_EXEC_WEIGHT",
				   "GPUSEG_EXEC_RESERVE"};

/* What only the environment says: the library reads it there, too. */
static const struct {
	const char *variable;
	void (*check)(const char *variable, const char *text);
} tuning[] = {{"GPUSEG_EXEC_HOLD_OFF", check_hold_off}, {"GPUSEG_EXEC_SEGMENTS", check_segments},
	      {"GPUSEG_EXEC_SLICE", check_time},	{"GPUSEG_EXEC_STREAMS", check_streams},
	      {"GPUSEG_EXEC_IN_FLIGHT", check_time},	{CALLS, check_calls},
	      {"GPUSEG_EXEC_TOUCH", check_touch},	{"GPUSEG_EXEC_WAIT", check_wait},
	      {"GPUSEG_EXEC_VERBOSE", check_verbose}};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void print_variable(const char *variable)
{
	const char *value = getenv(variable);

	if (value)
		printf("%s=%s\n", variable, value);
}

/* A result that cannot be written is a failure. */
static void end_of_output(void)
{
	errno = 0;
	if (fflush(stdout) != 0 || ferror(stdout))
		fail(1, "standard output cannot be written: %s", errno ? strerror(errno) : "an earlier write failed");
}

static void print_environment(const char *library, bool wrappers)
{
	char preload[PRELOAD_BYTES];

	printf(INJECTION "=%s\n", library);
	unsetenv(PRELOAD); /* that of this shell is no part of the service */
	if (preload_of(library, wrappers, preload))
		printf(PRELOAD "=%s\n", preload);
	for (size_t i = 0; i < COUNT(said); i++)
		print_variable(said[i]);
	for (size_t i = 0; i < COUNT(tuning); i++)
		print_variable(tuning[i].variable);
	end_of_output();
}

/* Check what the environment says. An empty variable says nothing, as if it was not there. */
static void read_environment(void)
{
	for (size_t i = 0; i < COUNT(tuning); i++) {
		const char *text = getenv(tuning[i].variable);

		if (text && *text)
			tuning[i].check(tuning[i].variable, text);
	}
}

/* Check the options and put them into the environment. */
static struct request read_options(int argc, char **argv)
{
	struct request r = {.priority = NULL};
	int option;

	/* An inner `gpuseg exec` says anew what holds for its program. */
	for (size_t i = 0; i < COUNT(said); i++)
		unsetenv(said[i]);
	while ((option = getopt_long(argc, argv, "+hV", options, NULL)) != -1) {
		switch (option) {
		case PRIORITY:
			check_number("--priority", optarg, 1, GPUSEG_PRIORITY_MAX);
			r.priority = optarg;
			set("GPUSEG_EXEC_PRIORITY", optarg);
			break;
		case BEST_EFFORT:
			r.best_effort = true;
			break;
		case NAME:
			check_name(optarg);
			r.name = optarg;
			set("GPUSEG_EXEC_NAME", optarg);
			break;
		case PERIOD:
			r.period_ns = check_duration("--period", optarg);
			r.real_time = "--period";
			set("GPUSEG_EXEC_PERIOD", optarg);
			break;
		case DEADLINE:
			r.deadline_ns = check_duration("--deadline", optarg);
			r.real_time = "--deadline";
			set("GPUSEG_EXEC_DEADLINE", optarg);
			break;
		case BUDGET:
			check_duration("--budget", optarg);
			set("GPUSEG_EXEC_BUDGET", optarg);
			break;
		case RESERVE:
			set("GPUSEG_EXEC_RESERVE", percent_of("--reserve", optarg));
			r.reserve = true;
			r.real_time = "--reserve";
			break;
		case WEIGHT:
			check_number("--weight", optarg, 1, GPUSEG_WEIGHT_MAX);
			set("GPUSEG_EXEC_WEIGHT", optarg);
			break;
		case CAP:
			check_cap(optarg);
			r.cap = optarg;
			break;
		case PRINT_ENVIRONMENT:
			r.print = true;
			break;
		case 'h':
			printf("%s%s", usage_line, help);
			end_of_output();
			exit(0);
		case 'V':
			printf("gpuseg %s\n", gpuseg_version());
			end_of_output();
			exit(0);
		default:
			fputs(usage_line, stderr);
			exit(STATUS_USAGE);
		}
	}
	if (r.priority && r.best_effort)
		fail(STATUS_USAGE, "--priority and --best-effort exclude each other; give one");
	if (!r.priority && r.real_time)
		fail(STATUS_USAGE,
		     "%s needs --priority: best effort has no deadline, and no part of the GPU for itself",
		     r.real_time);
	if (r.period_ns && r.deadline_ns > r.period_ns)
		fail(STATUS_USAGE, "--deadline is longer than --period; give at most the period");
	if (r.cap && !r.name)
		fail(STATUS_USAGE, "--cap needs --name: the rule is kept under the name of the task");
	return r;
}

int main(int argc, char **argv)
{
	char library[PATH_MAX], dir[PATH_MAX], reason[REFUSAL_BYTES] = "", pid[16];
	const struct request r = read_options(argc, argv);
	const char *other = getenv(INJECTION), *calls = getenv(CALLS);
	bool wrappers;
	int fd;

	if (optind >= argc && !r.print) {
		fputs(usage_line, stderr);
		fail(STATUS_USAGE, "no command given; put it after --");
	}
	read_environment();
	find_library(library);
	wrappers = !calls || strcmp(calls, "cupti") != 0;
	if (r.print) {
		print_environment(library, wrappers);
		return 0;
	}
	unsetenv(EXEC_FIRST_ENV); /* of an outer exec */
	fd = daemon_socket(dir, reason);
	if (fd < 0) {
		fprintf(stderr, "gpuseg exec: %s; runs unmanaged\n", reason);
		unsetenv(INJECTION);
		set_preload(library, false);
	} else if (other && *other && !strstr(other, LIBRARY)) {
		fprintf(stderr, "gpuseg exec: " INJECTION " is %s, which is left as it is; runs unmanaged\n", other);
	} else {
		if (r.cap)
			set_cap(fd, r.name, r.cap);
		enter_space(dir, &r);
		set(INJECTION, library);
		set_preload(library, wrappers);
		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		set(EXEC_FIRST_ENV, pid);
	}
	if (fd >= 0)
		close(fd);
	execvp(argv[optind], argv + optind);
	fail(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_STARTED, "%s: %s", argv[optind], strerror(errno));
}
