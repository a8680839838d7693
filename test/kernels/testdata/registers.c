/*
 * Lets kernels older than Linux 7.2 start in User-mode Linux on processors with AMX. hack/test-kernels.sh compiles it,
 * and the client machines get it by LD_PRELOAD.
 *
 * A kernel in User-mode Linux sets the registers of its processes by ptrace. Linux takes the state of all of them or
 * none (xstateregs_set in arch/x86/kernel/fpu/regset.c), and older kernels hold 2,696 bytes of it, which is all but
 * AMX. So the rest is added here, as it is: a process that never asks for AMX has nothing there.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <linux/ptrace.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long set_registers(int pid, void *kind, const struct iovec *given)
{
	static char state[1 << 16];
	struct iovec whole = { state, sizeof(state) };

	if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, kind, &whole) < 0)
		return -1;
	if (given->iov_len >= whole.iov_len)
		return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, kind, given);
	memcpy(state, given->iov_base, given->iov_len);
	return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, kind, &whole);
}

/* Stands before the C library's function of this name. */
long ptrace(int request, ...)
{
	va_list list;
	int pid;
	void *address, *data;
	long word, result;

	va_start(list, request);
	pid = va_arg(list, int);
	address = va_arg(list, void *);
	data = va_arg(list, void *);
	va_end(list);

	switch (request) {
	case PTRACE_SETREGSET:
		if ((unsigned long)address == NT_X86_XSTATE)
			return set_registers(pid, address, data);
		break;
	case PTRACE_PEEKTEXT:
	case PTRACE_PEEKDATA:
	case PTRACE_PEEKUSR:
		/* The system call stores the word; the C library's function returns it. */
		result = syscall(SYS_ptrace, request, pid, address, &word);
		return result < 0 ? result : word;
	}
	return syscall(SYS_ptrace, request, pid, address, data);
}
