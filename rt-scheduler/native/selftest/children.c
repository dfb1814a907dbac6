/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "checks.h"
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STUCK_NS (2 * NS_PER_S)	  /* with work queued */
#define STALL_NS (20 * NS_PER_MS) /* this program was late: what happened meanwhile is unknown */
#define LATE_KERNELS 30		  /* 30 ms, and the other child has one slice before */

#define INSTALLED "../../lib/" ARCHITECTURE "-linux-gnu/gpuseg/" /* from /usr/libexec/gpuseg */
#ifdef __aarch64__
#define ARCHITECTURE "aarch64"
#else
#define ARCHITECTURE "x86_64"
#endif

struct child children[CHILDREN];

const char *const names[CHILDREN] = {"a", "b"};

char over[160];

void give_up(const char *format, ...)
{
	va_list list;

	if (over[0])
		return;
	va_start(list, format);
	vsnprintf(over, sizeof(over), format, list);
	va_end(list);
}

void nap(int64_t ns)
{
	sleep_until(now_ns() + ns, NULL);
}

uint64_t count_of(const struct child *c)
{
	return __atomic_load_n(&c->page->count, __ATOMIC_ACQUIRE);
}

uint64_t queued(const struct child *c)
{
	const uint64_t launched = __atomic_load_n(&c->page->launched, __ATOMIC_ACQUIRE), count = count_of(c);

	return launched > count ? launched - count : 0;
}

bool has_work(const struct child *c)
{
	return queued(c) > 0;
}

bool lives(struct child *c)
{
	if (c->pid > 0 && waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->pid = 0;
	return c->pid > 0;
}

const char *end_of(const struct child *c)
{
	static char text[64];

	if (WIFSIGNALED(c->status))
		snprintf(text, sizeof(text), "signal %d", WTERMSIG(c->status));
	else
		snprintf(text, sizeof(text), "exit status %d", WEXITSTATUS(c->status));
	return text;
}

/* A call of the checks has failed, and what the programs say is that theirs do, too: the driver is gone for all. */
static bool fails_with_driver(const struct child *c)
{
	return c->page->reason[0] &&
	       (report.rows[ROW_DISABLE].verdict == DOES_NOT || report.rows[ROW_ENABLE].verdict == DOES_NOT);
}

bool all_live(void)
{
	for (int i = 0; i < CHILDREN; i++)
		if (!lives(&children[i])) {
			give_up("child %s ended by itself (%s)", names[i], end_of(&children[i]));
			if (!fails_with_driver(&children[i]))
				row_set(ROW_CHILDREN, DOES_NOT, "", "child %s ended during the checks: %s %s", names[i],
					end_of(&children[i]), children[i].page->reason);
			return false;
		}
	return !stopping;
}

/* In the child: the library comes before those that are preloaded already. Without it, the attach says so. */
static void preload(void)
{
	static const char *const directories[] = {"", INSTALLED};
	const char *const before = getenv("LD_PRELOAD");
	char path[PATH_MAX], name[96], list[2 * PATH_MAX];

	for (size_t i = 0; driver->preload && i < ARRAY_LENGTH(directories); i++) {
		snprintf(name, sizeof(name), "%s%s", directories[i], driver->preload);
		if (!beside(name, R_OK, path, sizeof(path)))
			continue;
		snprintf(list, sizeof(list), "%s%s%s", path, before ? ":" : "", before ? before : "");
		setenv("LD_PRELOAD", list, 1);
		return;
	}
}

int start_child(struct child *c, const char *name, uint32_t limit, const char *program)
{
	const int fd = (int)syscall(SYS_memfd_create, "gpuseg-selftest", 0u);
	const pid_t parent = getpid();
	char number[16], owner[16], self[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (fd < 0 || length <= 0 || ftruncate(fd, sizeof(*c->page)) != 0)
		return -errno;
	self[length] = 0;
	if (c->page)
		munmap(c->page, sizeof(*c->page));
	*c = (struct child){0};
	c->page = mmap(NULL, sizeof(*c->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c->page == MAP_FAILED)
		return -errno;
	c->page->limit = limit;
	c->page->mode = limit ? CHILD_ENDLESS : CHILD_IDLE;
	c->page->persistence = -1;
	snprintf(number, sizeof(number), "%d", fd);
	snprintf(owner, sizeof(owner), "%d", parent);
	c->pid = fork();
	if (c->pid == 0) {
		const char *const own[] = {self, "--child", number, owner, name, NULL};
		const char *const under[] = {program, "--best-effort", "--", self, "--child",
					     number,  owner,	       name, NULL};
		const int nowhere = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Ctrl-C goes to all processes of the terminal: the parent ends this one when all is given back */
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		signal(SIGHUP, SIG_IGN);
		dup2(nowhere, STDIN_FILENO);
		dup2(nowhere, STDOUT_FILENO);
		dup2(nowhere, STDERR_FILENO);
		setenv("CUDA_CACHE_DISABLE", "1", 1);	      /* no file in the user's home */
		setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1); /* the driver's list of GPUs has it, too */
		/* a context of its own, even where an MPS server runs */
		setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/gpuseg-selftest", 1);
		preload();
		execv(program ? program : self, (char *const *)(uintptr_t)(program ? under : own));
		_exit(127);
	}
	close(fd);
	return c->pid < 0 ? -errno : 0;
}

bool end_child(struct child *c, int64_t *took_ns)
{
	const int64_t from_ns = now_ns();
	int64_t limit_ns = from_ns + END_LIMIT_NS;
	uint64_t ran_ns = 0;

	if (c->pid > 0)
		kill(c->pid, SIGKILL);
	while (lives(c) && now_ns() < limit_ns) {
		if (process_advances(c->pid, &ran_ns) && now_ns() < from_ns + START_LIMIT_NS)
			limit_ns = now_ns() + END_LIMIT_NS;
		nap(NS_PER_MS);
	}
	if (took_ns)
		*took_ns = now_ns() - from_ns;
	return c->pid == 0;
}

const char *wait_ready(struct child *c)
{
	static char why[256];
	const int64_t limit_ns = now_ns() + START_LIMIT_NS;
	uint32_t state;

	while ((state = __atomic_load_n(&c->page->state, __ATOMIC_ACQUIRE)) == CHILD_STARTING && lives(c) &&
	       now_ns() < limit_ns && !stopping)
		nap(2 * NS_PER_MS);
	state = __atomic_load_n(&c->page->state, __ATOMIC_ACQUIRE);
	why[0] = 0;
	if (state == CHILD_FAILED)
		snprintf(why, sizeof(why), "%s", c->page->reason);
	else if (state == CHILD_STARTING && c->pid == 0)
		snprintf(why, sizeof(why), "it ended while it started: %s", end_of(c));
	else if (state == CHILD_STARTING)
		snprintf(why, sizeof(why), "it was not ready within %d s", (int)(START_LIMIT_NS / NS_PER_S));
	return why;
}

void set_mode(struct child *c, enum child_mode mode, uint32_t scale)
{
	__atomic_store_n(&c->page->scale, scale, __ATOMIC_RELEASE);
	__atomic_store_n(&c->page->mode, mode, __ATOMIC_RELEASE);
}

bool progresses(struct child *c, uint64_t kernels)
{
	const uint64_t from = count_of(c);
	const int64_t from_ns = now_ns();
	uint64_t last = from;
	int64_t change_ns = from_ns;

	while (count_of(c) - from < kernels) {
		const int64_t time_ns = now_ns();

		if (count_of(c) != last || !has_work(c)) {
			last = count_of(c);
			change_ns = time_ns;
		}
		if (time_ns - change_ns > STUCK_NS || time_ns - from_ns > PROGRESS_LIMIT_NS || stopping || !lives(c))
			return false;
		nap(LOOK_NS);
	}
	return true;
}

enum resumed resumes(struct child *c, const struct child *other)
{
	const uint64_t from = count_of(c);
	const int64_t limit_ns = now_ns() + PROGRESS_LIMIT_NS;
	uint64_t others = count_of(other);
	bool late = false;

	while (count_of(c) == from && now_ns() < limit_ns && !stopping && lives(c)) {
		const uint64_t more = count_of(other) - others;

		if (!has_work(c)) { /* its processor was busy: it is not late */
			others += more;
			nap(LOOK_NS);
			continue;
		}
		late = late || (count_of(c) == from && more > LATE_KERNELS);
		if (count_of(c) == from && more > LATE_KERNELS * 30)
			return STANDS;
		nap(LOOK_NS);
	}
	if (!progresses(c, 3))
		return STANDS;
	return late ? RESUMED_LATE : RESUMED;
}

struct stand watch_disabled(struct child *c, struct child *other, int64_t returned_ns, int64_t hold_ns)
{
	struct stand s = {.stopped = true};
	uint64_t last = count_of(c), from = count_of(other), other_last = from;
	int64_t before_ns = returned_ns, change_ns = returned_ns, other_change_ns = returned_ns, quiet_ns = 0;

	for (;;) {
		const int64_t time_ns = now_ns();
		const uint64_t count = count_of(c), others = count_of(other);

		if (count != last) {
			s.ran_on_ns = before_ns - returned_ns;
			s.again = s.again || quiet_ns > LATE_NS;
			quiet_ns = 0;
			change_ns = time_ns;
			last = count;
		} else if (time_ns - before_ns < STALL_NS) {
			quiet_ns += time_ns - before_ns;
		}
		before_ns = time_ns;
		if (others != other_last || !has_work(other)) {
			other_last = others;
			other_change_ns = time_ns;
		}
		s.other_ran = others - from >= PROGRESS;
		s.had_work = has_work(c);
		s.stopped = time_ns - change_ns >= hold_ns;
		if ((s.stopped && s.other_ran) || (!s.stopped && time_ns - returned_ns > hold_ns + RUNS_ON_NS) ||
		    time_ns - other_change_ns > STUCK_NS || stopping || !lives(c) || !lives(other))
			return s;
		nap(LOOK_NS);
	}
}
