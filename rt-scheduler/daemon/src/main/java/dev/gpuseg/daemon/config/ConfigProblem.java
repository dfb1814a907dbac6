/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.config;

import java.nio.file.Path;

/**
 * One thing that is wrong with a settings file.
 *
 * @param file the file
 * @param line from 1; 0 = the file as a whole
 * @param text thing, value and remedy, one line
 */
public record ConfigProblem(Path file, int line, String text) {
    /** How it is shown: {@code FILE:LINE: TEXT}. */
    @Override
    public String toString() {
        return file + (line > 0 ? ":" + line : "") + ": " + text;
    }
}
