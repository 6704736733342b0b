// One jump for each function of NCCL's interface (symbols.txt): to where its slot points.
// At first that is the code below the jump, which looks the function up in NCCL, all
// arguments kept as they are, fills the slot and goes on there. Jumps are weak: a
// function that we look into has a definition of its own, which the linker takes.
//
// build/symbols.inc has a line T(index, name) for each name.

#if defined(__x86_64__)

#define T(index, name)                 \
	.text;                         \
	.balign 16;                    \
	.weak name;                    \
	.type name, @function;         \
name:	endbr64;                       \
	jmp *slots + 8 * index(%rip);  \
	.balign 8;                     \
first_##index:                         \
	movl $index, %r11d;            \
	jmp look_up;                   \
	.size name, . - name;          \
	.data;                         \
	.quad first_##index

	.data
	.balign 8
	.globl mscclsh_nccl_slots
	.hidden mscclsh_nccl_slots
mscclsh_nccl_slots:
slots:
#include "symbols.inc"

	.text
	.type look_up, @function
// r11 is the index. Everything that may hold an argument comes back as it was: integer
// registers, where a result goes (rdi), the count of vector registers (rax), and these.
look_up:
	endbr64
	pushq %rbp
	movq %rsp, %rbp
	subq $192, %rsp
	movq %rdi, (%rsp)
	movq %rsi, 8(%rsp)
	movq %rdx, 16(%rsp)
	movq %rcx, 24(%rsp)
	movq %r8, 32(%rsp)
	movq %r9, 40(%rsp)
	movq %rax, 48(%rsp)
	movups %xmm0, 64(%rsp)
	movups %xmm1, 80(%rsp)
	movups %xmm2, 96(%rsp)
	movups %xmm3, 112(%rsp)
	movups %xmm4, 128(%rsp)
	movups %xmm5, 144(%rsp)
	movups %xmm6, 160(%rsp)
	movups %xmm7, 176(%rsp)
	movl %r11d, %edi
	call mscclsh_nccl_look_up
	movq %rax, %r11
	movq (%rsp), %rdi
	movq 8(%rsp), %rsi
	movq 16(%rsp), %rdx
	movq 24(%rsp), %rcx
	movq 32(%rsp), %r8
	movq 40(%rsp), %r9
	movq 48(%rsp), %rax
	movups 64(%rsp), %xmm0
	movups 80(%rsp), %xmm1
	movups 96(%rsp), %xmm2
	movups 112(%rsp), %xmm3
	movups 128(%rsp), %xmm4
	movups 144(%rsp), %xmm5
	movups 160(%rsp), %xmm6
	movups 176(%rsp), %xmm7
	leave
	jmp *%r11
	.size look_up, . - look_up

#elif defined(__aarch64__)

#define T(index, name)                         \
	.text;                                 \
	.balign 16;                            \
	.weak name;                            \
	.type name, @function;                 \
name:	hint 34;                              \
	adrp x16, slots + 8 * index;           \
	ldr x16, [x16, :lo12:slots + 8 * index]; \
	br x16;                                \
first_##index:                                 \
	hint 36;                              \
	mov w17, index;                       \
	b look_up;                             \
	.size name, . - name;                  \
	.data;                                 \
	.quad first_##index

	.data
	.balign 8
	.globl mscclsh_nccl_slots
	.hidden mscclsh_nccl_slots
mscclsh_nccl_slots:
slots:
#include "symbols.inc"

	.text
	.type look_up, @function
// w17 is the index. Arguments are in x0 to x7, where a result goes in x8, vectors in q0 to q7.
look_up:
	stp x29, x30, [sp, #-224]!
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	str x8, [sp, #80]
	stp q0, q1, [sp, #96]
	stp q2, q3, [sp, #128]
	stp q4, q5, [sp, #160]
	stp q6, q7, [sp, #192]
	mov w0, w17
	bl mscclsh_nccl_look_up
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldp x6, x7, [sp, #64]
	ldr x8, [sp, #80]
	ldp q0, q1, [sp, #96]
	ldp q2, q3, [sp, #128]
	ldp q4, q5, [sp, #160]
	ldp q6, q7, [sp, #192]
	ldp x29, x30, [sp], #224
	br x16
	.size look_up, . - look_up

#else
#error "trampolines are written for x86-64 and aarch64"
#endif

	.section .note.GNU-stack, "", %progbits
