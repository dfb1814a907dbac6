/* SPDX-License-Identifier: Apache-2.0 */
/** Child processes: their command lines, their output and their end. */
package dev.gpuseg.tools.process;
