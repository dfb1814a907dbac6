/* SPDX-License-Identifier: Apache-2.0 */
/** Requests to a running daemon over its administration socket. */
package dev.gpuseg.tools.client;
