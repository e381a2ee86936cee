import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.PersistentSubscription;
import io.aeron.archive.client.PersistentSubscriptionException;
import io.aeron.archive.client.PersistentSubscriptionListener;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A persistent subscription of the real client, and its messages and events since the last response. */
final class PersistentReader implements PersistentSubscriptionListener
{
    private static final int BLOCK = Long.BYTES;

    private final PersistentSubscription subscription;
    private final List<Object> messages = new ArrayList<>();
    private final List<Object> events = new ArrayList<>();

    PersistentReader(final JavaPeer peer, final Request request)
    {
        final AeronArchive.Context archive = new AeronArchive.Context()
            .controlRequestChannel(request.text("control"))
            .controlRequestStreamId(request.integer("control_stream"))
            .controlResponseChannel(request.text("response"))
            .controlResponseStreamId(request.integer("response_stream"))
            .messageTimeoutNs(request.number("timeout_ns"));
        subscription = PersistentSubscription.create(new PersistentSubscription.Context()
            .aeron(peer.aeron())
            .recordingId(request.number("recording"))
            .startPosition(request.number("position"))
            .liveChannel(request.text("live"))
            .liveStreamId(request.integer("live_stream"))
            .replayChannel(request.text("replay"))
            .replayStreamId(request.integer("replay_stream"))
            .aeronArchiveContext(archive)
            .listener(this));
    }

    Object perform(final Request request)
    {
        if ("persistent_close".equals(request.operation))
        {
            subscription.close();
            return Map.of();
        }
        return read(request);
    }

    /** Polls until this number of messages has arrived, and an event if one is requested. */
    private Object read(final Request request)
    {
        final int count = request.integer("count");
        final int limit = request.integer("limit");
        final String event = request.text("event", "");
        final long deadlineNs = System.nanoTime() + request.number("timeout_ms") * 1_000_000L;
        while (!isDone(count, event) && System.nanoTime() < deadlineNs)
        {
            if (0 == subscription.poll(this::onMessage, limit))
            {
                Thread.yield();
            }
        }
        return answer();
    }

    private boolean isDone(final int count, final String event)
    {
        return messages.size() >= count && (event.isEmpty() || events.stream().anyMatch((e) -> e.toString().startsWith(event)));
    }

    /** Number and length of a message, or a length of -1 if its blocks differ. */
    private void onMessage(final DirectBuffer buffer, final int offset, final int length, final Header header)
    {
        final long number = buffer.getLong(offset);
        boolean isWhole = true;
        for (int block = BLOCK; block + BLOCK <= length; block += BLOCK)
        {
            isWhole &= number == buffer.getLong(offset + block);
        }
        messages.add(List.of(number, isWhole ? length : -1));
    }

    private Map<String, Object> answer()
    {
        final Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("messages", List.copyOf(messages));
        answer.put("events", List.copyOf(events));
        answer.put("live", subscription.isLive());
        answer.put("failed", subscription.hasFailed());
        messages.clear();
        events.clear();
        return answer;
    }

    public void onLiveJoined()
    {
        events.add("joined");
    }

    public void onLiveLeft()
    {
        events.add("left");
    }

    public void onError(final Exception error)
    {
        final String reason = error instanceof PersistentSubscriptionException ex ? ex.reason().name() : "";
        events.add("error " + reason + " " + error.getMessage());
    }
}
