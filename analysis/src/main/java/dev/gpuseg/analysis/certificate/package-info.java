/* SPDX-License-Identifier: Apache-2.0 */
/** Certificates: a task set with its bounds, in a form that the Coq checker of {@code analysis/coq} verifies. */
package dev.gpuseg.analysis.certificate;
