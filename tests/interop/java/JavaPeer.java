import io.aeron.Aeron;
import io.aeron.Counter;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.Subscription;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.CountersReader;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;

/** The real Java client, controlled by lines of text. peers.py describes the protocol. */
public final class JavaPeer
{
    private final Map<Long, Publisher> publishers = new HashMap<>();
    private final Map<Long, Subscription> subscriptions = new HashMap<>();
    private final Map<Long, Receiver> receivers = new HashMap<>();
    private final Map<Long, Counter> counters = new HashMap<>();
    private final ConcurrentLinkedQueue<Map<String, Object>> events = new ConcurrentLinkedQueue<>();
    private Aeron aeron;

    public static void main(final String[] args) throws Exception
    {
        Lines.serve(new JavaPeer()::perform);
        System.exit(0);
    }

    Object perform(final Request request)
    {
        return switch (request.operation)
        {
            case "connect" -> connect(request);
            case "disconnect" -> disconnect();
            case "closed" -> Map.of("closed", null == aeron || aeron.isClosed());
            case "add_publication" -> addPublication(request);
            case "add_subscription" -> addSubscription(request);
            case "publish" -> publisher(request).publish(request);
            case "offer" -> publisher(request).offer(request);
            case "hold" -> publisher(request).hold(request);
            case "finish" -> publisher(request).finish(request);
            case "pad" -> publisher(request).pad(request);
            case "publication" -> publisher(request).state();
            case "receive" -> receivers.get(request.number("id")).receive(request);
            case "subscription" -> subscription(request);
            case "reject" -> reject(request);
            case "add_destination" -> addDestination(request);
            case "remove_destination" -> removeDestination(request);
            case "add_counter" -> addCounter(request);
            case "set_counter" -> setCounter(request);
            case "counters" -> allCounters();
            case "next_session" -> Map.of("session", aeron.nextSessionId(request.integer("stream")));
            case "events" -> drainEvents();
            case "close" -> close(request);
            default -> throw new IllegalArgumentException("unknown operation " + request.operation);
        };
    }

    private Map<String, Object> connect(final Request request)
    {
        final Aeron.Context context = new Aeron.Context()
            .aeronDirectoryName(request.text("dir"))
            .driverTimeoutMs(request.number("driver_timeout_ms", 10_000))
            .clientName(request.text("name", ""))
            .errorHandler(this::onError)
            .subscriberErrorHandler(this::onError)
            .availableImageHandler((image) -> event("image", imageState(image)))
            .unavailableImageHandler((image) -> event("image_gone", imageState(image)))
            .availableCounterHandler((reader, registration, id) -> counterEvent("counter", registration, id))
            .unavailableCounterHandler((reader, registration, id) -> counterEvent("counter_gone", registration, id))
            .publicationErrorFrameHandler((frame) -> event("publication_error", Map.of(
                "registration", frame.registrationId(), "session", frame.sessionId(), "stream", frame.streamId(),
                "code", frame.errorCode(), "text", frame.errorMessage())))
            .closeHandler(() -> event("closed", Map.of()));
        aeron = Aeron.connect(context);
        return Map.of("client", aeron.clientId());
    }

    private void onError(final Throwable error)
    {
        event("error", Map.of("type", error.getClass().getSimpleName(), "text", String.valueOf(error.getMessage())));
    }

    private void counterEvent(final String kind, final long registration, final int id)
    {
        event(kind, Map.of("registration", registration, "id", id));
    }

    private void event(final String kind, final Map<String, Object> values)
    {
        final Map<String, Object> event = new LinkedHashMap<>(values);
        event.put("event", kind);
        events.add(event);
    }

    private Map<String, Object> disconnect()
    {
        if (null != aeron)
        {
            aeron.close();
            aeron = null;
        }
        publishers.clear();
        subscriptions.clear();
        receivers.clear();
        counters.clear();
        events.clear();
        return Map.of();
    }

    private Publisher publisher(final Request request)
    {
        return publishers.get(request.number("id"));
    }

    private Map<String, Object> addPublication(final Request request)
    {
        final String channel = request.text("channel");
        final int stream = request.integer("stream");
        return register(request.flag("exclusive") ?
            aeron.addExclusivePublication(channel, stream) : aeron.addPublication(channel, stream));
    }

    private Map<String, Object> addSubscription(final Request request)
    {
        return register(aeron.addSubscription(request.text("channel"), request.integer("stream")));
    }

    Aeron aeron()
    {
        return aeron;
    }

    Map<String, Object> register(final Publication publication)
    {
        final Publisher publisher = new Publisher(publication);
        publishers.put(publication.registrationId(), publisher);
        return publisher.constants();
    }

    Publication publication(final long registration)
    {
        return publishers.get(registration).publication;
    }

    Map<String, Object> register(final Subscription subscription)
    {
        subscriptions.put(subscription.registrationId(), subscription);
        receivers.put(subscription.registrationId(), new Receiver(subscription));
        return Map.of("registration", subscription.registrationId(), "status_counter", subscription.channelStatusId());
    }

    Subscription subscriptionOf(final long registration)
    {
        return subscriptions.get(registration);
    }

    Receiver receiver(final long registration)
    {
        return receivers.get(registration);
    }

    private Map<String, Object> subscription(final Request request)
    {
        final Subscription subscription = subscriptions.get(request.number("id"));
        final List<Object> images = new ArrayList<>();
        subscription.forEachImage((image) -> images.add(imageState(image)));
        return Map.of("connected", subscription.isConnected(), "closed", subscription.isClosed(), "images", images);
    }

    private static Map<String, Object> imageState(final Image image)
    {
        final Map<String, Object> state = new LinkedHashMap<>();
        state.put("session", image.sessionId());
        state.put("correlation", image.correlationId());
        state.put("source", image.sourceIdentity());
        state.put("initial_term", image.initialTermId());
        state.put("term_length", image.termBufferLength());
        state.put("mtu", image.mtuLength());
        state.put("join", image.joinPosition());
        state.put("position", image.position());
        state.put("position_counter", image.subscriberPositionId());
        state.put("closed", image.isClosed());
        state.put("end_of_stream", image.isEndOfStream());
        state.put("revoked", image.isPublicationRevoked());
        return state;
    }

    private Map<String, Object> reject(final Request request)
    {
        subscriptions.get(request.number("id")).imageBySessionId(request.integer("session")).reject(request.text("reason"));
        return Map.of();
    }

    private Map<String, Object> addDestination(final Request request)
    {
        final Publisher publisher = publishers.get(request.number("id"));
        if (null != publisher)
        {
            publisher.publication.addDestination(request.text("channel"));
        }
        else
        {
            subscriptions.get(request.number("id")).addDestination(request.text("channel"));
        }
        return Map.of();
    }

    private Map<String, Object> removeDestination(final Request request)
    {
        final Publisher publisher = publishers.get(request.number("id"));
        if (null != publisher)
        {
            publisher.publication.removeDestination(request.text("channel"));
        }
        else
        {
            subscriptions.get(request.number("id")).removeDestination(request.text("channel"));
        }
        return Map.of();
    }

    private Map<String, Object> addCounter(final Request request)
    {
        final UnsafeBuffer key = new UnsafeBuffer(request.bytes("key"));
        final UnsafeBuffer label = new UnsafeBuffer(request.ascii("label"));
        final int type = request.integer("type");
        final Counter counter = "".equals(request.text("registration", "")) ?
            aeron.addCounter(type, key, 0, key.capacity(), label, 0, label.capacity()) :
            aeron.addStaticCounter(type, key, 0, key.capacity(), label, 0, label.capacity(), request.number("registration"));
        counters.put(counter.registrationId(), counter);
        return Map.of("id", counter.id(), "registration", counter.registrationId());
    }

    private Map<String, Object> setCounter(final Request request)
    {
        counters.get(request.number("id")).setRelease(request.number("value"));
        return Map.of();
    }

    private Map<String, Object> allCounters()
    {
        final CountersReader reader = aeron.countersReader();
        final List<Object> all = new ArrayList<>();
        reader.forEach((id, type, key, label) ->
        {
            final byte[] keyBytes = new byte[CountersReader.MAX_KEY_LENGTH];
            key.getBytes(0, keyBytes, 0, Math.min(key.capacity(), keyBytes.length));
            final Map<String, Object> counter = new LinkedHashMap<>();
            counter.put("id", id);
            counter.put("type", type);
            counter.put("label", label);
            counter.put("key", HexFormat.of().formatHex(keyBytes));
            counter.put("value", reader.getCounterValue(id));
            counter.put("registration", reader.getCounterRegistrationId(id));
            counter.put("owner", reader.getCounterOwnerId(id));
            all.add(counter);
        });
        return Map.of("counters", all);
    }

    private Map<String, Object> drainEvents()
    {
        final List<Object> drained = new ArrayList<>();
        for (Object event = events.poll(); null != event; event = events.poll())
        {
            drained.add(event);
        }
        return Map.of("events", drained);
    }

    private Map<String, Object> close(final Request request)
    {
        final long id = request.number("id");
        final Publisher publisher = publishers.remove(id);
        if (null != publisher)
        {
            closePublication(publisher, request.flag("revoke"));
        }
        if (subscriptions.containsKey(id))
        {
            receivers.remove(id);
            subscriptions.remove(id).close();
        }
        if (counters.containsKey(id))
        {
            counters.remove(id).close();
        }
        return Map.of();
    }

    private static void closePublication(final Publisher publisher, final boolean revoke)
    {
        if (revoke)
        {
            ((ExclusivePublication)publisher.publication).revoke();
        }
        else
        {
            publisher.publication.close();
        }
    }
}
