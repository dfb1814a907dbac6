/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Task-set files: the reader and writer of the project's own format, and importers of neighbouring formats. Every
 * refusal is one line that names file, line, thing, value and remedy.
 */
package dev.gpuseg.analysis.io;
