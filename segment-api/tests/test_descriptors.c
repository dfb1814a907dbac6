/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_descriptors.c - programs that close descriptors which they did not open, and open files of their own, which get
 * the numbers. Nothing is written to them, none is closed, and the program is managed again. With a daemon that sleeps,
 * so that it is woken through a descriptor.
 */
#include "exec_rig.h"

/* As enum closing in cuda/inject_app.c. */
enum closing {
	CLOSES_THEN_FILES = 0,
	CLOSES_THEN_EVENTFDS,
	CLOSES_THEN_SOCKETS,
	COVERS_BY_FILES,
	COVERS_BY_EVENTFDS,
	CLOSES_IN_CHILDREN,
	CLOSES_ON_EXEC,
	CLOSES_EVERY_OTHER_ONE,
	CLOSES_STDERR_TOO
};

#define SAID_ONCE "the program has closed descriptors that it did not open; connects again (said once)"

/* Has a task of the next connection, which has the given id, begun a segment? */
static bool has_begun(struct fake_daemon *d, uint32_t task_id)
{
	const int64_t limit_ns = now_ns() + 60 * NS_PER_S;

	while (now_ns() - limit_ns < 0) {
		const size_t n = fake_daemon_records(d);

		if (n && fake_daemon_record(d, n - 1).task_id == task_id)
			return true;
		sleep_ns(NS_PER_MS);
	}
	return false;
}

/* `lost`: the program closes what the connection needs. */
static void closes(unsigned int how, bool lost)
{
	struct fake_daemon d;
	char number[12];
	const bool says = lost && how != CLOSES_STDERR_TOO; /* else it would write to a file of the program */
	const char *at;
	struct run r;
	bool again;
	size_t before;

#ifdef __SANITIZE_THREAD__
	SKIP("to close what another thread uses is what ThreadSanitizer reports");
#endif
	fake_daemon_start(&d);
	prepare(&d);
	fake_daemon_sleeps(&d, true);
	snprintf(number, sizeof(number), "%u", how);
	r = start((const char *const[]){in_build("gpuseg-exec"), "--priority", "80", "GPUSEG_EXEC_HOLD_OFF=0", "--",
					APP, "closes", number, NULL});
	follow(&r, "closed");
	before = fake_daemon_records(&d);
	again = lost ? has_begun(&d, 2) : fake_daemon_wait(&d, before + 20, NULL);
	kill(r.pid, SIGTERM);
	finish(&r);
	passed(&r);
	CHECK(again, "not managed again; it said: %s", r.said);
	CHECK(!strstr(r.said, "unmanaged for"), "a launch has waited: %s", r.said);
	at = strstr(r.said, SAID_ONCE);
	CHECK((at != NULL) == says, "%s", r.said);
	CHECK(!at || !strstr(at + 1, SAID_ONCE), "%s", r.said);
	CHECK_EQ(d.opens, lost ? 2 : 1);
	CHECK(!d.sequence_broken);
	fake_daemon_stop(&d);
}

TEST(should_leave_files_alone_that_have_its_numbers)
{
	closes(CLOSES_THEN_FILES, true);
	closes(COVERS_BY_FILES, true);
	closes(CLOSES_STDERR_TOO, true);
}

TEST(should_leave_eventfds_alone_that_have_its_numbers)
{
	closes(CLOSES_THEN_EVENTFDS, true);
	closes(COVERS_BY_EVENTFDS, true);
}

TEST(should_leave_sockets_alone_that_have_its_numbers)
{
	closes(CLOSES_THEN_SOCKETS, true);
}

TEST(should_notice_that_only_some_were_closed)
{
	closes(CLOSES_EVERY_OTHER_ONE, true);
	closes(100 + CLOSES_EVERY_OTHER_ONE, true);
}

TEST(should_not_mind_what_children_close_or_exec_would)
{
	closes(CLOSES_IN_CHILDREN, false);
	closes(CLOSES_ON_EXEC, false);
}

static void closes_by_hand(unsigned int how)
{
	struct fake_daemon d;
	char number[12];
	struct run r;

	fake_daemon_start(&d);
	prepare(&d);
	fake_daemon_sleeps(&d, true);
	snprintf(number, sizeof(number), "%u", how);
	r = RUN(APP, "closes-by-hand", number);
	passed(&r);
	CHECK_CONTAINS(r.text, "managed 1 end 0");
	if (how >= 1000)
		CHECK_CONTAINS(r.said, "the program has closed descriptors of its connection to the daemon; "
				       "\"inject_app\" runs unmanaged until it has connected again\n");
	else if (r.said_size)
		CHECK(strcmp(r.said, "the program has closed descriptors of the connection to the daemon, which it did "
				     "not open; the client connects again\n") == 0,
		      "%s", r.said);
	CHECK_EQ(d.opens, 2);
	fake_daemon_stop(&d);
}

TEST(should_leave_them_alone_in_programs_with_marks_and_their_children)
{
	closes_by_hand(CLOSES_THEN_FILES);
	closes_by_hand(CLOSES_THEN_EVENTFDS);
	closes_by_hand(CLOSES_THEN_SOCKETS);
	closes_by_hand(COVERS_BY_EVENTFDS);
	closes_by_hand(CLOSES_EVERY_OTHER_ONE);
	closes_by_hand(100 + CLOSES_EVERY_OTHER_ONE);
	closes_by_hand(1000 + CLOSES_THEN_FILES);
}

static const struct check_case cases[] = {
	CASE(should_leave_files_alone_that_have_its_numbers),
	CASE(should_leave_eventfds_alone_that_have_its_numbers),
	CASE(should_leave_sockets_alone_that_have_its_numbers),
	CASE(should_notice_that_only_some_were_closed),
	CASE(should_not_mind_what_children_close_or_exec_would),
	CASE(should_leave_them_alone_in_programs_with_marks_and_their_children),
};

CHECK_MAIN(cases)
