/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import java.io.IOException;
import okhttp3.Interceptor;
import okhttp3.Request;
import okhttp3.Response;
import okhttp3.ResponseBody;
import okio.Buffer;
import okio.ForwardingSource;
import okio.Okio;
import okio.Source;

/**
 * Ends the reading of an answer of the API server that is too long for the agent's memory: of a watch, which lasts for
 * minutes, each line is one event and is limited by itself. Thread-safe.
 */
final class AnswerLimit implements Interceptor {
    private final long maxBytes;

    /**
     * A limit.
     *
     * @param maxBytes of an answer, or of an event of a watch, without the compression of the way
     */
    AnswerLimit(final long maxBytes) {
        this.maxBytes = maxBytes;
    }

    @Override
    public Response intercept(final Chain chain) throws IOException {
        final Request request = chain.request();
        final Response answer = chain.proceed(request);
        final ResponseBody body = answer.body();
        if (body == null) {
            return answer;
        }
        final boolean watch = "true".equals(request.url().queryParameter("watch"));
        final String what = "the API server's answer to " + request.method() + " " + request.url().encodedPath();
        return answer.newBuilder().body(ResponseBody.create(
            Okio.buffer(new Counted(body.source(), what, watch)), body.contentType(), body.contentLength())).build();
    }

    /** Counts from the beginning, or from the last end of a line. */
    private final class Counted extends ForwardingSource {
        private final String what;
        private final boolean byLines;
        private long bytes;

        Counted(final Source source, final String what, final boolean byLines) {
            super(source);
            this.what = what;
            this.byLines = byLines;
        }

        @Override
        public long read(final Buffer sink, final long most) throws IOException {
            final long before = sink.size();
            final long n = super.read(sink, most);
            if (n <= 0) {
                return n;
            }
            bytes += n;
            if (byLines) {
                for (long at = sink.indexOf((byte) '\n', before); at >= 0; at = sink.indexOf((byte) '\n', at + 1)) {
                    bytes = sink.size() - at - 1;
                }
            }
            if (bytes > maxBytes) {
                throw new IOException(what + " has more than " + maxBytes + " bytes" + (byLines ? " in a line" : "")
                    + "; is it the API server, and has this node so many pods?");
            }
            return n;
        }
    }
}
