.code16
.text
start:
  cli
  xor %ax,%ax
  mov %ax,%ds
  mov %ax,%es
  mov %ax,%ss
  mov $0x7c00,%sp
  sti
  cld
  mov %dl,0x7e10
  /* sector 2: number of boots */
  mov $0x0201,%ax
  mov $0x8000,%bx
  mov $0x0002,%cx
  xor %dh,%dh
  int $0x13
  incw 0x8000
  movw 0x8000,%ax
  movw %ax,0x7e14
  movl $0,0x7e18
  mov $boot,%si
  call puts
  movzwl 0x7e14,%eax
  call number
again:
  /* wait for the next-but-one tick of the timer */
  mov $2,%cx
wait:
  hlt
  mov 0x46c,%ax
  cmp 0x7e1c,%ax
  je wait
  mov %ax,0x7e1c
  loop wait
  incl 0x7e18
  /* other memory all the time: segments 0x2000 to 0x8000 */
  mov 0x7e18,%ax
  mov $0x2000,%bx
fill:
  mov %bx,%es
  xor %di,%di
  mov $0x8000,%cx
  rep stosw
  add $0x1000,%bx
  cmp $0x8000,%bx
  jne fill
  xor %ax,%ax
  mov %ax,%es
  /* sector 2: boots, and how far it is */
  mov 0x7e18,%eax
  mov %eax,0x8004
  mov $0x0301,%ax
  mov $0x8000,%bx
  mov $0x0002,%cx
  mov 0x7e10,%dl
  xor %dh,%dh
  int $0x13
  mov $tick,%si
  call puts
  mov 0x7e18,%eax
  call number
  jmp again
puts:
  lodsb
  test %al,%al
  jz 1f
  call putc
  jmp puts
1: ret
number: /* eax, eight hexadecimal digits and a new line */
  mov $8,%cx
2:
  rol $4,%eax
  push %eax
  and $15,%al
  add $48,%al
  cmp $58,%al
  jb 3f
  add $39,%al
3:
  call putc
  pop %eax
  loop 2b
  mov $10,%al
putc:
  push %dx
  push %ax
  mov $0x3fd,%dx
4:
  in %dx,%al
  test $0x20,%al
  jz 4b
  pop %ax
  mov $0x3f8,%dx
  out %al,%dx
  pop %dx
  ret
boot: .asciz "boot "
tick: .asciz "tick "
  .org 510
  .word 0xaa55
