/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpuseg-watchdog - a dead or hung daemon must never leave an application frozen.
 *
 *   daemon's death (pidfd) ------------------------> enable everything held, restore time slices, clear the entries,
 *                                                     exit
 *   heartbeat too old, something held -------------> enable everything held, leave the entries, tell the enforcers
 *                                                     (watchdog page: releases), again as often while it lasts
 *   clean stop, nothing held ----------------------> exit
 *
 * No application stays frozen for longer than the period. So the heartbeat is too old at nine tenths of it. The last
 * tenth is for the wake-up and for the operations of the release.
 *
 * The watchdog runs in a session of its own and holds no descriptor of the daemon. It allocates nothing after start. A
 * process that has died but has not been reaped counts as dead: its pidfd becomes readable when its last thread has
 * ended, so no enforcer of the dead daemon can disable anything after the release.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/base.h"
#include "watchdog/held.h"

#define PERIOD_MIN_NS (4 * NS_PER_MS)
#define PERIOD_MAX_NS (10 * NS_PER_S)
#define MARGIN_SHARE 10		      /* the margin is a tenth of the period */
#define UNASKED_PRIORITY 50	      /* SCHED_FIFO if permitted and --scheduling is not given */
#define RETRY_LIMIT_NS (2 * NS_PER_S) /* after a death: how long a failed enable is repeated */

struct options {
	const char *directory;
	pid_t daemon;
	int64_t period_ns;
	struct scheduling scheduling;
	bool scheduling_given, release, force;
};

static struct watchdog {
	const char *directory;
	pid_t daemon;
	int pidfd; /* -1: the daemon was dead at start */
	int signals;
	int timer; /* absolute, CLOCK_MONOTONIC: a late check does not delay the next one */
	int64_t period_ns;
	int64_t hang_ns; /* period - margin: with an older heartbeat the daemon counts as hung */
	struct gpuseg_watchdog *page;
	struct held_file held;
	int held_error; /* last one reported, so that it is reported once */
	bool leaving;	/* SIGTERM: exit as soon as nothing is held */
	bool stalled;
	bool released;		  /* something, since the daemon's last sign of life */
	int64_t stall_release_ns; /* last release of this stall */
} dog;

static void beat(void)
{
	/* release; read by the daemon and `status` */
	__atomic_store_n(&dog.page->heartbeat_ns, now_ns(), __ATOMIC_RELEASE);
}

static int create_page(void)
{
	char path[PATH_MAX];
	void *map;
	int fd, rc = 0;

	if (snprintf(path, sizeof(path), "%s/%s", dog.directory, GPUSEG_WATCHDOG_NAME) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(*dog.page)) != 0 || fchmod(fd, 0644) != 0) /* whatever the umask */
		rc = -errno;
	map = rc == 0 ? mmap(NULL, sizeof(*dog.page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (rc == 0 && map == MAP_FAILED)
		rc = -errno;
	close(fd);
	if (rc != 0)
		return rc;
	dog.page = map;
	/* The counters of an earlier watchdog continue, because enforcers look for a change. */
	__atomic_store_n(&dog.page->version, 0, __ATOMIC_RELEASE);
	if (dog.page->magic != GPUSEG_WATCHDOG_MAGIC)
		*dog.page = (struct gpuseg_watchdog){.magic = GPUSEG_WATCHDOG_MAGIC};
	dog.page->pid = getpid();
	dog.page->period_ms = (uint32_t)(dog.period_ns / NS_PER_MS);
	beat();
	/* release: everything above is visible before the version */
	__atomic_store_n(&dog.page->version, GPUSEG_ABI_VERSION, __ATOMIC_RELEASE);
	return 0;
}

static void note(const struct held_context *c, enum release_outcome outcome)
{
	if (outcome == RELEASE_UNKNOWN)
		message("process %" PRId32 ", GPU %" PRIu32 ": mechanism %" PRIu32
			" has no release here; its entry is kept for a daemon or `gpuseg release` that knows it",
			c->pid, c->gpu, c->mechanism);
	else if (outcome == RELEASE_FAILED)
		message("process %" PRId32 ", GPU %" PRIu32 ": cannot enable: %s; its entry is kept", c->pid, c->gpu,
			strerror(-c->result));
	else if (outcome == RELEASE_REUSED)
		message("process %" PRId32 " is another process now and was not touched", c->pid);
}

static struct release_report release_all(bool clear, int64_t not_after_ns, bool quiet)
{
	const int64_t began_ns = now_ns();
	const struct release_rule rule = {
		.clear = clear,
		.not_after_ns = not_after_ns,
		.deadline_ns = began_ns + dog.period_ns / 2,
		.note = quiet ? NULL : note,
	};
	const struct release_report report = held_release(&dog.held, &rule);

	/*
	 * What failed may have happened all the same: a device answers late, or enables a part of a list. So the
	 * enforcers apply their state again, whatever came of it.
	 */
	if (report.tried > 0) {
		dog.page->released_contexts += report.count[RELEASE_ENABLED];
		dog.page->last_release_ns = now_ns();
		if (!dog.released)
			dog.page->first_release_ns = began_ns;
		dog.released = true;
		/*
		 * release, after the hardware was changed: an enforcer that sees the new count applies its state on top
		 */
		__atomic_add_fetch(&dog.page->releases, 1, __ATOMIC_RELEASE);
	}
	return report;
}

/* Maps the held file if there is one. Reports a lasting error once. */
static void look_for_held(void)
{
	const int rc = held_map(&dog.held, dog.directory);

	if (rc != 0 && rc != -ENOENT && rc != -EAGAIN && rc != dog.held_error)
		message("%s/%s: %s", dog.directory, GPUSEG_HELD_NAME,
			rc == -EPROTO ? "not a held file of this version" : strerror(-rc));
	dog.held_error = rc;
}

/* A new daemon repairs what it finds, and owns the entries from then on. */
static bool has_successor(void)
{
	struct gpuseg_status status;

	return status_read(&status, dog.directory) == 0 && status.daemon_pid != dog.daemon &&
	       status_owner_lives(&status);
}

static int after_death(int64_t death_ns)
{
	for (bool again = false;; again = true) {
		struct release_report report;

		look_for_held();
		if (has_successor()) {
			message("daemon %d died, and another one took over already: nothing to do", dog.daemon);
			return EXIT_SUCCESS;
		}
		report = release_all(true, death_ns, again);
		if (!again)
			message("daemon %d died: %u contexts enabled, %u gone, %u kept, %.3f ms after the notice",
				dog.daemon, report.count[RELEASE_ENABLED],
				report.count[RELEASE_GONE] + report.count[RELEASE_REUSED], release_kept(&report),
				(double)(now_ns() - death_ns) / (double)NS_PER_MS);
		if (report.timeslices + report.timeslices_failed > 0)
			message("time slices of %u contexts are their own again, of %u not", report.timeslices,
				report.timeslices_failed);
		/* A failure may be temporary; an unknown mechanism is not. */
		if (report.count[RELEASE_FAILED] == 0 && report.timeslices_failed == 0)
			return report.count[RELEASE_UNKNOWN] == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
		if (now_ns() - death_ns > RETRY_LIMIT_NS) {
			message("giving up: %u contexts may still be disabled, %u have other time slices (%s); run "
				"`gpuseg-watchdog --release --dir %s`",
				release_kept(&report), report.timeslices_failed, strerror(-report.first_error),
				dog.directory);
			return EXIT_FAILURE;
		}
		beat();
		sleep_until(now_ns() + dog.period_ns / 4, NULL);
	}
}

/* Returns the time of the next check. */
static int64_t check_heartbeat(const struct gpuseg_status *status, int64_t time_ns)
{
	const int64_t age_ns = time_ns - status->heartbeat_ns;

	/*
	 * Also if the heartbeat is stale again: it may have been fresh while nothing was held and it was not checked.
	 */
	if (dog.stalled && status->heartbeat_ns > dog.stall_release_ns) {
		message("daemon %d answers again", dog.daemon);
		dog.stalled = false;
		dog.released = false;
	}
	if (age_ns <= dog.hang_ns)
		return status->heartbeat_ns + dog.hang_ns + 1;
	/* Repeat it: the enforcers of a hung dispatcher are still running and may disable again. */
	if (!dog.stalled || time_ns - dog.stall_release_ns >= dog.hang_ns) {
		const struct release_report report = release_all(false, INT64_MAX, dog.stalled);

		if (!dog.stalled)
			message("daemon %d gave no sign of life for %.1f ms: %u contexts enabled, %u kept", dog.daemon,
				(double)age_ns / (double)NS_PER_MS, report.count[RELEASE_ENABLED],
				release_kept(&report));
		dog.stalled = true;
		dog.stall_release_ns = time_ns;
	}
	return dog.stall_release_ns + dog.hang_ns;
}

static int watch(void)
{
	struct pollfd polled[] = {{.fd = dog.pidfd, .events = POLLIN},
				  {.fd = dog.signals, .events = POLLIN},
				  {.fd = dog.timer, .events = POLLIN}};

	if (dog.pidfd < 0)
		return after_death(now_ns());
	for (;;) {
		struct gpuseg_status status;
		struct signalfd_siginfo caught;
		const int64_t time_ns = now_ns();
		int64_t next_ns = time_ns + dog.period_ns / 4;
		unsigned held, timeslices;

		beat();
		look_for_held();
		held = held_count(&dog.held);
		timeslices = held_timeslices(&dog.held);
		if (dog.leaving && held == 0 && timeslices == 0)
			return EXIT_SUCCESS;
		/* A page of an earlier daemon says nothing about this one. */
		if (status_read(&status, dog.directory) == 0 && status.daemon_pid == dog.daemon) {
			if (status.stopping == 1 && held == 0 && timeslices == 0)
				return EXIT_SUCCESS;
			if (held > 0 && status.heartbeat_ns > 0) {
				const int64_t look_ns = check_heartbeat(&status, time_ns);
				next_ns = look_ns < next_ns ? look_ns : next_ns;
			}
		}

		const struct itimerspec alarm = {.it_value = to_timespec(next_ns)};
		if (timerfd_settime(dog.timer, TFD_TIMER_ABSTIME, &alarm, NULL) != 0 ||
		    (poll(polled, ARRAY_LENGTH(polled), -1) < 0 && errno != EINTR)) {
			message("timer: %s", strerror(errno));
			return EXIT_FAILURE;
		}
		if (polled[0].revents)
			return after_death(now_ns());
		if ((polled[1].revents & POLLIN) && read(dog.signals, &caught, sizeof(caught)) == sizeof(caught)) {
			dog.leaving = true;
			if (held_count(&dog.held) + held_timeslices(&dog.held) > 0)
				message("asked to stop while contexts are held: staying until they are given back");
		}
		for (size_t i = 0; i < ARRAY_LENGTH(polled); i++)
			polled[i].revents = 0; /* setting the timer again makes it unreadable */
	}
}

static int start_watching(const struct options *options)
{
	struct gpuseg_status status;
	sigset_t blocked;
	int rc;

	dog.directory = options->directory;
	dog.daemon = options->daemon;
	dog.period_ns = options->period_ns;
	dog.hang_ns = dog.period_ns - dog.period_ns / MARGIN_SHARE;

	/*
	 * Leave the daemon's session and process group, so that signals to these do not reach the watchdog. A group
	 * leader cannot leave its session, but has a group of its own already.
	 */
	if (setsid() < 0 && errno != EPERM) {
		message("setsid: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	signal(SIGPIPE, SIG_IGN); /* the daemon may be the reader of stderr */
	message_never_waits();	  /* nor may any reader keep a context disabled */
	signal(SIGHUP, SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGINT);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	dog.signals = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	dog.timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (dog.signals < 0 || dog.timer < 0) {
		message("%s: %s", dog.signals < 0 ? "signalfd" : "timerfd", strerror(errno));
		return EXIT_FAILURE;
	}
	dog.pidfd = pidfd_of(dog.daemon);
	if (dog.pidfd < 0 && dog.pidfd != -ESRCH) {
		message("--daemon-pid %d: %s", dog.daemon, strerror(-dog.pidfd));
		return EXIT_FAILURE;
	}
	/* The daemon may have died, and its pid may have been reused, before its pidfd was opened. */
	if (dog.pidfd >= 0 && status_read(&status, dog.directory) == 0 && status.daemon_pid == dog.daemon &&
	    !status_owner_lives(&status)) {
		close(dog.pidfd);
		dog.pidfd = -1;
	}
	rc = create_page();
	if (rc != 0) {
		message("%s/%s: %s", dog.directory, GPUSEG_WATCHDOG_NAME, strerror(-rc));
		return EXIT_FAILURE;
	}
	prctl(PR_SET_TIMERSLACK, 1); /* for SCHED_OTHER; real-time threads have no slack */
	if (options->scheduling.fifo) {
		rc = apply_scheduling(options->scheduling);
		if (rc != 0 && options->scheduling_given)
			message("--scheduling fifo:%d: %s; going on as other", options->scheduling.priority,
				strerror(-rc));
	}
	/* Daemons hang under memory pressure, so stay resident if the limit allows it. */
	rc = lock_memory();
	if (rc != 0 && rc != -EPERM)
		message("memory is not locked: %s", strerror(-rc));
	return watch();
}

static void print_outcome(const struct held_context *c, enum release_outcome outcome)
{
	const struct mechanism *m = mechanism_find(c->mechanism);
	char mechanism[24];

	if (m)
		snprintf(mechanism, sizeof(mechanism), "%s", m->name);
	else
		snprintf(mechanism, sizeof(mechanism), "mechanism %" PRIu32, c->mechanism);
	printf("process %" PRId32 ", GPU %" PRIu32 " (%s): %s%s\n", c->pid, c->gpu, mechanism,
	       outcome == RELEASE_ENABLED   ? "enabled"
	       : outcome == RELEASE_GONE    ? "gone, nothing to enable"
	       : outcome == RELEASE_REUSED  ? "the pid belongs to another process now, not touched"
	       : outcome == RELEASE_UNKNOWN ? "kept: this program has no release for it"
					    : "kept: cannot enable: ",
	       outcome == RELEASE_FAILED ? strerror(-c->result) : "");
}

/* False: there is no page to tell it through, as of a daemon without a watchdog. */
static bool tell_enforcers(const struct options *options, const struct gpuseg_status *status, int64_t began_ns)
{
	struct gpuseg_watchdog *page;
	char path[PATH_MAX];
	struct stat file;
	bool told;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", options->directory, GPUSEG_WATCHDOG_NAME) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return false;
	page = fstat(fd, &file) == 0 && file.st_size >= (off_t)sizeof(*page)
		       ? mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
		       : MAP_FAILED;
	close(fd);
	if (page == MAP_FAILED)
		return false;
	told = page->magic == GPUSEG_WATCHDOG_MAGIC && page->version >> 16 == GPUSEG_ABI_MAJOR;
	if (told) {
		if (page->first_release_ns <= status->heartbeat_ns) /* else the watchdog's own of this silence stays */
			page->first_release_ns = began_ns;
		/* release, as in release_all() */
		__atomic_add_fetch(&page->releases, 1, __ATOMIC_RELEASE);
	}
	munmap(page, sizeof(*page));
	return told;
}

static int release_once(const struct options *options)
{
	struct gpuseg_status status;
	struct held_file held = {0};
	struct release_report report;
	struct release_rule rule = {.clear = true, .not_after_ns = INT64_MAX, .note = print_outcome};
	int64_t began_ns;
	int rc;

	rc = status_read(&status, options->directory);
	if (rc == 0 && status_owner_lives(&status)) {
		if (!options->force) {
			message("%s: daemon %" PRId32
				" lives and owns what is held; stop it first, or add --force to enable it regardless",
				options->directory, status.daemon_pid);
			return EXIT_FAILURE;
		}
		message("daemon %" PRId32 " lives: its entries stay, and it disables these contexts again if it wants "
			"them disabled",
			status.daemon_pid);
		rule.clear = false;
	} else if (rc == -EPROTO && !options->force) {
		message("%s/%s: not a status page of this version, so a living daemon cannot be ruled out; add --force",
			options->directory, GPUSEG_STATUS_NAME);
		return EXIT_FAILURE;
	}
	rc = held_map(&held, options->directory);
	if (rc == -ENOENT) {
		printf("nothing is held: %s/%s does not exist\n", options->directory, GPUSEG_HELD_NAME);
		return EXIT_SUCCESS;
	}
	if (rc != 0) {
		message("%s/%s: %s", options->directory, GPUSEG_HELD_NAME,
			rc == -EPROTO ? "not a held file of this version" : strerror(-rc));
		return EXIT_FAILURE;
	}
	began_ns = now_ns();
	rule.deadline_ns = began_ns + NS_PER_S;
	report = held_release(&held, &rule);
	held_unmap(&held);
	if (!rule.clear && report.tried > 0 && !tell_enforcers(options, &status, began_ns))
		message("daemon %" PRId32 " has no watchdog and does not learn of this: it disables them again only "
			"after its next change",
			status.daemon_pid);
	printf("%u enabled, %u gone, %u not touched, %u kept\n", report.count[RELEASE_ENABLED],
	       report.count[RELEASE_GONE], report.count[RELEASE_REUSED], release_kept(&report));
	if (report.timeslices + report.timeslices_failed > 0)
		printf("time slices: %u given back, %u kept\n", report.timeslices, report.timeslices_failed);
	return release_kept(&report) + report.timeslices_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static const char help[] =
	"Usage: gpuseg-watchdog --dir DIR --daemon-pid PID [--period DURATION] [--scheduling fifo:P|other]\n"
	"       gpuseg-watchdog --dir DIR --release [--force]\n"
	"Enables the contexts that a dead or hung daemon left disabled.\n\n"
	"  --dir DIR                  runtime directory of the daemon\n"
	"  --daemon-pid PID           the daemon to watch; exits 0 after its clean stop or death and release\n"
	"  --period DURATION          longest time that an application stays frozen; the daemon counts as hung when "
	"its\n"
	"                             heartbeat is older than nine tenths of it (default 100ms)\n"
	"  --scheduling fifo:P|other  scheduling of the watchdog, if permitted (default fifo:50)\n"
	"  --release                  enable everything that is held once, report it and exit\n"
	"  --force                    with --release: even if the daemon that owns it is alive\n"
	"  --help                     this text\n"
	"Exit status: 0 everything enabled, 1 something could not be, 2 usage.\n";

static void parse_options(int argc, char **argv, struct options *options)
{
	enum { DIRECTORY = 1, DAEMON, PERIOD, SCHEDULING, RELEASE, FORCE, HELP };
	static const struct option known[] = {
		{"dir", required_argument, NULL, DIRECTORY}, {"daemon-pid", required_argument, NULL, DAEMON},
		{"period", required_argument, NULL, PERIOD}, {"scheduling", required_argument, NULL, SCHEDULING},
		{"release", no_argument, NULL, RELEASE},     {"force", no_argument, NULL, FORCE},
		{"help", no_argument, NULL, HELP},	     {0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case DIRECTORY:
			options->directory = optarg;
			break;
		case DAEMON:
			options->daemon = (pid_t)option_integer("--daemon-pid", optarg, 1, INT32_MAX);
			break;
		case PERIOD:
			options->period_ns = option_duration("--period", optarg, PERIOD_MIN_NS, PERIOD_MAX_NS);
			break;
		case SCHEDULING:
			options->scheduling = option_scheduling("--scheduling", optarg);
			options->scheduling_given = true;
			break;
		case RELEASE:
			options->release = true;
			break;
		case FORCE:
			options->force = true;
			break;
		case HELP:
			fputs(help, stdout);
			exit(EXIT_SUCCESS);
		default:
			exit(EXIT_USAGE); /* getopt_long said why */
		}
	}
	if (optind < argc)
		usage_error("unexpected argument \"%s\"; see --help", argv[optind]);
	if (!options->directory)
		usage_error("--dir is missing; give the runtime directory, like --dir /dev/shm/gpuseg");
	if (options->release ? options->daemon != 0 : options->daemon == 0)
		usage_error("give either --daemon-pid PID or --release");
	if (options->force && !options->release)
		usage_error("--force goes with --release only");
}

int main(int argc, char **argv)
{
	struct options options = {.period_ns = 100 * NS_PER_MS, .scheduling = {true, UNASKED_PRIORITY}};

	program_name = "gpuseg-watchdog";
	parse_options(argc, argv, &options);
	return options.release ? release_once(&options) : start_watching(&options);
}
