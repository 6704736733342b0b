// The bytes of embedded.h, of the file that TABLE names.
	.section .rodata, "a", %progbits
	.balign 16
	.globl mscclsh_nccl_table, mscclsh_nccl_table_end
	.hidden mscclsh_nccl_table, mscclsh_nccl_table_end
mscclsh_nccl_table:
	.incbin TABLE
mscclsh_nccl_table_end:
	.byte 0
	.section .note.GNU-stack, "", %progbits
