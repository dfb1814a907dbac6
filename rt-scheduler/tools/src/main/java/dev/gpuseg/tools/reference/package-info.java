/* SPDX-License-Identifier: Apache-2.0 */
/** Manual pages and shell completion, generated from the model of the command line. Used when packages are built. */
package dev.gpuseg.tools.reference;
