/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - gpuseg-ask: the commands that are typed most often, without a Java runtime: `--version`, `status` and `set`.
 *
 * The daemon writes the text (AnswerForm.java), so nothing that is shown is written twice. Everything else that the
 * Java command line offers for these commands, mistakes included, ends with NOT_MINE before anything was changed: the
 * launcher then starts Java, which does it or says what is wrong.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpuseg.h"
#include "gpuseg_abi.h"
#include "src/directory.h"

enum { YES = 0, FAILURE = 1, USAGE = 2, NO = 3, NOT_MINE = 125 };
#define NO_DAEMON "no daemon answers in %s; start one with `gpuseg run`, or name its directory with --dir\n"

enum { TIMEOUT_S = 5, REQUEST_BYTES = 4096, TASKS_MAX = 1024 };

struct answer {
	int status; /* 0 or -errno */
	char *text;
};

struct changes {
	const char *priority, *gpu_priority, *weight, *cap, *overrun;
};

__attribute__((noreturn)) static void not_mine(void)
{
	exit(NOT_MINE);
}

__attribute__((noreturn)) static void fail(const char *what)
{
	fprintf(stderr, "gpuseg: %s\n", what);
	exit(FAILURE);
}

/* ---- requests ---- */

struct request {
	char text[REQUEST_BYTES];
	size_t size;
};

static void add(struct request *r, const char *text)
{
	const size_t n = strlen(text);

	if (r->size + n >= sizeof(r->text))
		not_mine();
	memcpy(r->text + r->size, text, n + 1);
	r->size += n;
}

static void add_string(struct request *r, const char *value)
{
	char escaped[8];

	add(r, "\"");
	for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
		if (*c < 0x20 || *c == '"' || *c == '\\')
			snprintf(escaped, sizeof(escaped), "\\u%04x", *c);
		else
			snprintf(escaped, sizeof(escaped), "%c", *c);
		add(r, escaped);
	}
	add(r, "\"");
}

static void add_key(struct request *r, const char *key, const char *value, bool number)
{
	if (!value)
		return;
	add(r, ",\"");
	add(r, key);
	add(r, "\":");
	if (number)
		add(r, value);
	else
		add_string(r, value);
}

static struct request request(const char *command, const char *form)
{
	struct request r = {.size = 0};

	add(&r, "{\"command\":");
	add_string(&r, command);
	add_key(&r, "form", form, false);
	return r;
}

/* ---- the daemon ---- */

/* Whether somebody has said which directory; only then may its daemon be of any user. */
static bool is_named;

static void directory_of(char *buf, size_t size, const char *chosen)
{
	const char *variable = getenv("GPUSEG_DIR");
	const int n = chosen ? snprintf(buf, size, "%s", chosen) : gpuseg_runtime_dir(buf, size);

	if (n < 0 || (size_t)n >= size)
		not_mine();
	is_named = chosen || (variable && *variable);
}

/* -1 if no daemon is there; all other reasons are for Java to explain. */
static int connect_to(const char *directory)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const struct timeval limit = {.tv_sec = TIMEOUT_S};
	const int n = snprintf(to.sun_path, sizeof(to.sun_path), "%s/%s", directory, GPUSEG_SOCKET_NAME);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (n < 0 || (size_t)n >= sizeof(to.sun_path) || fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		not_mine();
	if (!is_named && is_directory(directory) && !is_believed(directory))
		fail("the daemon's directory belongs to another user; remove it, or name one with --dir");
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0) {
		if (!is_named && !is_daemon_of(fd, directory))
			fail("who listens in the daemon's directory is neither root nor this user; name it with --dir "
			     "if "
			     "it is to be trusted");
		return fd;
	}
	if (errno != ENOENT && errno != ECONNREFUSED)
		not_mine();
	close(fd);
	return -1;
}

/* GPUSEG_DIR may be left over from another daemon: Java says so where one is found without it. */
static void explain_variable(const char *directory, const char *chosen)
{
	char other[GPUSEG_PATH_BYTES];
	const int n = runtime_directory(other, sizeof(other), NULL, getenv("XDG_RUNTIME_DIR"), GPUSEG_SOCKET_NAME);

	if (!chosen && is_named && n > 0 && (size_t)n < sizeof(other) && strcmp(other, directory) != 0 &&
	    has_socket(other, GPUSEG_SOCKET_NAME))
		not_mine();
}

static void send_request(int fd, struct request *r)
{
	char packet[sizeof(struct gpuseg_msg_admin) + REQUEST_BYTES];
	struct gpuseg_msg_admin head = {0};

	add(r, "}");
	head.msg.magic = GPUSEG_MSG_MAGIC;
	head.msg.version = GPUSEG_ABI_VERSION;
	head.msg.type = GPUSEG_MSG_ADMIN;
	head.msg.size = (uint32_t)(sizeof(head) + r->size);
	head.msg.seq = 1;
	head.text_size = (uint32_t)r->size;
	memcpy(packet, &head, sizeof(head));
	memcpy(packet + sizeof(head), r->text, r->size);
	if (send(fd, packet, head.msg.size, MSG_NOSIGNAL) != (ssize_t)head.msg.size)
		fail("the daemon closed the connection; see its messages");
}

#define ANSWER_MAX (64u << 20)

static struct answer receive(int fd)
{
	static char packet[GPUSEG_MSG_BYTES_MAX];
	struct gpuseg_msg_admin_reply head;
	struct answer a = {0};
	size_t size = 0;

	do {
		const ssize_t n = recv(fd, packet, sizeof(packet), 0);

		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			fail("the daemon did not answer within 5000 ms; is it stopped or overloaded?");
		if (n < (ssize_t)sizeof(head))
			fail("the daemon closed the connection; see its messages");
		memcpy(&head, packet, sizeof(head));
		if (head.text_size > (size_t)n - sizeof(head))
			fail("the daemon's answer is cut off; is it of another version?");
		if ((head.more == 1 && head.text_size == 0) || size + head.text_size > ANSWER_MAX)
			fail("the daemon's answer is longer than 64 MiB, or has an empty part; it is no answer of "
			     "gpuseg");
		a.text = realloc(a.text, size + head.text_size + 1);
		if (!a.text)
			fail("out of memory");
		memcpy(a.text + size, packet + sizeof(head), head.text_size);
		size += head.text_size;
		a.text[size] = '\0';
		a.status = head.msg.status;
	} while (head.more == 1);
	return a;
}

/* One question per connection, as the Java client. The text is the caller's. */
static struct answer ask(int fd, struct request *r)
{
	struct answer a;

	send_request(fd, r);
	a = receive(fd);
	close(fd);
	return a;
}

static struct answer ask_at(const char *directory, struct request *r)
{
	const int fd = connect_to(directory);

	if (fd < 0)
		fail("the daemon has ended");
	return ask(fd, r);
}

/* Bytes of a character that a terminal shows: not of a control, of a mark of direction or of anything malformed. */
static size_t plain(const unsigned char *c)
{
	const size_t n = c[0] < 0x80		       ? 1
			 : c[0] >= 0xc2 && c[0] < 0xe0 ? 2
			 : c[0] >= 0xe0 && c[0] < 0xf0 ? 3
			 : c[0] >= 0xf0 && c[0] < 0xf5 ? 4
						       : 0;
	unsigned long code = n == 1 ? c[0] : n ? c[0] & (0x7fu >> n) : 0;

	for (size_t i = 1; i < n; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (c[i] & 0x3f);
	}
	if (code < 0x20)
		return code == '\n' || code == '\t' ? n : 0;
	return (code >= 0x7f && code < 0xa0) || code == 0x61c || (code >= 0x200e && code < 0x2010) ||
			       (code >= 0x2028 && code < 0x202f) || (code >= 0x2066 && code < 0x206a)
		       ? 0
		       : n;
}

/* Whoever answers writes no more than text: a directory that was named may have a daemon of anybody. */
static void show(FILE *to, const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c;) {
		const size_t n = plain(c);

		fwrite(n ? (const void *)c : "?", 1, n ? n : 1, to);
		c += n ? n : 1;
	}
}

/* A daemon of another version answers with JSON, which is not for this program to read. */
static bool is_json(const char *text)
{
	return text[0] == '{';
}

/* ---- options ---- */

/* The value of `--name VALUE` or `--name=VALUE` at *i, or NULL if another option stands there. */
static const char *value_of(const char *name, int argc, char **argv, int *i)
{
	const size_t n = strlen(name);

	if (strncmp(argv[*i], name, n) != 0)
		return NULL;
	if (argv[*i][n] == '=')
		return argv[*i] + n + 1;
	if (argv[*i][n] != '\0')
		return NULL;
	if (*i + 1 >= argc)
		not_mine();
	return argv[++*i];
}

static void take(const char **to, const char *value)
{
	if (*to || !*value) /* given twice, or empty: a mistake */
		not_mine();
	*to = value;
}

/* Digits, and not above `most`; anything else is a mistake. */
static void check_number(const char *text, long most)
{
	if (!text)
		return;
	for (const char *c = text; *c; c++)
		if (!isdigit((unsigned char)*c))
			not_mine();
	if (strlen(text) > 6 || atol(text) > most || (text[0] == '0' && text[1]))
		not_mine();
}

/* ---- commands ---- */

static int status(int argc, char **argv)
{
	const char *chosen = NULL;
	char directory[GPUSEG_PATH_BYTES];
	bool json = false;
	struct request r;
	struct answer a;
	int fd;

	for (int i = 2; i < argc; i++) {
		const char *dir = value_of("--dir", argc, argv, &i);

		if (dir)
			take(&chosen, dir);
		else if (strcmp(argv[i], "--json") == 0 && !json)
			json = true;
		else
			not_mine();
	}
	directory_of(directory, sizeof(directory), chosen);
	fd = connect_to(directory);
	if (fd < 0) {
		explain_variable(directory, chosen);
		if (json)
			puts("{\"running\":false}");
		else
			printf("no daemon answers in %s; start one with `gpuseg run`, or name its directory with "
			       "--dir\n",
			       directory);
		return NO;
	}
	r = request("status", json ? NULL : "text");
	a = ask(fd, &r);
	if (a.status != 0 || is_json(a.text) != json)
		not_mine(); /* only a question was asked: Java may ask it again */
	show(stdout, a.text);
	if (json)
		putchar('\n');
	free(a.text);
	return YES;
}

struct task {
	char *id, *pid, *name;
};

/* Splits the lines "id TAB pid TAB name" in place. */
static int read_tasks(char *text, struct task *tasks)
{
	int n = 0;
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line && n < TASKS_MAX; line = strtok_r(NULL, "\n", &rest)) {
		char *pid = strchr(line, '\t');
		char *name = pid ? strchr(pid + 1, '\t') : NULL;

		if (!name)
			not_mine();
		*pid = *name = '\0';
		tasks[n++] = (struct task){line, pid + 1, name + 1};
	}
	return n;
}

/* Moves the tasks with this name, else with this id, else of this pid to the front; returns how many there are. */
static int find(struct task *tasks, int n, const char *called)
{
	for (int key = 0; key < 3; key++) {
		int found = 0;

		for (int i = 0; i < n; i++) {
			const char *is = key == 0 ? tasks[i].name : key == 1 ? tasks[i].id : tasks[i].pid;

			if (strcmp(is, called) == 0)
				tasks[found++] = tasks[i];
		}
		if (found > 0)
			return found;
	}
	return 0;
}

static int refused(const struct answer *a)
{
	fputs("gpuseg: ", stderr);
	show(stderr, a->text);
	return a->status == -EINVAL ? USAGE : FAILURE;
}

static int set_priority(const char *directory, const struct task *t, const struct changes *c)
{
	struct request r = request("set", "text");
	struct answer a;

	add_key(&r, "task", t->id, false);
	add_key(&r, "priority", c->priority, true);
	add_key(&r, "gpu_priority", c->gpu_priority ? c->gpu_priority : "0", true);
	a = ask_at(directory, &r);
	if (a.status != 0)
		return refused(&a);
	show(stdout, a.text);
	free(a.text);
	return YES;
}

static int set_rule(const char *directory, const char *name, const struct changes *c)
{
	struct request r = request("policy", "text");
	struct answer a;
	const char *comma = "";

	add(&r, ",\"settings\":{\"tasks\":[{\"task\":");
	add_string(&r, name);
	add_key(&r, "weight", c->weight, true);
	add_key(&r, "cap", c->cap, false);
	add_key(&r, "overrun", c->overrun, false);
	add(&r, "}]}");
	a = ask_at(directory, &r);
	if (a.status != 0)
		return refused(&a);
	free(a.text);
	printf("task \"%s\"", name);
	if (c->weight)
		printf(" weight %s", c->weight), comma = ",";
	if (c->cap)
		printf("%s cap %s", comma, c->cap), comma = ",";
	if (c->overrun)
		printf("%s overrun %s", comma, c->overrun);
	putchar('\n');
	return YES;
}

static int set(int argc, char **argv)
{
	const struct {
		const char *option;
		size_t offset;
	} options[] = {{"--priority", offsetof(struct changes, priority)},
		       {"--gpu-priority", offsetof(struct changes, gpu_priority)},
		       {"--weight", offsetof(struct changes, weight)},
		       {"--cap", offsetof(struct changes, cap)},
		       {"--overrun", offsetof(struct changes, overrun)}};
	static struct task tasks[TASKS_MAX];
	const char *called = NULL, *chosen = NULL;
	char directory[GPUSEG_PATH_BYTES];
	struct changes c = {0};
	struct request r;
	struct answer a;
	int fd, n, result = YES;

	for (int i = 2; i < argc; i++) {
		const char *value = value_of("--dir", argc, argv, &i);
		const char **to = &chosen;

		for (size_t k = 0; !value && k < sizeof(options) / sizeof(options[0]); k++) {
			value = value_of(options[k].option, argc, argv, &i);
			to = (const char **)((char *)&c + options[k].offset);
		}
		if (value)
			take(to, value);
		else if (argv[i][0] != '-')
			take(&called, argv[i]);
		else
			not_mine();
	}
	if (!called || (!c.priority && (c.gpu_priority || (!c.weight && !c.cap && !c.overrun))))
		not_mine();
	check_number(c.priority, 99);
	check_number(c.gpu_priority, 99);
	check_number(c.weight, 10000);

	directory_of(directory, sizeof(directory), chosen);
	fd = connect_to(directory);
	if (fd < 0) {
		explain_variable(directory, chosen);
		fprintf(stderr,
			"gpuseg: no daemon answers in %s; start one with `gpuseg run`, or name its directory with "
			"--dir\n",
			directory);
		return NO;
	}
	r = request("status", "tasks");
	a = ask(fd, &r);
	if (a.status != 0 || is_json(a.text))
		not_mine();
	n = find(tasks, read_tasks(a.text, tasks), called);
	if (n == 0)
		not_mine(); /* Java says which are open */
	for (int i = 0; c.priority && i < n && result == YES; i++)
		result = set_priority(directory, &tasks[i], &c);
	for (int i = 0; (c.weight || c.cap || c.overrun) && i < n && result == YES; i++) {
		bool before = false;

		for (int k = 0; k < i; k++)
			before |= strcmp(tasks[k].name, tasks[i].name) == 0;
		if (!before)
			result = set_rule(directory, tasks[i].name, &c);
	}
	free(a.text);
	return result;
}

int main(int argc, char **argv)
{
	int result = NOT_MINE;

	if (argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
		printf("gpuseg %s\n", gpuseg_version());
		result = YES;
	} else if (argc >= 2 && strcmp(argv[1], "status") == 0) {
		result = status(argc, argv);
	} else if (argc >= 2 && strcmp(argv[1], "set") == 0) {
		result = set(argc, argv);
	}
	if (fflush(stdout) != 0) {
		perror("gpuseg: the output cannot be written");
		result = result == YES ? FAILURE : result;
	}
	return result;
}
