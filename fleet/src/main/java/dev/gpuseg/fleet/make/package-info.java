/* SPDX-License-Identifier: Apache-2.0 */
/** Recordings of simulated runs, for tests and demonstrations. */
package dev.gpuseg.fleet.make;
