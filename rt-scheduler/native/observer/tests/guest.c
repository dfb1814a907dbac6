/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /init of an emulated machine in which test_observer runs: mounts what it needs, runs it with the arguments that the
 * kernel did not understand, prints "guest: status N", and ends the machine.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void mount_at(const char *type, const char *path)
{
	mkdir(path, 0755);
	if (mount(type, path, type, 0, NULL) != 0) {
		perror(path);
		exit(1);
	}
}

int main(void)
{
	int status = 0;
	pid_t pid;

	puts(""); /* the firmware's last line has no end */
	mkdir("/sys", 0755);
	mount_at("proc", "/proc");
	mount_at("sysfs", "/sys");
	mount_at("devtmpfs", "/dev");
	mount_at("tmpfs", "/dev/shm");
	mount_at("tmpfs", "/tmp");
	mount_at("cgroup2", "/sys/fs/cgroup");
	pid = fork();
	if (pid == 0) {
		setenv("GPUSEG_TEST_BUILD", "/build", 1);
		setenv("CI", "1", 1); /* a missing program is a failure */
		execl("/build/test_observer", "test_observer", (char *)NULL);
		perror("/build/test_observer");
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		perror("test_observer");
	printf("guest: status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	fflush(stdout);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
