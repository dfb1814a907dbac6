/* SPDX-License-Identifier: Apache-2.0 */
/**
 * What {@code gpuseg bench} measures. {@code bench gpu} needs an NVIDIA GPU; everything else runs on the virtual GPU.
 */
package dev.gpuseg.tools.bench;
