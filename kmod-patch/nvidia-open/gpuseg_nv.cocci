// SPDX-License-Identifier: GPL-2.0-only
//
// Hooks for gpuseg in the interface layer of NVIDIA's open kernel modules (nvidia/nv.c). No context of the driver is
// copied here: each rule names one call and what goes around it.
//
//   spatch --sp-file gpuseg_nv.cocci --in-place nvidia/nv.c
// What an application allocates, duplicates and frees passes the recorder.
@ioctl@
expression result, stack, state, file, number, data, size;
@@
- result = rm_ioctl(stack, state, &file->nvfp, number, data, size);
+ result = gpuseg_nv_rm_ioctl(stack, state, file, number, data, size);

// Nothing of a file is named any more once the Resource Manager cleans up after it.
@closing@
expression stack, state, file;
@@
+ gpuseg_nv_file_closing(file);
  rm_cleanup_file_private(stack, state, &file->nvfp);

// The device comes last and goes first.
@init@
symbol __nv_init_sp;
identifier stack;
@@
int nvidia_init_module(void)
{
  <...
  __nv_init_sp = stack;
+ gpuseg_nv_init();
  ...>
}

@exit@
@@
void nvidia_exit_module(void)
{
  ...
+ gpuseg_nv_exit();
  nv_drivers_exit();
  ...
}

@header@
@@
  #include "nv-linux.h"
+ #include "gpuseg_nv_glue.h"
