/* SPDX-License-Identifier: Apache-2.0 */
/** Plays a workload on the virtual GPU under a real daemon, and checks the run against the virtual GPU's own log. */
package dev.gpuseg.tools.demo;
