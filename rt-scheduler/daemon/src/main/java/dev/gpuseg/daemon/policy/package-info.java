/* SPDX-License-Identifier: Apache-2.0 */
/** Policies with their parameters, as files and commands state them. */
package dev.gpuseg.daemon.policy;
