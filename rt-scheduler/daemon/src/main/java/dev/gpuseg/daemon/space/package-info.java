/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Room for short loops ({@code run --space}): NVIDIA's MPS control daemon, places for best-effort programs inside, and
 * who has which part of the reserve.
 */
package dev.gpuseg.daemon.space;
