/* SPDX-License-Identifier: Apache-2.0 */
/** Benchmarks of the client queue, in its package: they use the rig of its tests. */
package dev.gpuseg.ipc;
