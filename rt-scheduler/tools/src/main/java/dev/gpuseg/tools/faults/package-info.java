/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The fault campaign: what is broken when (a plan drawn from a seed), and how a round is judged: by what applications
 * know to be recorded, by the journal, and by the virtual GPU's log of what it disabled. Starts no process itself.
 */
package dev.gpuseg.tools.faults;
