/* SPDX-License-Identifier: Apache-2.0 */
/** Random task sets: the published experiment and the usual utilisation generators, reproducible from a seed. */
package dev.gpuseg.analysis.generate;
