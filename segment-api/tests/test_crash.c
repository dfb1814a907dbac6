/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_crash.c - kill -9 at every step of an append, then continue: no acknowledged record is lost, none is torn. Runs
 * gpuseg-queue-writer from the directory above this program.
 */
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "check.h"
#include "fixture.h"

#define STEPS 8
#define ROUNDS 3

static char writer[512];

/* Run the writer; -1 = it was killed by SIGKILL, else its exit status. */
static int run_writer(const char *dir, const char *count, const char *ack, const char *step, const char *after)
{
	const char *runner = getenv("GPUSEG_TEST_RUNNER"); /* qemu-aarch64 */
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 1);
		if (runner && *runner)
			execlp(runner, runner, "-L", "/usr/aarch64-linux-gnu", writer, dir, "1", count, ack, step,
			       after, (char *)NULL);
		else
			execl(writer, writer, dir, "1", count, ack, step, after, (char *)NULL);
		_exit(126);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

TEST(should_lose_nothing_acknowledged_at_any_step)
{
	struct fixture_tail tail;
	struct gpuseg_record r;
	char dir[64], ack_path[80], step[8], after[8];
	int64_t *ack, last = 0, repeats = 0;
	int deaths = 0, fd;

	if (access(writer, X_OK) != 0)
		SKIP("gpuseg-queue-writer is not built");
	fixture_directory(dir);
	fixture_queue_create(dir, FIXTURE_CYCLE_BYTES);
	snprintf(ack_path, sizeof(ack_path), "%s/ack", dir);
	for (int round = 0; round < ROUNDS; round++) {
		for (int s = 1; s <= STEPS; s++) {
			snprintf(step, sizeof(step), "%d", s);
			snprintf(after, sizeof(after), "%d",
				 round * 2 + 1); /* not 0: a run records its take-over after its first append */
			CHECK_EQ(run_writer(dir, "100", ack_path, step, after), -1);
			deaths++;
		}
	}
	CHECK_EQ(run_writer(dir, "10", ack_path, "1", "1000"), 0);
	fd = open(ack_path, O_RDWR);
	CHECK(fd >= 0);
	ack = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(ack != MAP_FAILED);
	close(fd);
	fixture_tail_open(&tail, dir, 0);
	while (fixture_tail_next(&tail, &r) == 1) {
		CHECK((int64_t)r.seq == last + 1 || (int64_t)r.seq == last);
		repeats += (int64_t)r.seq == last;
		last = (int64_t)r.seq;
		CHECK_EQ(r.ticket, 1);
		CHECK_EQ(r.release_ns, (int64_t)r.seq * 1000003 + 1);
	}
	CHECK_EQ(last, ack[0]);
	/* A death at steps 4 to 8 leaves the record in the queue, but unacknowledged, so it is repeated. */
	CHECK_EQ(repeats, ROUNDS * 5);
	/* A death at steps 1 to 6 leaves the lock. */
	CHECK_EQ(ack[2], ROUNDS * 6);
	printf("    %d deaths, %lld locks taken over, %lld records repeated, none lost\n", deaths, (long long)ack[2],
	       (long long)repeats);
	munmap(ack, 4096);
	fixture_tail_close(&tail);
	fixture_remove(dir);
}

int main(int argc, char **argv)
{
	static const struct check_case cases[] = {CASE(should_lose_nothing_acknowledged_at_any_step)};
	char self[400];

	snprintf(self, sizeof(self), "%s", argv[0]);
	snprintf(writer, sizeof(writer), "%s/../gpuseg-queue-writer", dirname(self));
	return check_main(argc, argv, cases, 1);
}
