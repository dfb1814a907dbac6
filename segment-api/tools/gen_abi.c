/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_abi - prints Abi.java, the Java view of gpuseg_abi.h, to standard output; see gen_java.h.
 *
 *   cc -Isegment-api/include segment-api/tools/gen_abi.c -o gen_abi && ./gen_abi segment-api/include/gpuseg_abi.h
 */
#include "gen_java.h"

#include "gpuseg_abi.h"

static const struct member record_members[] = {
	M(gpuseg_record, kind),	  M(gpuseg_record, flags),     M(gpuseg_record, task_id),    M(gpuseg_record, seq),
	M(gpuseg_record, ticket), M(gpuseg_record, time_ns),   M(gpuseg_record, release_ns), M(gpuseg_record, arg_ns),
	M(gpuseg_record, tid),	  M(gpuseg_record, reserved0), M(gpuseg_record, sample)};

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
	M(gpuseg_status, nobody_waits),	   M(gpuseg_status, reserved)};

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
						 M(gpuseg_sim_info, busy_ns),
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
	T(GPUSEG_SPACE_NAME),
	T(GPUSEG_PLACE_NAME),
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
	I(GPUSEG_TASK_RESERVE_SHIFT),
	I(GPUSEG_TASK_RESERVE_MASK),
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
	I(GPUSEG_EVENT_BOUND),
	I(GPUSEG_EVENT_JOB_CANCEL),
	GROUP("enum gpuseg_anticipation"),
	I(GPUSEG_ANTICIPATION_ACTED),
	I(GPUSEG_ANTICIPATION_WASTED),
	I(GPUSEG_ANTICIPATION_OVER_BUDGET),
	I(GPUSEG_ANTICIPATION_RESERVED),
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

static const char *const not_in_java[] = {"GPUSEG_ABI_H", "GPUSEG_ABI_ASSERT"};

static const struct java_class abi = {
	.package = "dev.gpuseg.ipc",
	.name = "Abi",
	.comment = " * Constants and byte offsets of {@code gpuseg_abi.h}, where each is explained. Generated by\n"
		   " * {@code segment-api/tools/gen_abi.c}; do not edit, a test compares the two.\n",
	.constants = constants,
	.constant_count = COUNT(constants),
	.structures = structures,
	.structure_count = COUNT(structures),
	.not_in_java = not_in_java,
	.not_in_java_count = COUNT(not_in_java),
};

int main(int argc, char **argv)
{
	return gen_java(&abi, argc, argv);
}
