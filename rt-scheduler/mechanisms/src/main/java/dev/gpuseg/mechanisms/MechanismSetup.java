/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.RuntimeDirectory;

/**
 * What a mechanism is opened with.
 *
 * @param directory  the daemon's runtime directory
 * @param gpu        index of the GPU, from 0
 * @param protection processes that must not be touched
 */
public record MechanismSetup(RuntimeDirectory directory, int gpu, Protection protection) {
}
