/* SPDX-License-Identifier: Apache-2.0 */
/** The JDK's HTTP server, for reading and on 127.0.0.1 only. */
package dev.gpuseg.daemon.http;
