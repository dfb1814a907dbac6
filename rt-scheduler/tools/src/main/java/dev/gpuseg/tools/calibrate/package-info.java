/* SPDX-License-Identifier: Apache-2.0 */
/** Measures the constants of a platform (epsilon, theta, time slice) and writes its profile. */
package dev.gpuseg.tools.calibrate;
