/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_layouts - prints Layouts.java to standard output: every layout that the mechanisms share with C, besides
 * gpuseg_abi.h. See gen_java.h, and `make layouts`.
 */
#include "tools/gen_java.h"

#include "observer/observer_abi.h"
#include "preload/gpuseg_kfd_agent.h"
#include "preload/gpuseg_rm_report.h"
#include "rm/gpuseg_rm.h"
#include "amd/gpuseg_amd.h"
#include "gpuseg_kfd.h"
#include "tegra/gpuseg_tegra.h"

static const struct member observer_record_members[] = {
	M(gpuseg_observer_record, kind),     M(gpuseg_observer_record, pid),	  M(gpuseg_observer_record, time_ns),
	M(gpuseg_observer_record, start_ns), M(gpuseg_observer_record, cgroup),	  M(gpuseg_observer_record, fd),
	M(gpuseg_observer_record, owner),    M(gpuseg_observer_record, client),	  M(gpuseg_observer_record, parent),
	M(gpuseg_observer_record, handle),   M(gpuseg_observer_record, class_id), M(gpuseg_observer_record, engine),
	M(gpuseg_observer_record, passed_ns)};

static const struct member observer_group_record_members[] = {
	M(gpuseg_observer_group_record, kind),	     M(gpuseg_observer_group_record, processes),
	M(gpuseg_observer_group_record, context_ns), M(gpuseg_observer_group_record, cgroup),
	M(gpuseg_observer_group_record, ioctls),     M(gpuseg_observer_group_record, ioctl_ns),
	M(gpuseg_observer_group_record, opens),	     M(gpuseg_observer_group_record, contexts),
	M(gpuseg_observer_group_record, lifetime_ns)};

static const struct member kfd_agent_slot_members[] = {
	M(gpuseg_kfd_agent_slot, owner),    M(gpuseg_kfd_agent_slot, gpu_id),	 M(gpuseg_kfd_agent_slot, owner_ticks),
	M(gpuseg_kfd_agent_slot, flags),    M(gpuseg_kfd_agent_slot, period_ms), M(gpuseg_kfd_agent_slot, order),
	M(gpuseg_kfd_agent_slot, beat),	    M(gpuseg_kfd_agent_slot, reserved),	 M(gpuseg_kfd_agent_slot, result),
	M(gpuseg_kfd_agent_slot, queue),    M(gpuseg_kfd_agent_slot, held),	 M(gpuseg_kfd_agent_slot, lapses),
	M(gpuseg_kfd_agent_slot, answered), M(gpuseg_kfd_agent_slot, reserved2)};

static const struct member kfd_agent_members[] = {M(gpuseg_kfd_agent, magic),	  M(gpuseg_kfd_agent, version),
						  M(gpuseg_kfd_agent, pid),	  M(gpuseg_kfd_agent, flags),
						  M(gpuseg_kfd_agent, known),	  M(gpuseg_kfd_agent, missed),
						  M(gpuseg_kfd_agent, reserved),  M(gpuseg_kfd_agent, doorbell),
						  M(gpuseg_kfd_agent, reserved2), M(gpuseg_kfd_agent, slots)};

static const struct member rm_report_entry_members[] = {
	M(gpuseg_rm_report_entry, kind),   M(gpuseg_rm_report_entry, fd),      M(gpuseg_rm_report_entry, client),
	M(gpuseg_rm_report_entry, parent), M(gpuseg_rm_report_entry, handle),  M(gpuseg_rm_report_entry, class_id),
	M(gpuseg_rm_report_entry, engine), M(gpuseg_rm_report_entry, reserved)};

static const struct member rm_report_members[] = {M(gpuseg_rm_report, magic),  M(gpuseg_rm_report, version),
						  M(gpuseg_rm_report, pid),    M(gpuseg_rm_report, count),
						  M(gpuseg_rm_report, lost),   M(gpuseg_rm_report, reserved),
						  M(gpuseg_rm_report, entries)};

static const struct member rm_control_members[] = {M(gpuseg_rm_control, client),  M(gpuseg_rm_control, object),
						   M(gpuseg_rm_control, command), M(gpuseg_rm_control, flags),
						   M(gpuseg_rm_control, params),  M(gpuseg_rm_control, params_size),
						   M(gpuseg_rm_control, status)};

static const struct member rm_disable_channels_members[] = {M(gpuseg_rm_disable_channels, disable),
							    M(gpuseg_rm_disable_channels, pad0),
							    M(gpuseg_rm_disable_channels, count),
							    M(gpuseg_rm_disable_channels, only_disable_scheduling),
							    M(gpuseg_rm_disable_channels, rewind_gp_put),
							    M(gpuseg_rm_disable_channels, pad1),
							    M(gpuseg_rm_disable_channels, runlist_preempt_event),
							    M(gpuseg_rm_disable_channels, client),
							    M(gpuseg_rm_disable_channels, channel)};

static const struct member rm_handle_info_members[] = {M(gpuseg_rm_handle_info, object),
						       M(gpuseg_rm_handle_info, index), M(gpuseg_rm_handle_info, data)};

static const struct member rm_held_channel_members[] = {M(gpuseg_rm_held_channel, client),
							M(gpuseg_rm_held_channel, channel)};

static const struct member rm_held_members[] = {M(gpuseg_rm_held, version), M(gpuseg_rm_held, fd),
						M(gpuseg_rm_held, client),  M(gpuseg_rm_held, subdevice),
						M(gpuseg_rm_held, count),   M(gpuseg_rm_held, reserved),
						M(gpuseg_rm_held, channels)};

static const struct member rm_own_timeslice_members[] = {
	M(gpuseg_rm_own_timeslice, fd), M(gpuseg_rm_own_timeslice, client), M(gpuseg_rm_own_timeslice, tsg),
	M(gpuseg_rm_own_timeslice, own_us)};

static const struct member rm_timeslices_members[] = {M(gpuseg_rm_timeslices, version), M(gpuseg_rm_timeslices, count),
						      M(gpuseg_rm_timeslices, reserved), M(gpuseg_rm_timeslices, tsgs)};

static const struct member amd_held_members[] = {M(gpuseg_amd_held, version), M(gpuseg_amd_held, interface),
						 M(gpuseg_amd_held, daemon), M(gpuseg_amd_held, fd),
						 M(gpuseg_amd_held, daemon_start_ticks)};

static const struct member kfd_info_members[] = {M(gpuseg_kfd_info, abi),     M(gpuseg_kfd_info, n_gpus),
						 M(gpuseg_kfd_info, n_holds), M(gpuseg_kfd_info, watchdog_ms),
						 M(gpuseg_kfd_info, lapses),  M(gpuseg_kfd_info, reserved)};

static const struct member kfd_gpu_members[] = {
	M(gpuseg_kfd_gpu, index),      M(gpuseg_kfd_gpu, gpu_id),   M(gpuseg_kfd_gpu, mode),
	M(gpuseg_kfd_gpu, preemption), M(gpuseg_kfd_gpu, reason),   M(gpuseg_kfd_gpu, gfx_version),
	M(gpuseg_kfd_gpu, n_queues),   M(gpuseg_kfd_gpu, n_held),   M(gpuseg_kfd_gpu, unloads),
	M(gpuseg_kfd_gpu, loads),      M(gpuseg_kfd_gpu, failures), M(gpuseg_kfd_gpu, remaps),
	M(gpuseg_kfd_gpu, last_ns),    M(gpuseg_kfd_gpu, max_ns)};

static const struct member kfd_entry_members[] = {
	M(gpuseg_kfd_entry, pid),    M(gpuseg_kfd_entry, op),	    M(gpuseg_kfd_entry, start_ticks),
	M(gpuseg_kfd_entry, gpu_id), M(gpuseg_kfd_entry, queue_id), M(gpuseg_kfd_entry, flags),
	M(gpuseg_kfd_entry, result), M(gpuseg_kfd_entry, n_queues), M(gpuseg_kfd_entry, n_held)};

static const struct member kfd_apply_members[] = {M(gpuseg_kfd_apply, entries),	 M(gpuseg_kfd_apply, n_entries),
						  M(gpuseg_kfd_apply, flags),	 M(gpuseg_kfd_apply, n_failed),
						  M(gpuseg_kfd_apply, reserved), M(gpuseg_kfd_apply, took_ns)};

static const struct member kfd_watchdog_members[] = {M(gpuseg_kfd_watchdog, period_ms), M(gpuseg_kfd_watchdog, lapses)};

static const struct member tegra_timeslice_members[] = {M(gpuseg_tegra_timeslice, timeslice_us),
							M(gpuseg_tegra_timeslice, reserved)};

static const struct member tegra_get_tsgs_members[] = {M(gpuseg_tegra_get_tsgs, size), M(gpuseg_tegra_get_tsgs, pad),
						       M(gpuseg_tegra_get_tsgs, buffer)};

static const struct member tegra_params_members[] = {M(gpuseg_tegra_params, tsgid),
						     M(gpuseg_tegra_params, timeslice),
						     M(gpuseg_tegra_params, interleave),
						     M(gpuseg_tegra_params, graphics_preempt),
						     M(gpuseg_tegra_params, compute_preempt),
						     M(gpuseg_tegra_params, pad),
						     M(gpuseg_tegra_params, pid)};

static const struct member tegra_held_members[] = {M(gpuseg_tegra_held, version), M(gpuseg_tegra_held, count),
						   M(gpuseg_tegra_held, fds)};

static const struct structure structures[] = {
	S(observer_record, "ObserverRecord"),
	S(observer_group_record, "ObserverGroupRecord"),
	S(kfd_agent_slot, "KfdAgentSlot"),
	S(kfd_agent, "KfdAgent"),
	S(rm_report_entry, "RmReportEntry"),
	S(rm_report, "RmReport"),
	S(rm_control, "RmControl"),
	S(rm_disable_channels, "RmDisableChannels"),
	S(rm_handle_info, "RmHandleInfo"),
	S(rm_held_channel, "RmHeldChannel"),
	S(rm_held, "RmHeld"),
	S(rm_own_timeslice, "RmOwnTimeslice"),
	S(rm_timeslices, "RmTimeslices"),
	S(amd_held, "AmdHeld"),
	S(kfd_info, "KfdInfo"),
	S(kfd_gpu, "KfdGpu"),
	S(kfd_entry, "KfdEntry"),
	S(kfd_apply, "KfdApply"),
	S(kfd_watchdog, "KfdWatchdog"),
	S(tegra_timeslice, "TegraTimeslice"),
	S(tegra_get_tsgs, "TegraGetTsgs"),
	S(tegra_params, "TegraParams"),
	S(tegra_held, "TegraHeld"),
};

static const struct constant constants[] = {
	GROUP("observer/observer_abi.h"),
	I(GPUSEG_OBSERVER_VERSION),
	I(GPUSEG_OBSERVER_HELLO),
	I(GPUSEG_OBSERVER_OPEN),
	I(GPUSEG_OBSERVER_CLOSE),
	I(GPUSEG_OBSERVER_ALLOC),
	I(GPUSEG_OBSERVER_FREE),
	I(GPUSEG_OBSERVER_EXIT),
	I(GPUSEG_OBSERVER_EXEC),
	I(GPUSEG_OBSERVER_UNSEEN),
	I(GPUSEG_OBSERVER_LOST),
	I(GPUSEG_OBSERVER_WORK),
	I(GPUSEG_OBSERVER_GROUP),
	I(GPUSEG_OBSERVER_SCHEDULED),
	I(GPUSEG_OBSERVER_SCHEDULES),
	I(GPUSEG_OBSERVER_GROUP_GONE),
	I(GPUSEG_OBSERVER_TIMESLICE),
	I(GPUSEG_OBSERVER_NVIDIA),
	I(GPUSEG_OBSERVER_KFD),
	I(GPUSEG_OBSERVER_NVGPU),
	I(GPUSEG_OBSERVER_GROUPS_MAX),
	GROUP("preload/gpuseg_kfd_agent.h"),
	H(GPUSEG_KFD_AGENT_MAGIC),
	I(GPUSEG_KFD_AGENT_VERSION),
	T(GPUSEG_KFD_AGENT_NAME),
	I(GPUSEG_KFD_AGENT_SLOTS),
	I(GPUSEG_KFD_AGENT_BYTES),
	I(GPUSEG_KFD_AGENT_HOLD),
	I(GPUSEG_KFD_AGENT_PERIOD_MIN_MS),
	I(GPUSEG_KFD_AGENT_PERIOD_MAX_MS),
	I(GPUSEG_KFD_AGENT_REAL_TIME),
	I(GPUSEG_KFD_AGENT_ALL_QUEUES),
	GROUP("preload/gpuseg_rm_report.h"),
	H(GPUSEG_RM_REPORT_MAGIC),
	I(GPUSEG_RM_REPORT_VERSION),
	T(GPUSEG_RM_REPORT_NAME),
	I(GPUSEG_RM_REPORT_ENTRIES),
	I(GPUSEG_RM_REPORT_ALLOC),
	I(GPUSEG_RM_REPORT_FREE),
	GROUP("rm/gpuseg_rm.h"),
	H(GPUSEG_RM_IOCTL_CONTROL),
	H(GPUSEG_RM_CLASS_CLIENT),
	H(GPUSEG_RM_CLASS_SUBDEVICE),
	H(GPUSEG_RM_CLASS_TSG),
	I(GPUSEG_RM_ENGINE_GR0),
	I(GPUSEG_RM_BATCH_MAX),
	I(GPUSEG_RM_CHANNELS_MAX),
	H(GPUSEG_RM_INVALID_CHANNEL),
	H(GPUSEG_RM_INVALID_CLIENT),
	H(GPUSEG_RM_INVALID_OBJECT_HANDLE),
	H(GPUSEG_RM_OBJECT_NOT_FOUND),
	W(GPUSEG_RM_GET_HANDLE_INFO),
	W(GPUSEG_RM_GPU_GET_ID),
	W(GPUSEG_RM_FIFO_DISABLE_CHANNELS),
	W(GPUSEG_RM_SET_TIMESLICE),
	W(GPUSEG_RM_GET_TIMESLICE),
	W(GPUSEG_RM_GET_INFO),
	I(GPUSEG_RM_HELD_VERSION),
	I(GPUSEG_RM_TIMESLICES_VERSION),
	I(GPUSEG_RM_TIMESLICES_MAX),
	GROUP("amd/gpuseg_amd.h"),
	T(GPUSEG_AMD_KFD_DEVICE),
	T(GPUSEG_AMD_HOLD_DEVICE),
	I(GPUSEG_AMD_KFD),
	I(GPUSEG_AMD_AGENT),
	I(GPUSEG_AMD_HELD_VERSION),
	GROUP("gpuseg_kfd.h"),
	I(GPUSEG_KFD_ABI),
	I(GPUSEG_KFD_MAX_BATCH),
	I(GPUSEG_KFD_MAX_HOLDS),
	I(GPUSEG_KFD_WATCHDOG_MIN_MS),
	I(GPUSEG_KFD_WATCHDOG_DEFAULT_MS),
	I(GPUSEG_KFD_WATCHDOG_MAX_MS),
	I(GPUSEG_KFD_ALL_GPUS),
	W(GPUSEG_KFD_ALL_QUEUES),
	I(GPUSEG_KFD_NO_HWS),
	I(GPUSEG_KFD_HWS),
	I(GPUSEG_KFD_MES),
	I(GPUSEG_KFD_PREEMPT_NONE),
	I(GPUSEG_KFD_PREEMPT_DRAIN),
	I(GPUSEG_KFD_PREEMPT_SAVE),
	I(GPUSEG_KFD_OK),
	I(GPUSEG_KFD_NO_HWS_ON_MES_GPU),
	I(GPUSEG_KFD_HOLD),
	I(GPUSEG_KFD_RELEASE),
	I(GPUSEG_KFD_RELEASE_PROCESS),
	I(GPUSEG_KFD_COMPUTE_ONLY),
	H(GPUSEG_KFD_IOC_INFO),
	H(GPUSEG_KFD_IOC_GPU),
	H(GPUSEG_KFD_IOC_APPLY),
	H(GPUSEG_KFD_IOC_WATCHDOG),
	H(GPUSEG_KFD_IOC_KICK),
	GROUP("tegra/gpuseg_tegra.h"),
	T(GPUSEG_TEGRA_TSG_DEVICE),
	T(GPUSEG_TEGRA_SCHED_DEVICE),
	H(GPUSEG_TEGRA_ENABLE),
	H(GPUSEG_TEGRA_DISABLE),
	H(GPUSEG_TEGRA_PREEMPT),
	H(GPUSEG_TEGRA_SET_TIMESLICE),
	H(GPUSEG_TEGRA_GET_TIMESLICE),
	H(GPUSEG_TEGRA_GET_TSGS),
	H(GPUSEG_TEGRA_GET_PARAMS),
	I(GPUSEG_TEGRA_HELD_VERSION),
	I(GPUSEG_TEGRA_TSGS_MAX),
};

static const char *const not_in_java[] = {
	"GPUSEG_OBSERVER_ABI_H",
	"gpuseg_observer_device",
	"gpuseg_observer_group",
	"GPUSEG_KFD_AGENT_H",
	"GPUSEG_RM_REPORT_H",
	"GPUSEG_RM_H",
	"GPUSEG_RM_ESC_FREE",
	"GPUSEG_RM_ESC_CONTROL",
	"GPUSEG_RM_ESC_ALLOC",
	"GPUSEG_RM_CLASS_DEVICE",
	"GPUSEG_RM_TSGS_MAX",
	"GPUSEG_RM_DEVICES_MAX",
	"GPUSEG_RM_IS_CHANNEL",
	"GPUSEG_RM_IS_GRAPHICS_OBJECT",
	"GPUSEG_RM_GPFIFO_SCHEDULE",
	"GPUSEG_RM_PREEMPT",
	"gpuseg_rm_channel",
	"gpuseg_rm_tsg",
	"gpuseg_rm_device",
	"gpuseg_rm_process",
	"GPUSEG_AMD_H",
	"GPUSEG_KFD_H",
	"GPUSEG_KFD_MAX_QUERY",
	"GPUSEG_KFD_QUEUE_ACTIVE",
	"GPUSEG_KFD_QUEUE_HELD",
	"GPUSEG_KFD_QUEUE_EVICTED",
	"GPUSEG_KFD_QUEUE_STUCK",
	"GPUSEG_KFD_QUEUE_SDMA",
	"GPUSEG_KFD_IOC_QUERY",
	"gpuseg_kfd_queue",
	"gpuseg_kfd_query",
	"GPUSEG_TEGRA_H",
};

static const struct java_class layouts = {
	.package = "dev.gpuseg.mechanisms",
	.name = "Layouts",
	.comment = " * Constants and byte offsets of the headers named below, where each is explained: what the "
		   "mechanisms\n"
		   " * exchange with drivers, the preload library, the observer and the watchdog. Generated by\n"
		   " * {@code rt-scheduler/native/tools/gen_layouts.c}; do not edit, a test compares the two.\n",
	.constants = constants,
	.constant_count = COUNT(constants),
	.structures = structures,
	.structure_count = COUNT(structures),
	.not_in_java = not_in_java,
	.not_in_java_count = COUNT(not_in_java),
};

int main(int argc, char **argv)
{
	return gen_java(&layouts, argc, argv);
}
