/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym.S - dlsym() for the whole process: our own answer, or that of the C library.
 *
 * The C library looks at its caller for RTLD_NEXT and RTLD_DEFAULT. So where the answer is not ours, this jumps to its
 * function, with the caller's return address in place, which C cannot promise.
 *
 * struct answer wrap_symbol(void *handle, const char *name) returns {ours, value} in two registers.
 */
	.text
	.globl	dlsym
	.type	dlsym, %function
	.p2align 4
dlsym:
	.cfi_startproc
#if defined(__x86_64__)
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	wrap_symbol
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%rax, %rax
	je	1f
	movq	%rdx, %rax
	ret
1:	jmp	*wrap_real_dlsym(%rip)
#elif defined(__aarch64__)
	hint	#34 /* bti c */
	stp	x29, x30, [sp, #-32]!
	.cfi_adjust_cfa_offset 32
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	stp	x0, x1, [sp, #16]
	mov	x29, sp
	bl	wrap_symbol
	mov	x9, x0
	mov	x10, x1
	ldp	x0, x1, [sp, #16]
	ldp	x29, x30, [sp], #32
	.cfi_adjust_cfa_offset -32
	.cfi_restore x29
	.cfi_restore x30
	cbz	x9, 1f
	mov	x0, x10
	ret
1:	adrp	x16, wrap_real_dlsym
	ldr	x16, [x16, #:lo12:wrap_real_dlsym]
	br	x16
#else
#error "only for x86-64 and aarch64"
#endif
	.cfi_endproc
	.size	dlsym, .-dlsym
	.section .note.GNU-stack,"",%progbits
