/* SPDX-License-Identifier: Apache-2.0 */
/* old_glibc.c - linked into every file of the tarball: what old_glibc.h cannot name, because it was made anew. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* ---- functions since 2.33; before, headers had another way. The kernel's structure is that of the library. ---- */

HIDDEN int stat(const char *path, struct stat *file)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, file, 0);
}

HIDDEN int lstat(const char *path, struct stat *file)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, file, AT_SYMLINK_NOFOLLOW);
}

HIDDEN int fstat(int fd, struct stat *file)
{
	return (int)syscall(SYS_fstat, fd, file);
}

/* ---- the begin of a program ---- */

typedef int main_function(int argc, char **argv, char **environment);
typedef void init_function(int argc, char **argv, char **environment);

/* Of the linker; none in a file without such functions. */
extern init_function *__init_array_start[] HIDDEN __attribute__((weak));
extern init_function *__init_array_end[] HIDDEN __attribute__((weak));

/* Until 2.33 the program itself calls its constructors; a later glibc leaves them to what is named here, too. */
static void construct(int argc, char **argv, char **environment)
{
	for (init_function **f = __init_array_start; f < __init_array_end; f++)
		(*f)(argc, argv, environment);
}

extern int start_as_ever(main_function *run, int argc, char **argv, init_function *init, void (*fini)(void),
			 void (*rtld_fini)(void), void *stack_end);
__asm__(".symver start_as_ever, __libc_start_main@" OLDEST_GLIBC);

extern int __libc_start_main(main_function *run, int argc, char **argv, init_function *init, void (*fini)(void),
			     void (*rtld_fini)(void), void *stack_end) HIDDEN;

/* What the compiler's own start file calls. */
int __libc_start_main(main_function *run, int argc, char **argv, init_function *init, void (*fini)(void),
		      void (*rtld_fini)(void), void *stack_end)
{
	return start_as_ever(run, argc, argv, init ? init : construct, fini, rtld_fini, stack_end);
}
