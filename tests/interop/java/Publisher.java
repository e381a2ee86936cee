import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.logbuffer.BufferClaim;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.HashMap;
import java.util.Map;

/** Sends numbered pattern messages on one publication, by any of its ways of sending. */
final class Publisher
{
    final Publication publication;
    private final Pattern pattern = new Pattern();
    private final BufferClaim claim = new BufferClaim();
    private UnsafeBuffer message = new UnsafeBuffer(new byte[0]);
    private long next;

    Publisher(final Publication publication)
    {
        this.publication = publication;
    }

    /** Sends a number of messages. Tries each until it is sent, the deadline has passed, or it can never be sent. */
    Map<String, Object> publish(final Request request)
    {
        final int[] lengths = request.integers("lengths");
        final String how = request.text("how", "offer");
        final long end = next + request.number("count");
        final long first = next;
        final long deadlineNs = System.nanoTime() + request.number("timeout_ms") * 1_000_000L;
        long result = 0;
        while (next < end)
        {
            result = send(how, lengths[(int)(next % lengths.length)], next);
            if (result > 0)
            {
                next++;
            }
            else if (result < Publication.ADMIN_ACTION || System.nanoTime() > deadlineNs)
            {
                break;
            }
            else
            {
                Thread.yield();
            }
        }
        return Map.of("sent", next - first, "result", result);
    }

    /** One attempt. */
    Map<String, Object> offer(final Request request)
    {
        final long result = send(request.text("how", "offer"), request.integer("length"), next);
        if (result > 0)
        {
            next++;
        }
        return Map.of("result", result);
    }

    /** Claims, and keeps the claim open until {@code finish}. */
    Map<String, Object> hold(final Request request)
    {
        return Map.of("result", publication.tryClaim(request.integer("length"), claim));
    }

    Map<String, Object> finish(final Request request)
    {
        if (request.flag("abort"))
        {
            claim.abort();
        }
        else
        {
            pattern.write(claim.buffer(), claim.offset(), claim.length(), next++);
            claim.commit();
        }
        return Map.of();
    }

    Map<String, Object> pad(final Request request)
    {
        return Map.of("result", ((ExclusivePublication)publication).appendPadding(request.integer("length")));
    }

    private long send(final String how, final int length, final long n)
    {
        if ("claim".equals(how))
        {
            final long result = publication.tryClaim(length, claim);
            if (result > 0)
            {
                pattern.write(claim.buffer(), claim.offset(), length, n);
                claim.commit();
            }
            return result;
        }
        if (message.capacity() < length)
        {
            message = new UnsafeBuffer(new byte[length]);
        }
        pattern.write(message, 0, length, n);
        if ("parts".equals(how))
        {
            final int half = length / 2;
            return publication.offer(message, 0, half, message, half, length - half);
        }
        return publication.offer(message, 0, length);
    }

    Map<String, Object> state()
    {
        final Map<String, Object> state = new HashMap<>();
        state.put("connected", publication.isConnected());
        state.put("closed", publication.isClosed());
        state.put("position", publication.position());
        state.put("limit", publication.positionLimit());
        return state;
    }

    Map<String, Object> constants()
    {
        final Map<String, Object> constants = new HashMap<>();
        constants.put("registration", publication.registrationId());
        constants.put("original", publication.originalRegistrationId());
        constants.put("session", publication.sessionId());
        constants.put("stream", publication.streamId());
        constants.put("initial_term", publication.initialTermId());
        constants.put("term_length", publication.termBufferLength());
        constants.put("max_payload", publication.maxPayloadLength());
        constants.put("max_message", publication.maxMessageLength());
        constants.put("max_position", publication.maxPossiblePosition());
        constants.put("limit_counter", publication.positionLimitId());
        constants.put("status_counter", publication.channelStatusId());
        return constants;
    }
}
