/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Linux system calls that the JDK does not offer, through JNA direct mapping. Calls made once per event (futex wake,
 * epoll wait, eventfd write) allocate nothing; all others throw {@link SystemCallException} with call, arguments, errno
 * and remedy. Only this package and {@code dev.gpuseg.mechanisms} use JNA.
 */
package dev.gpuseg.ipc.platform;
