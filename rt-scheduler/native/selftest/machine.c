/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "driver.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/base.h"
#include "common/device_file.h"

#define STANDIN_ROOT_ENV "GPUSEG_SELFTEST_ROOT" /* in place of / where a stand-in of a driver is preloaded */
#define BIT_SYS_PTRACE 19
#define BIT_SYS_ADMIN 21
#define BIT_PERFMON 38
#define BIT_BPF 39

const struct driver *driver;

const char *machine_path(const char *path)
{
	static char found[PATH_MAX];

	if (!report.machine.standin)
		return path;
	snprintf(found, sizeof(found), "%s%s", getenv(STANDIN_ROOT_ENV) ? getenv(STANDIN_ROOT_ENV) : "/nonexistent",
		 path);
	return found;
}

bool machine_has(const char *path)
{
	return access(machine_path(path), F_OK) == 0;
}

bool machine_text(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return n >= 0;
}

void machine_line(const char *text, const char *key, char *value, size_t size)
{
	const char *at = strstr(text, key);
	size_t n;

	value[0] = 0;
	if (!at)
		return;
	at += strlen(key);
	while (*at == ' ' || *at == '\t')
		at++;
	n = strcspn(at, "\n");
	n = n < size ? n : size - 1;
	memcpy(value, at, n);
	while (n > 0 && isspace((unsigned char)value[n - 1]))
		n--;
	value[n] = 0;
}

/*
 * On a Tegra board up to Orin the GPU is nvgpu's, and NVIDIA's other driver has the display alone: nothing there has
 * firmware.
 */
static int choose(struct machine *m, char *why, size_t size)
{
	const bool nvgpu = machine_has("/dev/nvhost-sched-gpu") || machine_has("/dev/nvgpu");

	driver = &driver_nvidia;
	if (driver->machine(m, why, size) == 0 && !(nvgpu && (!m->gsp[0] || strcmp(m->gsp, "N/A") == 0)))
		return 0;
	if (nvgpu)
		driver = &driver_tegra;
	else if (m->driver[0] == 0 && machine_has("/dev/kfd"))
		driver = &driver_amd;
	else
		return -ENODEV;
	m->gsp[0] = m->model[0] = 0;
	return driver->machine(m, why, size);
}

int machine_read(struct machine *m, char *why, size_t size)
{
	struct utsname name;

	m->standin = gpuseg_standin_owns != NULL;
	m->persistence = -1;
	uname(&name);
	/* who builds a kernel may put any name behind its version */
	snprintf(m->kernel, sizeof(m->kernel), "%.*s", (int)strspn(name.release, "0123456789."), name.release);
	snprintf(m->hardware, sizeof(m->hardware), "%.15s", name.machine);
	m->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	m->memory_gib = (int)(((int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) + (INT64_C(1) << 29)) >> 30);
	machine_text(m->standin && getenv(STANDIN_ROOT_ENV) ? machine_path("/proc/device-tree/model")
							    : "/proc/device-tree/model",
		     m->board, sizeof(m->board));
	return choose(m, why, size);
}

static bool has_capability(int bit)
{
	char text[8192], value[32];

	machine_text("/proc/self/status", text, sizeof(text));
	machine_line(text, "CapEff:", value, sizeof(value));
	return strtoull(value, NULL, 16) >> bit & 1;
}

void check_rights(void)
{
	char scope[16];
	const bool ptrace = has_capability(BIT_SYS_PTRACE);

	machine_text("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
	scope[strcspn(scope, "\n")] = 0;
	if (ptrace)
		row_set(ROW_RIGHTS, WORKS, "CAP_SYS_PTRACE", "processes of every user can be scheduled");
	else if (scope[0] == 0 || scope[0] == '0')
		row_set(ROW_RIGHTS, WORKS, "no CAP_SYS_PTRACE", "only processes of the same user can be scheduled");
	else if (scope[0] == '1')
		row_set(ROW_RIGHTS, WORKS, "no CAP_SYS_PTRACE, ptrace_scope 1",
			"only this program's own children; the daemon needs root or CAP_SYS_PTRACE");
	else
		row_set(ROW_RIGHTS, DOES_NOT, "no CAP_SYS_PTRACE",
			"kernel.yama.ptrace_scope is %s: no process can be scheduled; use root or CAP_SYS_PTRACE",
			scope);
}

void check_observer(void)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
		row_set(ROW_OBSERVER, NOT_SUPPORTED, "no BTF",
			"/sys/kernel/btf/vmlinux is missing; the daemon scans instead");
	else if (has_capability(BIT_SYS_ADMIN) || (has_capability(BIT_BPF) && has_capability(BIT_PERFMON)))
		row_set(ROW_OBSERVER, WORKS, "BTF, CAP_BPF", "not loaded here");
	else
		row_set(ROW_OBSERVER, SKIPPED, "BTF", "it needs CAP_BPF and CAP_PERFMON, which this user has not");
}
