import io.aeron.FragmentAssembler;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;

/** Assembles the messages of a subscription, and checks each against the pattern of its session. */
final class Receiver
{
    private static final int MOST_FAULTS = 5;

    private static final class Session
    {
        long next;
        long position;
    }

    private final Subscription subscription;
    private final FragmentAssembler assembler = new FragmentAssembler(this::onMessage);
    private final Pattern pattern = new Pattern();
    private final Map<Integer, Session> sessions = new LinkedHashMap<>();
    private final List<String> faults = new ArrayList<>();
    private int[] lengths;
    private long first;
    private long received;
    private long bytes;

    Receiver(final Subscription subscription)
    {
        this.subscription = subscription;
    }

    /** The way of polling fragments. */
    interface Poll
    {
        int poll(FragmentHandler handler, int limit);
    }

    Map<String, Object> receive(final Request request)
    {
        return receive(request, subscription::poll, () -> true);
    }

    /** Receives until this number of messages has arrived and the condition holds. */
    Map<String, Object> receive(final Request request, final Poll poll, final BooleanSupplier isDone)
    {
        lengths = request.integers("lengths");
        first = request.number("first", 0);
        received = 0;
        bytes = 0;
        faults.clear();
        final long count = request.number("count");
        final int limit = request.integer("limit", 64);
        final long deadlineNs = System.nanoTime() + request.number("timeout_ms") * 1_000_000L;
        while ((received < count || !isDone.getAsBoolean()) && System.nanoTime() < deadlineNs)
        {
            if (0 == poll.poll(assembler, limit))
            {
                Thread.yield();
            }
        }
        return answer();
    }

    private void onMessage(final DirectBuffer buffer, final int offset, final int length, final Header header)
    {
        final Session session = sessions.computeIfAbsent(header.sessionId(), this::newSession);
        final long n = session.next++;
        session.position = header.position();
        received++;
        bytes += length;
        final int expected = lengths[(int)(n % lengths.length)];
        if (length != expected || !pattern.matches(buffer, offset, length, n))
        {
            fault("session " + header.sessionId() + " message " + n + ": length " + length + ", expected " + expected);
        }
    }

    private Session newSession(final int sessionId)
    {
        final Session session = new Session();
        session.next = first;
        return session;
    }

    private void fault(final String text)
    {
        if (faults.size() < MOST_FAULTS)
        {
            faults.add(text);
        }
    }

    private Map<String, Object> answer()
    {
        final Map<String, Object> perSession = new LinkedHashMap<>();
        sessions.forEach((id, s) -> perSession.put(id.toString(), Map.of("next", s.next, "position", s.position)));
        return Map.of("received", received, "bytes", bytes, "sessions", perSession, "faults", List.copyOf(faults));
    }
}
