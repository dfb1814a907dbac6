/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled BPF program, inside its helper: the helper needs no file at run time. */
	.section .rodata
	.balign 8
	.globl observer_program
	.globl observer_program_end
observer_program:
	.incbin GPUSEG_OBSERVER_PROGRAM
observer_program_end:
	.section .note.GNU-stack, "", %progbits
