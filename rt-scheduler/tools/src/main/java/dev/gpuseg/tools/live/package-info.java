/* SPDX-License-Identifier: Apache-2.0 */
/** The live view in a browser: a page on 127.0.0.1 for readers who have its address. */
package dev.gpuseg.tools.live;
