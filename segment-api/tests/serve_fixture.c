/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_fixture - the daemon of the tests as a program, for tests in other languages. It prints its runtime directory,
 * serves until its standard input closes, then prints each record: kind flags ticket arg_ns sample.
 */
#include "check.h"
#include "fixture.h"

int main(void)
{
	static struct fake_daemon d;
	char c;

	alarm(CHECK_SECONDS);
	fake_daemon_start(&d);
	printf("%s\n", d.dir);
	fflush(stdout);
	while (read(0, &c, 1) > 0) {
		if (c == 'i')
			fake_daemon_grants(&d, FAKE_IGNORE, 0);
		else if (c == 'r')
			fake_daemon_grants(&d, FAKE_REFUSE, 0);
		else if (c == 'g')
			fake_daemon_grants(&d, FAKE_GRANT, 0);
		else if (c == 'a') {
			d.refuse_type = GPUSEG_MSG_TASK_OPEN;
			d.refuse_status = -GPUSEG_ADMISSION_REFUSED;
		} else if (c == 'f') { /* dies, and another one starts */
			fake_daemon_kill(&d);
			fake_daemon_follow(&d);
		} else if (c == 'k') {
			fake_daemon_kill(&d);
		} else if (c == 'n') {
			fake_daemon_follow(&d);
		}
		printf("ok\n");
		fflush(stdout);
	}
	usleep(20000); /* until the daemon has read the queue, which takes one turn */
	fake_daemon_kill(&d);
	for (size_t i = 0; i < d.records; i++)
		printf("%u %u %" PRIu64 " %" PRId64 " %" PRIu64 "\n", d.log[i].kind, d.log[i].flags, d.log[i].ticket,
		       d.log[i].arg_ns, d.log[i].sample);
	fake_daemon_stop(&d);
	return 0;
}
