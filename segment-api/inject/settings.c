/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - what `gpuseg exec` passes on in the environment. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "settings.h"

#define DURATION_MAX_NS (3600 * NS_PER_S)

bool duration_read(const char *text, int64_t *ns)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} units[] = {{"ns", 1}, {"us", NS_PER_US}, {"ms", NS_PER_MS}, {"s", NS_PER_S}};
	unsigned long long number;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || number > (unsigned long long)INT64_MAX)
		return false;
	if (number == 0 && *end == '\0') {
		*ns = 0;
		return true;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) == 0) {
			if ((int64_t)number > DURATION_MAX_NS / units[i].ns)
				return false;
			*ns = (int64_t)number * units[i].ns;
			return true;
		}
	}
	return false;
}

static bool duration_of(const char *variable, int64_t *ns)
{
	const char *text = secure_getenv(variable);

	if (!text || !*text || duration_read(text, ns))
		return true;
	say("%s is \"%s\"; give a time such as 200us, 5ms or 1s, at most an hour; runs unmanaged", variable, text);
	return false;
}

/* Learned for real-time work, unless a budget is given: the daemon must know it with all that is added. */
static bool hold_off_of(struct settings *s)
{
	const char *text = secure_getenv("GPUSEG_EXEC_HOLD_OFF");
	const bool learned = !text || !*text || strcmp(text, "auto") == 0;

	if (!learned && !duration_of("GPUSEG_EXEC_HOLD_OFF", &s->hold_off_ns))
		return false;
	s->hold_off_most_ns = learned && s->priority > 0 && !s->budget_ns ? HOLD_OFF_MOST_NS : s->hold_off_ns;
	return true;
}

/* A wait without a limit is not to be had: 0 would be one for gpuseg_begin(). */
static bool wait_of(int64_t *ns)
{
	if (!duration_of("GPUSEG_EXEC_WAIT", ns))
		return false;
	if (*ns >= WAIT_LEAST_NS)
		return true;
	say("GPUSEG_EXEC_WAIT is %lld ns; give at least 1ms; runs unmanaged", (long long)*ns);
	return false;
}

static bool number_of(const char *variable, uint32_t limit, uint32_t *value)
{
	const char *text = secure_getenv(variable);
	unsigned long number;
	char *end;

	if (!text || !*text)
		return true;
	errno = 0;
	number = strtoul(text, &end, 10);
	if (isdigit((unsigned char)text[0]) && (text[0] != '0' || !text[1]) && *end == '\0' && !errno &&
	    number <= limit) {
		*value = (uint32_t)number;
		return true;
	}
	say("%s is \"%s\"; give a number of 0 to %u; runs unmanaged", variable, text, limit);
	return false;
}

bool touch_read(const char *text, bool *touch)
{
	*touch = strcmp(text, "on") == 0;
	return *touch || strcmp(text, "off") == 0;
}

/* Without a word on it: of real-time programs. It costs nothing as long as no begin is expected. */
static bool touch_of(struct settings *s)
{
	const char *text = secure_getenv("GPUSEG_EXEC_TOUCH");

	s->touch = s->priority > 0;
	if (!text || !*text || touch_read(text, &s->touch))
		return true;
	say("GPUSEG_EXEC_TOUCH is \"%s\"; give on or off; runs unmanaged", text);
	return false;
}

/* `names` ends with NULL; *value becomes the index of the one that the variable has. */
static bool choice_of(const char *variable, const char *const *names, const char *remedy, unsigned int *value)
{
	const char *text = secure_getenv(variable);

	if (!text || !*text)
		return true;
	for (unsigned int i = 0; names[i]; i++) {
		if (strcmp(text, names[i]) == 0) {
			*value = i;
			return true;
		}
	}
	say("%s is \"%s\"; give %s; runs unmanaged", variable, text, remedy);
	return false;
}

static bool choices_of(struct settings *s)
{
	static const char *const modes[] = {
		[SEGMENTS_AUTO] = "auto", [SEGMENTS_GRAPH] = "graph", [SEGMENTS_PROCESS] = "process", NULL};
	static const char *const calls[] = {
		[CALLS_AUTO] = "auto", [CALLS_BY_CUPTI] = "cupti", [CALLS_CHECKED] = "check", NULL};
	unsigned int mode = SEGMENTS_AUTO, by = CALLS_AUTO;

	if (!choice_of("GPUSEG_EXEC_SEGMENTS", modes, "auto, graph or process", &mode) ||
	    !choice_of("GPUSEG_EXEC_CALLS", calls, "auto, cupti or check", &by))
		return false;
	s->mode = (enum segments_mode)mode;
	s->calls = (enum calls_mode)by;
	return true;
}

/* Cut at 63 bytes, but not within a character. */
static void set_name(char to[GPUSEG_NAME_BYTES], const char *prefix, const char *name)
{
	size_t n = (size_t)snprintf(to, GPUSEG_NAME_BYTES, "%s%s", prefix, name);

	if (n < GPUSEG_NAME_BYTES)
		return;
	n = GPUSEG_NAME_BYTES - 1;
	while (n > 0 && ((unsigned char)name[n - strlen(prefix)] & 0xc0) == 0x80)
		n--;
	to[n] = '\0';
}

bool settings_read(struct settings *s)
{
	const char *name = secure_getenv("GPUSEG_EXEC_NAME"), *streams = secure_getenv("GPUSEG_EXEC_STREAMS");
	const char *verbose = secure_getenv("GPUSEG_EXEC_VERBOSE"), *inside = secure_getenv(EXEC_INSIDE_ENV);

	*s = (struct settings){.hold_off_ns = HOLD_OFF_LEAST_NS,
			       .wait_ns = WAIT_DEFAULT_NS,
			       .slice_ns = SLICE_BY_MECHANISM,
			       .in_flight_ns = FLIGHT_DEFAULT_NS};
	/* A task without a name of its own shows in status, top and traces that it is automatic. */
	if (name && *name)
		set_name(s->name, "", name);
	else
		set_name(s->name, "exec:", program_invocation_short_name);
	s->cuda_priorities = streams && strcmp(streams, "priority") == 0;
	s->verbose = verbose && strcmp(verbose, "1") == 0;
	if (!duration_of("GPUSEG_EXEC_IN_FLIGHT", &s->in_flight_ns))
		return false;
	s->bound_ns = s->in_flight_ns;
	if (s->cuda_priorities)
		s->flight_ns = s->in_flight_ns;
	s->waits = inside && strcmp(inside, EXEC_LONG) == 0;
	return number_of("GPUSEG_EXEC_PRIORITY", GPUSEG_PRIORITY_MAX, &s->priority) &&
	       number_of("GPUSEG_EXEC_RESERVE", RESERVE_MAX, &s->reserve) &&
	       number_of("GPUSEG_EXEC_WEIGHT", GPUSEG_WEIGHT_MAX, &s->weight) &&
	       duration_of("GPUSEG_EXEC_PERIOD", &s->period_ns) &&
	       duration_of("GPUSEG_EXEC_DEADLINE", &s->deadline_ns) &&
	       duration_of("GPUSEG_EXEC_BUDGET", &s->budget_ns) && hold_off_of(s) && wait_of(&s->wait_ns) &&
	       duration_of("GPUSEG_EXEC_SLICE", &s->slice_ns) && choices_of(s) && touch_of(s);
}
