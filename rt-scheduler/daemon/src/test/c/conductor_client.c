/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conductor_client SOCKET MODE - a process that registers and prints "status client_id descriptors", then
 *   wait    waits to be killed
 *   close   hangs up and waits to be killed
 *   fork    leaves a child that keeps the connection open, prints the child's pid, and waits to be killed
 *   exec    replaces itself by `sleep 240` (the connection is close-on-exec)
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpuseg_abi.h"

int main(int argc, char **argv)
{
	struct gpuseg_msg_hello hello = {.msg = {.magic = GPUSEG_MSG_MAGIC,
						 .version = GPUSEG_ABI_VERSION,
						 .type = GPUSEG_MSG_HELLO,
						 .size = sizeof(hello),
						 .seq = 1},
					 .name = "conductor_client"};
	struct gpuseg_msg_hello_reply reply;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = &reply, .iov_len = sizeof(reply)};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), descriptors = 0;

	if (argc != 3 || fd < 0)
		return 2;
	strncpy(address.sun_path, argv[1], sizeof(address.sun_path) - 1);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) || send(fd, &hello, sizeof(hello), 0) < 0 ||
	    recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(reply)) {
		perror("registration");
		return 1;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		descriptors += (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	printf("%d %u %d\n", reply.msg.status, reply.client_id, descriptors);
	fflush(stdout);
	if (!strcmp(argv[2], "close")) {
		close(fd);
	} else if (!strcmp(argv[2], "fork")) {
		pid_t child = fork();

		if (child) {
			printf("%d\n", (int)child);
			fflush(stdout);
		}
	} else if (!strcmp(argv[2], "exec")) {
		execlp("sleep", "sleep", "240", (char *)0);
		return 1;
	}
	sleep(240);
	return 0;
}
