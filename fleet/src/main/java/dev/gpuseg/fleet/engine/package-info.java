/* SPDX-License-Identifier: Apache-2.0 */
/** Apache Spark: a session, and the sets of a sweep counted by it. */
package dev.gpuseg.fleet.engine;
