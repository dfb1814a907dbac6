/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import java.io.Serializable;

/**
 * A file that a judge wants to be kept.
 *
 * @param name of the file, without a directory
 * @param text its content
 */
public record Finding(String name, String text) implements Serializable {
}
