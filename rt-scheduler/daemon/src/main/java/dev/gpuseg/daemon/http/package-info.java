/* SPDX-License-Identifier: Apache-2.0 */
/** A small HTTP/1.1 server for reading, on a Unix socket or a loopback address only. */
package dev.gpuseg.daemon.http;
