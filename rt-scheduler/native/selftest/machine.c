/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "selftest.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/base.h"
#include "common/device_file.h"

#define STANDIN_PROC_ENV "GPUSEG_RM_PROC" /* in place of PROC where a stand-in of the driver is preloaded */
#define PROC "/proc/driver/nvidia"
#define BIT_SYS_PTRACE 19
#define BIT_SYS_ADMIN 21
#define BIT_PERFMON 38
#define BIT_BPF 39

static bool read_text(const char *path, char *text, size_t size)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return n >= 0;
}

/* What follows KEY: in a line of its own, without blanks at both ends; "" if there is no such line. */
static void line_of(const char *text, const char *key, char *value, size_t size)
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

/* The first GPU in the order of the PCI bus; its file of information. Returns how many there are. */
static int read_gpus(const char *proc, char *text, size_t size)
{
	char path[PATH_MAX], first[256] = "";
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	text[0] = 0;
	snprintf(path, sizeof(path), "%s/gpus", proc);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		count++;
		if (!first[0] || strcmp(entry->d_name, first) < 0)
			snprintf(first, sizeof(first), "%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	if (count == 0)
		return 0;
	snprintf(path, sizeof(path), "%s/gpus/%s/information", proc, first);
	read_text(path, text, size);
	return count;
}

static void read_version(const char *text, struct machine *m)
{
	const char *at = text;

	/* the first word that begins as a version does */
	while (at && *at) {
		at += strspn(at, " \t\n");
		if (isdigit((unsigned char)*at) && strcspn(at, ".") < strcspn(at, " \t\n"))
			break;
		at += strcspn(at, " \t\n");
	}
	snprintf(m->driver, sizeof(m->driver), "%.*s", at ? (int)strcspn(at, " \t\n") : 0, at ? at : "");
	snprintf(m->flavour, sizeof(m->flavour), strstr(text, "Open Kernel Module") ? "open" : "closed");
}

int machine_read(struct machine *m, char *why, size_t size)
{
	const char *proc = PROC;
	char path[PATH_MAX], text[4096];
	struct utsname name;

	m->standin = gpuseg_standin_owns != NULL;
	m->persistence = -1;
	if (m->standin && getenv(STANDIN_PROC_ENV))
		proc = getenv(STANDIN_PROC_ENV);
	uname(&name);
	/* who builds a kernel may put any name behind its version */
	snprintf(m->kernel, sizeof(m->kernel), "%.*s", (int)strspn(name.release, "0123456789."), name.release);
	snprintf(m->hardware, sizeof(m->hardware), "%.15s", name.machine);
	m->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	m->memory_gib = (int)(((int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) + (INT64_C(1) << 29)) >> 30);
	read_text("/proc/device-tree/model", m->board, sizeof(m->board));
	snprintf(path, sizeof(path), "%s/version", proc);
	if (!read_text(path, text, sizeof(text))) {
		snprintf(why, size, "no NVIDIA driver: %s is missing; load the driver, or see gpuseg doctor", path);
		return -ENODEV;
	}
	read_version(text, m);
	m->gpus = read_gpus(proc, text, sizeof(text));
	if (m->gpus == 0) {
		snprintf(why, size, "no GPU: the driver %s lists none in %s/gpus", m->driver, proc);
		return -ENODEV;
	}
	line_of(text, "Model:", m->model, sizeof(m->model));
	line_of(text, "GPU Firmware:", m->gsp, sizeof(m->gsp));
	return 0;
}

static bool has_capability(int bit)
{
	char text[8192], value[32];

	read_text("/proc/self/status", text, sizeof(text));
	line_of(text, "CapEff:", value, sizeof(value));
	return strtoull(value, NULL, 16) >> bit & 1;
}

void check_rights(void)
{
	char scope[16];
	const bool ptrace = has_capability(BIT_SYS_PTRACE);

	read_text("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
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
