// SPDX-License-Identifier: GPL-2.0-only
//
// Hooks for GPU segments in nvgpu. Each rule names one place and what goes there; a file without the place is left
// alone. `apply` runs it over the files below and counts what it found.

// common/fifo/channel.c, common/fifo/runlist.c, ...: the driver's own additions to and removals from the runlist
@update@
expression gpu, list, channel, add, wait;
@@
- gpu->ops.runlist.update(gpu, list, channel, add, wait)
+ gpuseg_nvgpu_runlist_update(gpu, list, channel, add, wait)

// os/linux/ioctl_ctrl.c: the ioctl, once the driver has looked at type, number and size, before it copies the argument
@control@
identifier file, number, argument;
type A, B, C;
symbol buf;
@@
gk20a_ctrl_dev_ioctl(A file, B number, C argument)
{
	<...
+	if (number == GPUSEG_NVGPU_IOCTL_SEGMENT)
+		return gpuseg_nvgpu_ioctl(((struct gk20a_ctrl_priv *)file->private_data)->g, file->private_data,
+					  argument);
	memset(buf, 0, ...);
	...>
}

// os/linux/ioctl_ctrl.c: a segment ends with its file
@closed@
identifier inode, file, private;
expression gpu;
type A, B;
@@
gk20a_ctrl_dev_release(A inode, B file)
{
	struct gk20a_ctrl_priv *private = file->private_data;
	<...
+	gpuseg_nvgpu_session_closed(gpu, private);
	gk20a_put(gpu);
	...>
}

// common/fifo/tsg.c: a TSG that is opened while another process's segment has the GPU starts held
@opened@
identifier gpu;
local idexpression struct nvgpu_tsg *tsg;
type A;
@@
nvgpu_tsg_open(A gpu, ...)
{
	<...
+	gpuseg_nvgpu_tsg_opened(gpu, tsg);
	return tsg;
	...>
}

@released@
identifier tsg, gpu;
type A, B;
@@
nvgpu_tsg_release_common(A gpu, B tsg)
{
+	gpuseg_nvgpu_tsg_closed(gpu, tsg);
	...
}

// common/fifo/fifo.c: once the FIFO knows how many channels it has, and before it is removed
@set_up@
identifier gpu;
type A;
@@
nvgpu_fifo_setup_sw(A gpu)
{
	<...
+	if (gpuseg_nvgpu_init(gpu))
+		nvgpu_err(gpu, "no memory for GPU segments; the driver works as without them");
	return 0;
	...>
}

@torn_down@
identifier gpu;
type A;
@@
nvgpu_fifo_cleanup_sw(A gpu)
{
+	gpuseg_nvgpu_exit(gpu);
	...
}

@header depends on update || control || closed || opened || released || set_up || torn_down@
@@
  #include <nvgpu/gk20a.h>
+ #include "gpuseg_nvgpu.h"
