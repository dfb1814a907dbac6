/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Admission: a task may be opened only if the sound analysis of what runs here proves that every deadline holds with
 * it. What was admitted is remembered over a restart. Runs on the conductor's admission thread and on the background
 * thread, never on the dispatcher's.
 */
package dev.gpuseg.daemon.admission;
