/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_abi - prints Abi.java, the Java view of gpuseg_abi.h, to standard output.
 *
 *   cc -Isegment-api/include segment-api/tools/gen_abi.c -o gen_abi && ./gen_abi segment-api/include/gpuseg_abi.h
 *
 * Offsets and sizes come from the compiler (offsetof, sizeof). The program checks that its lists are complete: the
 * members listed for a structure must fill it without a gap, and every GPUSEG_ constant and every structure in the text
 * of the header must have been printed. Otherwise it says what is missing and exits 1.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpuseg_abi.h"

struct member {
	const char *name;
	size_t offset;
	size_t size;
};

/* clang-format off */
#define M(s, m) {#m, offsetof(struct s, m), sizeof(((struct s *)0)->m)}
/* clang-format on */

static const struct member record_members[] = {
	M(gpuseg_record, kind),	  M(gpuseg_record, flags),     M(gpuseg_record, task_id),    M(gpuseg_record, seq),
	M(gpuseg_record, ticket), M(gpuseg_record, time_ns),   M(gpuseg_record, release_ns), M(gpuseg_record, arg_ns),
	M(gpuseg_record, tid),	  M(gpuseg_record, reserved0), M(gpuseg_record, reserved1)};

static const struct member session_members[] = {
	M(gpuseg_session, magic),	   M(gpuseg_session, version),	     M(gpuseg_session, size),
	M(gpuseg_session, header_size),	   M(gpuseg_session, slot_size),     M(gpuseg_session, slot_count),
	M(gpuseg_session, client_id),	   M(gpuseg_session, daemon_pid),    M(gpuseg_session, incarnation),
	M(gpuseg_session, reserved0),	   M(gpuseg_session, poisoned),	     M(gpuseg_session, roll_generation),
	M(gpuseg_session, prepared_cycle), M(gpuseg_session, reserved1),     M(gpuseg_session, records),
	M(gpuseg_session, rolls),	   M(gpuseg_session, remaps_inline), M(gpuseg_session, bells),
	M(gpuseg_session, drops),	   M(gpuseg_session, reserved2),     M(gpuseg_session, hold)};

static const struct member slot_members[] = {
	M(gpuseg_slot, grant),		M(gpuseg_slot, pregrant),     M(gpuseg_slot, state),
	M(gpuseg_slot, task_id),	M(gpuseg_slot, gpu),	      M(gpuseg_slot, preemptions),
	M(gpuseg_slot, overruns),	M(gpuseg_slot, misses),	      M(gpuseg_slot, expected),
	M(gpuseg_slot, reserved0),	M(gpuseg_slot, reserved1),    M(gpuseg_slot, waiting),
	M(gpuseg_slot, in_flight),	M(gpuseg_slot, ticket),	      M(gpuseg_slot, drained_ns),
	M(gpuseg_slot, kernel_ns),	M(gpuseg_slot, kernel_class), M(gpuseg_slot, kernel_percent),
	M(gpuseg_slot, wants_expected), M(gpuseg_slot, reserved2),    M(gpuseg_slot, reserved3)};

static const struct member status_members[] = {
	M(gpuseg_status, magic),	   M(gpuseg_status, version),	  M(gpuseg_status, daemon_pid),
	M(gpuseg_status, mechanism_level), M(gpuseg_status, incarnation), M(gpuseg_status, daemon_start_ticks),
	M(gpuseg_status, policy),	   M(gpuseg_status, mechanism),	  M(gpuseg_status, heartbeat_ns),
	M(gpuseg_status, sleeping),	   M(gpuseg_status, stopping),	  M(gpuseg_status, holds_launches),
	M(gpuseg_status, reserved)};

static const struct member watchdog_members[] = {M(gpuseg_watchdog, magic),
						 M(gpuseg_watchdog, version),
						 M(gpuseg_watchdog, pid),
						 M(gpuseg_watchdog, period_ms),
						 M(gpuseg_watchdog, heartbeat_ns),
						 M(gpuseg_watchdog, releases),
						 M(gpuseg_watchdog, released_contexts),
						 M(gpuseg_watchdog, last_release_ns),
						 M(gpuseg_watchdog, first_release_ns),
						 M(gpuseg_watchdog, reserved)};

static const struct member held_entry_members[] = {
	M(gpuseg_held_entry, state),	    M(gpuseg_held_entry, mechanism),	   M(gpuseg_held_entry, pid),
	M(gpuseg_held_entry, gpu),	    M(gpuseg_held_entry, pid_start_ticks), M(gpuseg_held_entry, context_id),
	M(gpuseg_held_entry, payload_size), M(gpuseg_held_entry, since_ns),	   M(gpuseg_held_entry, reserved),
	M(gpuseg_held_entry, payload)};

static const struct member held_members[] = {M(gpuseg_held, magic), M(gpuseg_held, version), M(gpuseg_held, entry_size),
					     M(gpuseg_held, entry_count), M(gpuseg_held, reserved)};

static const struct member msg_members[] = {M(gpuseg_msg, magic), M(gpuseg_msg, version), M(gpuseg_msg, type),
					    M(gpuseg_msg, size),  M(gpuseg_msg, seq),	  M(gpuseg_msg, status)};

static const struct member msg_hello_members[] = {M(gpuseg_msg_hello, msg), M(gpuseg_msg_hello, flags),
						  M(gpuseg_msg_hello, reserved), M(gpuseg_msg_hello, name)};

static const struct member msg_hello_reply_members[] = {
	M(gpuseg_msg_hello_reply, msg),		 M(gpuseg_msg_hello_reply, client_id),
	M(gpuseg_msg_hello_reply, session_size), M(gpuseg_msg_hello_reply, incarnation),
	M(gpuseg_msg_hello_reply, queue_dir),	 M(gpuseg_msg_hello_reply, status_path),
	M(gpuseg_msg_hello_reply, text)};

static const struct member msg_task_open_members[] = {
	M(gpuseg_msg_task_open, msg),	      M(gpuseg_msg_task_open, priority),  M(gpuseg_msg_task_open, gpu_priority),
	M(gpuseg_msg_task_open, gpu),	      M(gpuseg_msg_task_open, flags),	  M(gpuseg_msg_task_open, period_ns),
	M(gpuseg_msg_task_open, deadline_ns), M(gpuseg_msg_task_open, budget_ns), M(gpuseg_msg_task_open, overrun),
	M(gpuseg_msg_task_open, partition),   M(gpuseg_msg_task_open, weight),	  M(gpuseg_msg_task_open, window_us),
	M(gpuseg_msg_task_open, name)};

static const struct member msg_task_close_members[] = {M(gpuseg_msg_task_close, msg), M(gpuseg_msg_task_close, task_id),
						       M(gpuseg_msg_task_close, reserved)};

static const struct member msg_task_reply_members[] = {M(gpuseg_msg_task_reply, msg), M(gpuseg_msg_task_reply, task_id),
						       M(gpuseg_msg_task_reply, slot), M(gpuseg_msg_task_reply, text)};

static const struct member msg_queue_file_members[] = {M(gpuseg_msg_queue_file, msg), M(gpuseg_msg_queue_file, cycle)};

static const struct member msg_queue_file_reply_members[] = {M(gpuseg_msg_queue_file_reply, msg),
							     M(gpuseg_msg_queue_file_reply, cycle),
							     M(gpuseg_msg_queue_file_reply, text)};

static const struct member msg_admin_members[] = {M(gpuseg_msg_admin, msg), M(gpuseg_msg_admin, text_size),
						  M(gpuseg_msg_admin, reserved)};

static const struct member msg_admin_reply_members[] = {
	M(gpuseg_msg_admin_reply, msg), M(gpuseg_msg_admin_reply, text_size), M(gpuseg_msg_admin_reply, more)};

static const struct member event_members[] = {
	M(gpuseg_event, seq),	    M(gpuseg_event, time_ns), M(gpuseg_event, kind),   M(gpuseg_event, gpu),
	M(gpuseg_event, flags),	    M(gpuseg_event, task_id), M(gpuseg_event, ticket), M(gpuseg_event, context_id),
	M(gpuseg_event, client_id), M(gpuseg_event, arg0),    M(gpuseg_event, arg1),   M(gpuseg_event, arg2)};

static const struct member sim_msg_members[] = {
	M(gpuseg_sim_msg, magic),    M(gpuseg_sim_msg, version), M(gpuseg_sim_msg, op),	     M(gpuseg_sim_msg, status),
	M(gpuseg_sim_msg, arg),	     M(gpuseg_sim_msg, arg_ns),	 M(gpuseg_sim_msg, time_ns), M(gpuseg_sim_msg, count),
	M(gpuseg_sim_msg, reserved), M(gpuseg_sim_msg, pids)};

static const struct member sim_fence_members[] = {M(gpuseg_sim_fence, completed), M(gpuseg_sim_fence, completed_ns),
						  M(gpuseg_sim_fence, waiting), M(gpuseg_sim_fence, reserved0),
						  M(gpuseg_sim_fence, reserved)};

static const struct member sim_info_members[] = {M(gpuseg_sim_info, magic),
						 M(gpuseg_sim_info, version),
						 M(gpuseg_sim_info, pid),
						 M(gpuseg_sim_info, contexts),
						 M(gpuseg_sim_info, disabled),
						 M(gpuseg_sim_info, reserved0),
						 M(gpuseg_sim_info, timeslice_ns),
						 M(gpuseg_sim_info, switch_cost_ns),
						 M(gpuseg_sim_info, disable_cost_ns),
						 M(gpuseg_sim_info, enable_cost_ns),
						 M(gpuseg_sim_info, kernels_completed),
						 M(gpuseg_sim_info, switches),
						 M(gpuseg_sim_info, preemptions),
						 M(gpuseg_sim_info, operations),
						 M(gpuseg_sim_info, ran_while_disabled),
						 M(gpuseg_sim_info, reserved)};

static const struct member sim_span_members[] = {M(gpuseg_sim_span, start_ns), M(gpuseg_sim_span, end_ns),
						 M(gpuseg_sim_span, pid), M(gpuseg_sim_span, flags),
						 M(gpuseg_sim_span, fence)};

static const struct member sim_operation_members[] = {M(gpuseg_sim_operation, time_ns), M(gpuseg_sim_operation, pid),
						      M(gpuseg_sim_operation, change)};

static const struct member progress_members[] = {M(gpuseg_progress, pid),     M(gpuseg_progress, state),
						 M(gpuseg_progress, begins),  M(gpuseg_progress, answered),
						 M(gpuseg_progress, ends),    M(gpuseg_progress, jobs),
						 M(gpuseg_progress, managed), M(gpuseg_progress, connections),
						 M(gpuseg_progress, kernels), M(gpuseg_progress, last_ns)};

struct structure {
	const char *name; /* as in the header */
	const char *java;
	size_t size;
	const struct member *members;
	size_t count;
};

/* clang-format off */
#define S(s, java) \
	{"gpuseg_" #s, java, sizeof(struct gpuseg_##s), s##_members, sizeof(s##_members) / sizeof(struct member)}
/* clang-format on */

static const struct structure structures[] = {
	S(record, "Record"),
	S(session, "Session"),
	S(slot, "Slot"),
	S(status, "Status"),
	S(watchdog, "Watchdog"),
	S(held_entry, "HeldEntry"),
	S(held, "Held"),
	S(msg, "Msg"),
	S(msg_hello, "MsgHello"),
	S(msg_hello_reply, "MsgHelloReply"),
	S(msg_task_open, "MsgTaskOpen"),
	S(msg_task_close, "MsgTaskClose"),
	S(msg_task_reply, "MsgTaskReply"),
	S(msg_queue_file, "MsgQueueFile"),
	S(msg_queue_file_reply, "MsgQueueFileReply"),
	S(msg_admin, "MsgAdmin"),
	S(msg_admin_reply, "MsgAdminReply"),
	S(event, "Event"),
	S(sim_msg, "SimMsg"),
	S(sim_fence, "SimFence"),
	S(sim_info, "SimInfo"),
	S(sim_span, "SimSpan"),
	S(sim_operation, "SimOperation"),
	S(progress, "Progress"),
};

enum form { FORM_INT, FORM_HEX, FORM_TEXT };

struct constant {
	const char *name; /* NULL: `text` is a comment line */
	enum form form;
	long long value;
	const char *text;
};

/* clang-format off */
#define I(c) {#c, FORM_INT, (long long)(c), NULL}
#define H(c) {#c, FORM_HEX, (long long)(c), NULL}
#define T(c) {#c, FORM_TEXT, 0, c}
#define GROUP(text) {NULL, FORM_INT, 0, text}
/* clang-format on */

static const struct constant constants[] = {
	GROUP("Version, limits, names of files."),
	I(GPUSEG_ABI_MAJOR),
	I(GPUSEG_ABI_MINOR),
	I(GPUSEG_ABI_VERSION),
	I(GPUSEG_CACHE_LINE),
	I(GPUSEG_NAME_BYTES),
	I(GPUSEG_PATH_BYTES),
	I(GPUSEG_TEXT_BYTES),
	I(GPUSEG_ADMISSION_REFUSED),
	I(GPUSEG_PRIORITY_BEST_EFFORT),
	I(GPUSEG_PRIORITY_MAX),
	I(GPUSEG_CLIENTS_MAX),
	I(GPUSEG_SLOTS_MAX),
	I(GPUSEG_GPUS_MAX),
	T(GPUSEG_INSTALLED_DIR),
	T(GPUSEG_SOCKET_NAME),
	T(GPUSEG_STATUS_NAME),
	T(GPUSEG_HELD_NAME),
	T(GPUSEG_WATCHDOG_NAME),
	T(GPUSEG_SIM_SOCKET_NAME),
	T(GPUSEG_SIM_CONTROL_NAME),
	H(GPUSEG_FLAGS_KNOWN),
	H(GPUSEG_SESSION_MAGIC),
	I(GPUSEG_GRANT_SHIFT),
	I(GPUSEG_HOLD_SILENCE_NS),
	I(GPUSEG_SESSION_BYTES),
	H(GPUSEG_STATUS_MAGIC),
	H(GPUSEG_WATCHDOG_MAGIC),
	H(GPUSEG_HELD_MAGIC),
	I(GPUSEG_HELD_MAX),
	I(GPUSEG_HELD_PAYLOAD),
	H(GPUSEG_MSG_MAGIC),
	I(GPUSEG_MSG_BYTES_MAX),
	H(GPUSEG_SIM_MAGIC),
	I(GPUSEG_SIM_BATCH_MAX),
	GROUP("enum gpuseg_record_kind"),
	I(GPUSEG_RECORD_BEGIN),
	I(GPUSEG_RECORD_END),
	I(GPUSEG_RECORD_RELEASE),
	I(GPUSEG_RECORD_HINT),
	I(GPUSEG_RECORD_JOB_END),
	I(GPUSEG_RECORD_ROLL),
	GROUP("enum gpuseg_record_flag"),
	I(GPUSEG_FLAG_OPTIMISTIC),
	I(GPUSEG_FLAG_CANCELLED),
	I(GPUSEG_FLAG_PROCEEDED),
	GROUP("enum gpuseg_poison"),
	I(GPUSEG_POISON_NONE),
	I(GPUSEG_POISON_LENGTH),
	I(GPUSEG_POISON_KIND),
	I(GPUSEG_POISON_TASK),
	I(GPUSEG_POISON_SEQUENCE),
	I(GPUSEG_POISON_TICKET),
	I(GPUSEG_POISON_TIME),
	I(GPUSEG_POISON_TRUNCATED),
	I(GPUSEG_POISON_QUOTA),
	I(GPUSEG_POISON_PROTOCOL),
	GROUP("enum gpuseg_verdict"),
	I(GPUSEG_VERDICT_NONE),
	I(GPUSEG_VERDICT_GRANTED),
	I(GPUSEG_VERDICT_REFUSED),
	I(GPUSEG_VERDICT_POISONED),
	GROUP("enum gpuseg_segment_state"),
	I(GPUSEG_SEGMENT_IDLE),
	I(GPUSEG_SEGMENT_WAITING),
	I(GPUSEG_SEGMENT_RUNNING),
	I(GPUSEG_SEGMENT_PREEMPTED),
	GROUP("enum gpuseg_hold"),
	I(GPUSEG_HOLD_GO),
	I(GPUSEG_HOLD_WAIT),
	GROUP("enum gpuseg_kernel_class"),
	I(GPUSEG_KERNELS_UNKNOWN),
	I(GPUSEG_KERNELS_SMALL),
	I(GPUSEG_KERNELS_FILL),
	I(GPUSEG_KERNELS_LONG),
	GROUP("enum gpuseg_mechanism"),
	I(GPUSEG_MECHANISM_NONE),
	I(GPUSEG_MECHANISM_GATE),
	I(GPUSEG_MECHANISM_SIM),
	I(GPUSEG_MECHANISM_NVIDIA),
	I(GPUSEG_MECHANISM_TEGRA),
	I(GPUSEG_MECHANISM_AMD),
	I(GPUSEG_MECHANISM_LAUNCH),
	GROUP("enum gpuseg_held_state"),
	I(GPUSEG_HELD_FREE),
	I(GPUSEG_HELD_DISABLED),
	I(GPUSEG_HELD_TIMESLICE),
	GROUP("enum gpuseg_msg_type"),
	I(GPUSEG_MSG_HELLO),
	I(GPUSEG_MSG_TASK_OPEN),
	I(GPUSEG_MSG_TASK_CLOSE),
	I(GPUSEG_MSG_ADMIN),
	I(GPUSEG_MSG_QUEUE_FILE),
	I(GPUSEG_QUEUE_METADATA),
	GROUP("enum gpuseg_task_flag"),
	I(GPUSEG_TASK_NO_OPTIMISTIC),
	I(GPUSEG_TASK_BOOST_SHIFT),
	I(GPUSEG_TASK_BOOST_MASK),
	GROUP("enum gpuseg_overrun"),
	I(GPUSEG_OVERRUN_DEFAULT),
	I(GPUSEG_OVERRUN_NOTIFY),
	I(GPUSEG_OVERRUN_DEMOTE),
	I(GPUSEG_OVERRUN_SUSPEND),
	I(GPUSEG_OVERRUN_SKIP_NEXT),
	GROUP("Limits of weights and partitions"),
	I(GPUSEG_WEIGHT_DEFAULT),
	I(GPUSEG_WEIGHT_MAX),
	I(GPUSEG_PARTITION_MAX),
	GROUP("enum gpuseg_event_kind"),
	I(GPUSEG_EVENT_START),
	I(GPUSEG_EVENT_STOP),
	I(GPUSEG_EVENT_CLIENT_OPEN),
	I(GPUSEG_EVENT_CLIENT_CLOSE),
	I(GPUSEG_EVENT_CLIENT_POISON),
	I(GPUSEG_EVENT_TASK_OPEN),
	I(GPUSEG_EVENT_TASK_CLOSE),
	I(GPUSEG_EVENT_RELEASE),
	I(GPUSEG_EVENT_BEGIN),
	I(GPUSEG_EVENT_GRANT),
	I(GPUSEG_EVENT_PREEMPT),
	I(GPUSEG_EVENT_RESUME),
	I(GPUSEG_EVENT_END),
	I(GPUSEG_EVENT_CANCEL),
	I(GPUSEG_EVENT_JOB_END),
	I(GPUSEG_EVENT_MISS),
	I(GPUSEG_EVENT_OVERRUN),
	I(GPUSEG_EVENT_HINT),
	I(GPUSEG_EVENT_DISABLE),
	I(GPUSEG_EVENT_ENABLE),
	I(GPUSEG_EVENT_ENFORCED),
	I(GPUSEG_EVENT_POLICY),
	I(GPUSEG_EVENT_STALL),
	I(GPUSEG_EVENT_WATCHDOG),
	I(GPUSEG_EVENT_MECHANISM_ERROR),
	I(GPUSEG_EVENT_GC),
	I(GPUSEG_EVENT_LOST),
	I(GPUSEG_EVENT_CLOCK),
	I(GPUSEG_EVENT_CONTEXT_OPEN),
	I(GPUSEG_EVENT_CONTEXT_KIND),
	I(GPUSEG_EVENT_CONTEXT_CLOSE),
	I(GPUSEG_EVENT_DECIDED),
	I(GPUSEG_EVENT_PRIORITY),
	I(GPUSEG_EVENT_FORCED_END),
	I(GPUSEG_EVENT_TIMER),
	I(GPUSEG_EVENT_ANTICIPATE),
	I(GPUSEG_EVENT_SHARE),
	GROUP("enum gpuseg_anticipation"),
	I(GPUSEG_ANTICIPATION_ACTED),
	I(GPUSEG_ANTICIPATION_WASTED),
	I(GPUSEG_ANTICIPATION_OVER_BUDGET),
	I(GPUSEG_ANTICIPATION_KEPT_FREE),
	I(GPUSEG_ANTICIPATION_COST),
	I(GPUSEG_ANTICIPATION_DUE),
	GROUP("enum gpuseg_context_kind"),
	I(GPUSEG_CONTEXT_MANAGED),
	I(GPUSEG_CONTEXT_UNMANAGED),
	I(GPUSEG_CONTEXT_PROTECTED),
	GROUP("enum gpuseg_sim_op"),
	I(GPUSEG_SIM_OPEN),
	I(GPUSEG_SIM_SUBMIT),
	I(GPUSEG_SIM_ENABLE),
	I(GPUSEG_SIM_DISABLE),
	I(GPUSEG_SIM_TIMESLICE),
	I(GPUSEG_SIM_INFO),
	GROUP("enum gpuseg_sim_change"),
	I(GPUSEG_SIM_DISABLED),
	I(GPUSEG_SIM_ENABLED),
	I(GPUSEG_SIM_GONE),
	GROUP("enum gpuseg_progress_state"),
	I(GPUSEG_PROGRESS_RESTING),
	I(GPUSEG_PROGRESS_WAITING),
	I(GPUSEG_PROGRESS_HOLDING),
	I(GPUSEG_PROGRESS_KERNEL),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int failures;

static void print_upper(const char *s)
{
	for (; *s; s++)
		putchar(toupper((unsigned char)*s));
}

static void print_constants(void)
{
	for (size_t i = 0; i < COUNT(constants); i++) {
		const struct constant *c = &constants[i];

		if (!c->name) {
			printf("%s    // %s\n", i ? "\n" : "", c->text);
			continue;
		}
		const char *name = c->name + strlen("GPUSEG_");
		if (c->form == FORM_TEXT)
			printf("    public static final String %s = \"%s\";\n", name, c->text);
		else if (c->value < INT32_MIN || c->value > INT32_MAX)
			printf("    public static final long %s = %lldL;\n", name, c->value);
		else if (c->form == FORM_HEX)
			printf("    public static final int %s = 0x%08llx;\n", name, c->value);
		else
			printf("    public static final int %s = %lld;\n", name, c->value);
	}
}

static void print_structure(const struct structure *s)
{
	size_t end = 0;

	printf("\n    /** Offsets of struct {@code %s}. */\n", s->name);
	printf("    public static final class %s {\n", s->java);
	printf("        public static final int SIZE = %zu;\n", s->size);
	for (size_t i = 0; i < s->count; i++) {
		const struct member *m = &s->members[i];

		if (m->offset != end) {
			fprintf(stderr,
				"gen_abi: struct %s: bytes %zu..%zu before %s belong to no listed member; add it\n",
				s->name, end, m->offset, m->name);
			failures++;
		}
		end = m->offset + m->size;
		printf("        public static final int ");
		print_upper(m->name);
		printf("_OFFSET = %zu;\n", m->offset);
		printf("        public static final int ");
		print_upper(m->name);
		printf("_BYTES = %zu;\n", m->size);
	}
	if (end != s->size) {
		fprintf(stderr, "gen_abi: struct %s: bytes %zu..%zu belong to no listed member; add it\n", s->name, end,
			s->size);
		failures++;
	}
	printf("\n        private %s() {\n        }\n    }\n", s->java);
}

static int known_constant(const char *name, size_t length)
{
	static const char *const not_values[] = {"GPUSEG_ABI_H", "GPUSEG_ABI_ASSERT"};

	for (size_t i = 0; i < COUNT(not_values); i++) {
		if (strlen(not_values[i]) == length && !strncmp(not_values[i], name, length))
			return 1;
	}
	for (size_t i = 0; i < COUNT(constants); i++) {
		if (constants[i].name && strlen(constants[i].name) == length &&
		    !strncmp(constants[i].name, name, length))
			return 1;
	}
	return 0;
}

static int known_structure(const char *name, size_t length)
{
	for (size_t i = 0; i < COUNT(structures); i++) {
		if (strlen(structures[i].name) == length && !strncmp(structures[i].name, name, length))
			return 1;
	}
	return 0;
}

static size_t word(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '_')
		n++;
	return n;
}

/* Every GPUSEG_X and every `struct gpuseg_x` outside comments must be known. */
static void check_text(const char *path)
{
	static char text[1 << 18];
	FILE *f = fopen(path, "r");

	if (!f) {
		perror(path);
		exit(1);
	}
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	int whole = feof(f) || n < sizeof(text) - 1;
	fclose(f);
	if (!whole) {
		fprintf(stderr, "gen_abi: %s is longer than %zu bytes; enlarge `text`\n", path, sizeof(text) - 1);
		exit(1);
	}
	text[n] = '\0';
	for (const char *p = text; *p;) {
		if (p[0] == '/' && p[1] == '*') {
			const char *close = strstr(p + 2, "*/");

			p = close ? close + 2 : p + strlen(p);
			continue;
		}
		size_t len = word(p);
		if (!len) {
			p++;
			continue;
		}
		if (!strncmp(p, "GPUSEG_", 7) && !known_constant(p, len)) {
			fprintf(stderr, "gen_abi: constant %.*s of %s is not listed; add it\n", (int)len, p, path);
			failures++;
		}
		if (len == 6 && !strncmp(p, "struct", 6) && p[6] == ' ' && !known_structure(p + 7, word(p + 7))) {
			fprintf(stderr, "gen_abi: struct %.*s of %s is not listed; add it\n", (int)word(p + 7), p + 7,
				path);
			failures++;
		}
		p += len;
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: gen_abi path/to/gpuseg_abi.h > Abi.java\n");
		return 2;
	}
	check_text(argv[1]);
	printf("/* SPDX-License-Identifier: Apache-2.0 */\n"
	       "package dev.gpuseg.ipc;\n\n"
	       "/**\n"
	       " * Constants and byte offsets of {@code gpuseg_abi.h}, where each is explained. Generated by\n"
	       " * {@code segment-api/tools/gen_abi.c}; do not edit, a test compares the two.\n"
	       " */\n"
	       "public final class Abi {\n");
	print_constants();
	for (size_t i = 0; i < COUNT(structures); i++)
		print_structure(&structures[i]);
	printf("\n    private Abi() {\n    }\n}\n");
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "gen_abi: cannot write Abi.java\n");
		return 1;
	}
	return failures ? 1 : 0;
}
