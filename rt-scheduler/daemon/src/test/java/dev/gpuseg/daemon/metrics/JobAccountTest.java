/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class JobAccountTest {
    private static final int PRIORITY = 50;
    private static final long DEADLINE = 100;

    private final JobAccount account = new JobAccount();

    private void is(final long jobs, final long misses) {
        assertEquals(jobs, account.jobs(), "jobs");
        assertEquals(misses, account.misses(), "misses");
    }

    @Test
    void shouldTakeEverySegmentForAJobWhereTheApplicationMarksNone() {
        account.begun(10, 0);
        assertEquals(90, account.segmentEnded(100, PRIORITY, DEADLINE));
        account.begun(200, 0);
        assertEquals(101, account.segmentEnded(301, PRIORITY, DEADLINE));
        is(2, 1);
    }

    @Test
    void shouldTakeMarkedJobsOnlyOnceTheApplicationMarks() {
        account.released(10);
        account.begun(20, 10);
        assertEquals(JobAccount.NONE, account.segmentEnded(30, PRIORITY, DEADLINE));
        account.begun(40, 10);
        assertEquals(JobAccount.NONE, account.segmentEnded(50, PRIORITY, DEADLINE));
        assertEquals(60, account.jobEnded(60, PRIORITY, DEADLINE));
        assertEquals(JobAccount.NONE, account.jobEnded(70, PRIORITY, DEADLINE), "its end was marked already");
        account.begun(80, 0);
        assertEquals(JobAccount.NONE, account.segmentEnded(90, PRIORITY, DEADLINE), "a segment outside of jobs");
        is(1, 0);
    }

    @Test
    void shouldKnowAMarkedJobByItsSegmentWhereTheEventsBeginWithinIt() {
        account.begun(40, 10);
        assertTrue(account.marks());
        assertEquals(JobAccount.NONE, account.segmentEnded(50, PRIORITY, DEADLINE));
        assertEquals(50, account.jobEnded(50, PRIORITY, DEADLINE));
        is(1, 0);
    }

    @Test
    void shouldDecideAtTheEndOfAJobWhetherItMissed() {
        account.released(10);
        account.begun(20, 10);
        account.deadlinePassed(PRIORITY);
        assertTrue(account.isOverdue());
        account.segmentEnded(130, PRIORITY, DEADLINE);
        account.begun(140, 10);
        account.deadlinePassed(PRIORITY);
        is(0, 0);
        assertEquals(150, account.jobEnded(150, PRIORITY, DEADLINE));
        assertFalse(account.isOverdue());
        is(1, 1);
        account.released(200);
        account.begun(210, 200);
        account.deadlinePassed(PRIORITY);
        assertEquals(100, account.jobEnded(100, PRIORITY, DEADLINE), "in time, and the daemon learned of it late");
        is(2, 1);
    }

    @Test
    void shouldCountACancelledJobOnceAsSkipped() {
        account.released(10);
        account.begun(20, 10);
        account.segmentWithdrawn();
        account.jobCancelled();
        account.jobCancelled();
        assertEquals(JobAccount.NONE, account.jobEnded(500, PRIORITY, DEADLINE), "it has ended");
        assertEquals(1, account.skipped());
        is(0, 0);
        account.released(600);
        assertEquals(50, account.jobEnded(50, PRIORITY, DEADLINE));
        account.jobCancelled();
        assertEquals(1, account.skipped(), "that job has ended");
        is(1, 0);
    }

    @Test
    void shouldCountACancelledJobWhoseDeadlinePassedAsAMiss() {
        account.released(10);
        account.begun(20, 10);
        account.deadlinePassed(PRIORITY);
        account.segmentWithdrawn();
        account.jobCancelled();
        assertEquals(0, account.skipped());
        is(0, 1);
        account.released(300);
        is(0, 1);
    }

    @Test
    void shouldSkipNothingWhereTheApplicationMarksNoJobs() {
        account.begun(10, 0);
        account.jobCancelled();
        assertEquals(0, account.skipped());
        assertEquals(20, account.segmentEnded(30, PRIORITY, DEADLINE));
        is(1, 0);
    }

    @Test
    void shouldCountJobsThatAreGivenUpAfterTheirDeadline() {
        account.released(10);
        account.begun(10, 10);
        account.deadlinePassed(PRIORITY);
        account.released(300);
        is(0, 1);
        account.begun(310, 300);
        account.deadlinePassed(PRIORITY);
        account.reopened();
        is(0, 2);
    }

    @Test
    void shouldNeverCountAMissOfBestEffort() {
        account.begun(10, 0);
        account.deadlinePassed(0);
        assertFalse(account.isOverdue());
        assertEquals(990, account.segmentEnded(1_000, 0, DEADLINE));
        is(1, 0);
    }

    @Test
    void shouldCountAWithdrawnSegmentAsNoJobButAsAMissWhereItsDeadlinePassed() {
        account.begun(10, 0);
        account.segmentWithdrawn();
        is(0, 0);
        account.begun(20, 0);
        account.deadlinePassed(PRIORITY);
        account.segmentWithdrawn();
        is(0, 1);
    }

    @Test
    void shouldCountOnAfterATaskWasOpenedAgain() {
        account.released(10);
        account.jobEnded(5, PRIORITY, DEADLINE);
        account.reopened();
        account.begun(20, 0);
        assertEquals(10, account.segmentEnded(30, PRIORITY, DEADLINE), "it marks none this time");
        is(2, 0);
    }
}
