/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - messages, explanations of results, version, runtime directory. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "directory.h"
#include "internal.h"

_Static_assert(GPUSEG_EADMISSION == GPUSEG_ADMISSION_REFUSED, "the header for programs names the daemon's code");

/* The latest failure of this thread. If `segment` is not 0, its text is formatted when it is read. */
static __thread struct {
	const struct gpuseg_client *client;
	int segment; /* result of fail_segment() whose text is not formatted yet */
	uint32_t task_id;
	uint64_t ticket;
	char text[GPUSEG_TEXT_BYTES + 64];
} last_message;

int fail_with(const struct gpuseg_client *client, int result, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(last_message.text, sizeof(last_message.text), format, ap);
	va_end(ap);
	last_message.segment = 0;
	last_message.client = client ? client->root : NULL; /* the one that the application knows */
	return result;
}

int fail_segment(const struct gpuseg_client *client, int result, uint64_t ticket, uint32_t task_id)
{
	last_message.segment = result;
	last_message.task_id = task_id;
	last_message.ticket = ticket;
	last_message.client = client->root;
	return result;
}

const char *gpuseg_last_message(const gpuseg_client *client)
{
	/* handles of one client have their messages in common */
	if (last_message.client != client && (!client || last_message.client != client->root))
		return "";
	if (last_message.segment) {
		snprintf(last_message.text, sizeof(last_message.text), "segment %llu of task %u: %s",
			 (unsigned long long)last_message.ticket, last_message.task_id,
			 gpuseg_strerror(last_message.segment));
		last_message.segment = 0;
	}
	return last_message.text;
}

const char *poison_text(uint32_t code)
{
	switch (code) {
	case GPUSEG_POISON_LENGTH:
		return "a document of wrong length or a forged header in its queue";
	case GPUSEG_POISON_KIND:
		return "a record of unknown kind or flags";
	case GPUSEG_POISON_TASK:
		return "a record for a task it does not own";
	case GPUSEG_POISON_SEQUENCE:
		return "a gap or a step back in its record numbers";
	case GPUSEG_POISON_TICKET:
		return "a begin of an old ticket or an end of one never begun";
	case GPUSEG_POISON_TIME:
		return "a time that is negative or more than 10 s ahead";
	case GPUSEG_POISON_TRUNCATED:
		return "a shared file that shrank or vanished";
	case GPUSEG_POISON_QUOTA:
		return "a queue filled faster than its quota allows";
	case GPUSEG_POISON_PROTOCOL:
		return "an invalid message on the registration socket";
	default:
		return "an unknown reason";
	}
}

const char *gpuseg_strerror(int result)
{
	int code = result < 0 ? -result : result;

	switch (code) {
	case 0:
		return "success";
	case ENOTCONN:
		return "no daemon: start `gpuseg run`, or allow unmanaged operation with GPUSEG_UNMANAGED=1";
	case EPROTO:
		return "the daemon dropped this client or sent an invalid answer: see gpuseg_last_message()";
	case EPROTONOSUPPORT:
		return "daemon, queue and library are of different versions: install one release of both";
	case EALREADY:
		return "a segment of this task is already begun: call gpuseg_end() first";
	case EBUSY:
		return "the daemon held the queue for too long, nothing was recorded: try again";
	case ENOSPC:
		return "no space: the client's queue quota is used up or the runtime directory's file system is full";
	case EAGAIN:
		return "not granted at once, the segment was withdrawn";
	case ETIMEDOUT:
		return "not granted or not answered in time, the segment was withdrawn";
	case ECANCELED:
		return "the daemon refused this segment";
	case EOWNERDEAD:
		return "the handle belongs to the parent process: connect again after fork()";
	case EBADMSG:
		return "the queue file is damaged: connect again";
	case E2BIG:
		return "an attribute this library version does not know is set: upgrade the library";
	case EINVAL:
		return "an argument is out of range or the call does not fit the task's state: see "
		       "gpuseg_last_message()";
	case GPUSEG_EADMISSION:
		return "admission refused the task, its deadline or that of another task could be missed: see "
		       "gpuseg_last_message() and `gpuseg analyze`";
	case ENOTSUP:
		return "launches of this process are not followed: start it by `gpuseg exec`";
	case EACCES:
		return "permission denied: gpuseg_last_message() names the command that helps";
	default:
		return strerror(code);
	}
}

const char *gpuseg_version(void)
{
	return VERSION_TEXT;
}

uint32_t gpuseg_abi_version(void)
{
	return GPUSEG_ABI_VERSION;
}

int64_t gpuseg_now_ns(void)
{
	return now_ns();
}

int gpuseg_runtime_dir(char *buf, size_t size)
{
	int n;

	if (!buf)
		return -EINVAL;
	n = runtime_directory(buf, size, secure_getenv("GPUSEG_DIR"), secure_getenv("XDG_RUNTIME_DIR"),
			      GPUSEG_SOCKET_NAME);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : n;
}

int copy_attr(void *to, size_t known_size, size_t smallest, const void *from)
{
	size_t size = *(const size_t *)from;
	const uint8_t *p = from;

	if (size < smallest || size > 4096)
		return fail_with(NULL, -EINVAL, "attribute size is %zu; initialise the structure with its _INIT macro",
				 size);
	for (size_t i = known_size; i < size; i++)
		if (p[i])
			return fail_with(NULL, -E2BIG,
					 "attribute byte %zu is set but libgpuseg %s knows %zu; upgrade the library", i,
					 VERSION_TEXT, known_size);
	memset(to, 0, known_size);
	memcpy(to, from, size < known_size ? size : known_size);
	*(size_t *)to = known_size;
	return 0;
}

/* The next character, or -1 where the bytes are no UTF-8: cut short, longer than needed, or half of a pair. */
static long next_character(const unsigned char **at)
{
	static const long least[] = {0, 0x80, 0x800, 0x10000};
	const unsigned char *c = *at;
	const int more = *c < 0x80 ? 0 : *c >> 5 == 6 ? 1 : *c >> 4 == 14 ? 2 : *c >> 3 == 30 ? 3 : -1;
	long value;

	if (more < 0)
		return -1;
	value = more ? *c & (0x3f >> more) : *c;
	for (int i = 0; i < more; i++) {
		if ((*++c & 0xc0) != 0x80)
			return -1;
		value = value << 6 | (*c & 0x3f);
	}
	*at = c + 1;
	return value < least[more] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff) ? -1 : value;
}

bool plain_name(const char *text)
{
	/* What a terminal would obey: controls, marks of direction and format, line ends; and private characters. */
	static const long refused[][2] = {
		{0, 0x1f},	    {0x7f, 0x9f},	{0xad, 0xad},	     {0x600, 0x605},   {0x61c, 0x61c},
		{0x6dd, 0x6dd},	    {0x70f, 0x70f},	{0x180e, 0x180e},    {0x200b, 0x200f}, {0x2028, 0x202e},
		{0x2060, 0x206f},   {0xe000, 0xf8ff},	{0xfeff, 0xfeff},    {0xfff9, 0xfffb}, {0xfffe, 0xffff},
		{0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff},
	};
	const unsigned char *at = (const unsigned char *)text;
	bool blank = true;

	while (*at) {
		const long character = next_character(&at);

		if (character < 0)
			return false;
		for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
			if (character >= refused[i][0] && character <= refused[i][1])
				return false;
		}
		blank = blank && character == ' ';
	}
	return !blank;
}
