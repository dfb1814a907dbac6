/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedIndexInformer;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1Pod;
import io.kubernetes.client.openapi.models.V1PodList;
import io.kubernetes.client.util.CallGeneratorParams;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Keeps the daemon's file of rules equal to what the pods of a node say. Until the API server has told of all pods
 * once, the file stays as it is; while the server is gone, too. One thread runs it, any thread stops it.
 */
final class NodeAgent implements AutoCloseable {
    /** At most so long after a change of the limits they hold; refused events are tried again. */
    private static final long LOOK_MS = 2_000;
    /** All changes that come within this time are one change of the file. */
    private static final long GATHER_MS = 20;

    /** The pods of a node have some megabytes, and the agent a few hundred for them. */
    private static final long ANSWER_MAX_BYTES = 16 << 20;

    private static final Duration PING = Duration.ofSeconds(30);

    private final CoreV1Api api;
    private final String node;
    private final RulesFile rules;
    private final Path limitsFile;
    private final PrintStream log;
    private final SharedInformerFactory informers;
    private final SharedIndexInformer<V1Pod> pods;
    private final RefusalEvents events;
    private final Semaphore changed = new Semaphore(0);
    private NamespaceLimits limits = NamespaceLimits.NONE;
    private FileTime limitsRead;
    private volatile boolean stopped;

    /**
     * An agent that does nothing yet.
     *
     * @param client     of the API server
     * @param node       name of this node
     * @param rules      what it writes
     * @param limitsFile what namespaces may, null for {@link NamespaceLimits#NONE}
     * @param log        one line per event
     * @throws IllegalArgumentException if the limits are refused, in one line
     */
    NodeAgent(final ApiClient client, final String node, final RulesFile rules, final Path limitsFile,
        final PrintStream log) {
        this.node = node;
        this.rules = rules;
        this.limitsFile = limitsFile;
        this.log = log;
        if (limitsFile != null) {
            limits = NamespaceLimits.read(limitsFile);
            limitsRead = modified();
        }
        // a watch is one answer that lasts for minutes; a server that went without a word is found by HTTP/2's pings
        client.setReadTimeout(0);
        client.setHttpClient(client.getHttpClient().newBuilder().pingInterval(PING)
            .addInterceptor(new AnswerLimit(ANSWER_MAX_BYTES)).build());
        api = new CoreV1Api(client);
        events = new RefusalEvents(api, node, log);
        informers = new SharedInformerFactory(client);
        pods = informers.sharedIndexInformerFor((final CallGeneratorParams call) -> api.listPodForAllNamespaces()
            .fieldSelector("spec.nodeName=" + node).resourceVersion(call.resourceVersion).watch(call.watch)
            .timeoutSeconds(call.timeoutSeconds).buildCall(null), V1Pod.class, V1PodList.class);
        pods.addEventHandler(new ResourceEventHandler<>() {
            @Override
            public void onAdd(final V1Pod pod) {
                changed.release();
            }

            @Override
            public void onUpdate(final V1Pod before, final V1Pod after) {
                changed.release();
            }

            @Override
            public void onDelete(final V1Pod pod, final boolean stateUnknown) {
                changed.release();
            }
        });
    }

    /**
     * Runs until it is closed.
     *
     * @throws InterruptedException if its thread is interrupted
     */
    void run() throws InterruptedException {
        informers.startAllRegisteredInformers();
        boolean synced = false;
        boolean told = true;
        while (!stopped) {
            final boolean event = changed.tryAcquire(LOOK_MS, TimeUnit.MILLISECONDS);
            if (event) {
                Thread.sleep(GATHER_MS);
                changed.drainPermits();
            }
            if (stopped || !pods.hasSynced()) {
                continue;
            }
            if (!synced) {
                log.println("gpuseg-agent: the API server has told of all pods of node " + node);
            }
            if (readLimits() || event || !synced || !told) {
                told = apply();
            }
            synced = true;
        }
    }

    private boolean apply() {
        final PodRules.Ruling outcome = PodRules.of(pods.getIndexer().list(), limits);
        try {
            if (rules.write(outcome.entries())) {
                log.println("gpuseg-agent: rules for " + (outcome.entries().size() - 1) + " pods written");
            }
        } catch (final IOException e) {
            log.println("gpuseg-agent: the rules cannot be written, tried again: " + e);
            return false;
        }
        return events.say(outcome.refusals());
    }

    /** True if they are others now. A file that is refused changes nothing. */
    private boolean readLimits() {
        final FileTime now = limitsFile == null ? null : modified();
        if (now == null || now.equals(limitsRead)) {
            return false;
        }
        limitsRead = now;
        try {
            limits = NamespaceLimits.read(limitsFile);
            log.println("gpuseg-agent: limits of namespaces read from " + limitsFile);
            return true;
        } catch (final IllegalArgumentException e) {
            log.println("gpuseg-agent: " + e.getMessage() + "; the limits before it still hold");
            return false;
        }
    }

    private FileTime modified() {
        try {
            return Files.getLastModifiedTime(limitsFile);
        } catch (final IOException e) {
            return null;
        }
    }

    @Override
    public void close() {
        stopped = true;
        changed.release();
        informers.stopAllRegisteredInformers(true);
    }
}
