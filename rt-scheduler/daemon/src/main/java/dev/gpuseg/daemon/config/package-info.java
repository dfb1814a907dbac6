/* SPDX-License-Identifier: Apache-2.0 */
/** The settings file of an installed daemon: reading it strictly, with the line of every value. */
package dev.gpuseg.daemon.config;
