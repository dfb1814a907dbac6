/* SPDX-License-Identifier: Apache-2.0 */
/** jcstress tests of how the daemon's threads put each other to sleep and wake each other, on the daemon's classes. */
package dev.gpuseg.daemon.enforce;
