/* SPDX-License-Identifier: Apache-2.0 */
/** The live view in a browser: a page of ours on 127.0.0.1, for whoever has its address. */
package dev.gpuseg.tools.live;
