/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Everything about clients that need not be fast: the registration socket, admission, quotas, notice of death,
 * creation, rolling and deletion of queues. Talks to the dispatcher through proxies and queues, never by shared
 * objects.
 */
package dev.gpuseg.daemon.conductor;
