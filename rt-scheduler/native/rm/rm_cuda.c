/* SPDX-License-Identifier: Apache-2.0 */
/* The contexts of ../selftest/standin/runtime.c on the RM stand-in (libgpuseg-rm-fake.so is preloaded, too). */
#define _GNU_SOURCE
#include "rm_context.h"

#include "../selftest/spin.h"
#include "../selftest/standin/runtime.h"

#include <fcntl.h>

static struct context context;

int runtime_context(bool closed)
{
	const int fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);

	(void)closed;
	if (fd < 0)
		return RUNTIME_UNKNOWN;
	context = make_context(fd, visible_gpu());
	return 0;
}

int runtime_launch(const struct runtime_kernel *kernel)
{
	struct rm_wire_work w = {.client = context.client,
				 .channel = context.channel,
				 .duration_ns = kernel->duration_ns,
				 .seed = spin_result(kernel->iterations),
				 .pid = getpid(),
				 .counter = kernel->counter,
				 .value = kernel->number};

	return ioctl(context.fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', RM_WIRE_ESC_WORK, sizeof(w)), &w) != 0 ||
			       w.status != 0
		       ? RUNTIME_UNKNOWN
		       : 0;
}
