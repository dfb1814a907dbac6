/* SPDX-License-Identifier: Apache-2.0 */
/*
 * old_glibc.h - included before every source of the tarball, so that what a new glibc built runs on an old one, too.
 *
 * Since 2.32 glibc has given symbols that did not change a new version, as it took in libpthread and libdl. Each name
 * here is asked for as glibc has had it since its first release for the machine. A name that a source does not use
 * costs nothing. probe/oldest-glibc finds what is missing here.
 *
 * Not for sources whose program is built otherwise; functions that did change are in old_glibc.c.
 */
#ifndef GPUSEG_PROBE_OLD_GLIBC_H
#define GPUSEG_PROBE_OLD_GLIBC_H

#ifdef __x86_64__
#define OLDEST_GLIBC "GLIBC_2.2.5"
#define GLIBC_OF_PROTOCOLS "GLIBC_2.4"
#define GLIBC_OF_NAMES "GLIBC_2.12"
#else /* aarch64 */
#define OLDEST_GLIBC "GLIBC_2.17"
#define GLIBC_OF_PROTOCOLS OLDEST_GLIBC
#define GLIBC_OF_NAMES OLDEST_GLIBC
#endif

#define OLD_AS(name, old, version) __asm__(".symver " name ", " old "@" version)
#define OLD(name) OLD_AS(#name, #name, OLDEST_GLIBC)

OLD(dladdr);
OLD(dlclose);
OLD(dlerror);
OLD(dlopen);
OLD(dlsym);
OLD(dlvsym);
OLD(pthread_attr_setstacksize);
OLD(pthread_create);
OLD(pthread_detach);
OLD(pthread_getspecific);
OLD(pthread_join);
OLD(pthread_key_create);
OLD(pthread_key_delete);
OLD(pthread_kill);
OLD(pthread_mutex_trylock);
OLD(pthread_mutexattr_destroy);
OLD(pthread_mutexattr_init);
OLD_AS("pthread_mutexattr_setprotocol", "pthread_mutexattr_setprotocol", GLIBC_OF_PROTOCOLS);
OLD(pthread_mutexattr_settype);
OLD(pthread_once);
OLD_AS("pthread_setname_np", "pthread_setname_np", GLIBC_OF_NAMES);
OLD(pthread_setspecific);
OLD(pthread_sigmask);
/* From 2.38 on headers name those that also read binary numbers. */
OLD_AS("__isoc23_strtol", "strtol", OLDEST_GLIBC);
OLD_AS("__isoc23_strtoll", "strtoll", OLDEST_GLIBC);
OLD_AS("__isoc23_strtoul", "strtoul", OLDEST_GLIBC);
OLD_AS("__isoc23_strtoull", "strtoull", OLDEST_GLIBC);

#endif /* GPUSEG_PROBE_OLD_GLIBC_H */
