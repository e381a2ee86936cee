import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ArchiveException;
import io.aeron.archive.client.RecordingDescriptorConsumer;
import io.aeron.archive.client.RecordingSubscriptionDescriptorConsumer;
import io.aeron.archive.client.ReplayMerge;
import io.aeron.archive.client.ReplayParams;
import io.aeron.archive.client.ReplicationParams;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.security.CredentialsSupplier;

import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** One connection to an archive, with every method of the real client. A method's result is named {@code result}. */
final class ArchiveClient
{
    private final JavaPeer peer;
    private final AeronArchive archive;
    private final List<Object> signals = new ArrayList<>();
    private final List<Object> errors = new ArrayList<>();

    ArchiveClient(final JavaPeer peer, final Request request)
    {
        this.peer = peer;
        final AeronArchive.Context context = new AeronArchive.Context()
            .aeron(peer.aeron())
            .ownsAeronClient(false)
            .controlRequestChannel(request.text("control"))
            .controlRequestStreamId(request.integer("control_stream"))
            .controlResponseChannel(request.text("response"))
            .controlResponseStreamId(request.integer("response_stream"))
            .messageTimeoutNs(request.number("timeout_ns"))
            .credentialsSupplier(credentials(request))
            .errorHandler(this::onError)
            .recordingSignalConsumer((session, correlation, recording, subscription, position, signal) ->
                signals.add(Map.of(
                    "signal", signal.name(), "correlation", correlation, "recording", recording,
                    "subscription", subscription, "position", position)));
        archive = AeronArchive.connect(context);
    }

    private void onError(final Throwable error)
    {
        final int code = error instanceof ArchiveException ? ((ArchiveException)error).errorCode() : -1;
        final String type = error.getClass().getSimpleName();
        errors.add(Map.of("type", type, "code", code, "text", String.valueOf(error.getMessage())));
    }

    Map<String, Object> connected(final long id)
    {
        return Map.of("client", id, "archive", archive.archiveId(), "session", archive.controlSessionId());
    }

    Object perform(final Request request)
    {
        return switch (request.operation)
        {
            case "close_archive" -> close();
            case "archive_state" -> result(archive.state());
            case "poll_error" -> result(archive.pollForErrorResponse());
            case "poll_signals" -> pollSignals();
            case "poll_errors" -> drained("errors", errors);
            case "start_recording" -> result(startRecording(request));
            case "extend_recording" -> result(extendRecording(request));
            case "add_recorded_publication" -> addRecordedPublication(request);
            case "stop_recording" -> stopRecording(request);
            case "try_stop_recording" -> result(tryStopRecording(request));
            case "start_replay" -> result(archive.startReplay(
                request.number("recording"), channel(request), stream(request), replayParams(request)));
            case "replay" -> replay(request);
            case "stop_replay" -> stopReplay(request);
            case "merge" -> merge(request);
            case "list_recordings" -> listRecordings(request);
            case "list_subscriptions" -> listSubscriptions(request);
            case "find_last" -> result(archive.findLastMatchingRecording(
                request.number("min"), request.text("fragment"), stream(request), request.integer("session")));
            case "position" -> result(position(request));
            case "truncate" -> result(archive.truncateRecording(request.number("recording"), request.number("position")));
            case "purge" -> result(archive.purgeRecording(request.number("recording")));
            case "segments" -> result(segments(request));
            case "update_channel" -> updateChannel(request);
            case "replicate" -> result(archive.replicate(
                request.number("recording"), request.integer("source_stream"), request.text("source"),
                replicationParams(request)));
            case "stop_replication" -> result(archive.tryStopReplication(request.number("replication")));
            default -> throw new IllegalArgumentException("unknown operation " + request.operation);
        };
    }

    Map<String, Object> close()
    {
        archive.close();
        return Map.of();
    }

    private Object pollSignals()
    {
        for (int polls = 0; polls < 100 && 0 != archive.pollForRecordingSignals(); polls++)
        {
            // One call delivers at most one signal.
        }
        return drained("signals", signals);
    }

    private long startRecording(final Request request)
    {
        final SourceLocation location = SourceLocation.valueOf(request.text("source"));
        return archive.startRecording(channel(request), stream(request), location, request.flag("auto_stop"));
    }

    private long extendRecording(final Request request)
    {
        final SourceLocation location = SourceLocation.valueOf(request.text("source"));
        return archive.extendRecording(
            request.number("recording"), channel(request), stream(request), location, request.flag("auto_stop"));
    }

    private Object addRecordedPublication(final Request request)
    {
        return peer.register(request.flag("exclusive") ?
            archive.addRecordedExclusivePublication(channel(request), stream(request)) :
            archive.addRecordedPublication(channel(request), stream(request)));
    }

    private Object stopRecording(final Request request)
    {
        switch (request.text("by"))
        {
            case "subscription" -> archive.stopRecording(request.number("subscription"));
            case "channel" -> archive.stopRecording(channel(request), stream(request));
            default -> archive.stopRecording(peer.publication(request.number("publication")));
        }
        return Map.of();
    }

    private boolean tryStopRecording(final Request request)
    {
        return switch (request.text("by"))
        {
            case "subscription" -> archive.tryStopRecording(request.number("subscription"));
            case "channel" -> archive.tryStopRecording(channel(request), stream(request));
            default -> archive.tryStopRecordingByIdentity(request.number("recording"));
        };
    }

    /** Starts a replay and subscribes to its session id, so that other replays on the channel are not received. */
    private Object replay(final Request request)
    {
        final Subscription subscription = archive.replay(
            request.number("recording"), channel(request), stream(request), replayParams(request));
        return peer.register(subscription);
    }

    /** Polls a merge until it is complete and has delivered this number of messages. */
    private Object merge(final Request request)
    {
        final Subscription subscription = peer.subscriptionOf(request.number("subscription"));
        try (ReplayMerge merge = new ReplayMerge(
            subscription, archive, request.text("replay"), request.text("replay_destination"),
            request.text("live_destination"), request.number("recording"), request.number("position", 0)))
        {
            final Map<String, Object> received = new LinkedHashMap<>(
                peer.receiver(request.number("subscription")).receive(request, merge::poll, merge::isMerged));
            received.put("merged", merge.isMerged());
            return received;
        }
    }

    private Object stopReplay(final Request request)
    {
        if (request.text("replay", "").isEmpty())
        {
            archive.stopAllReplays(request.number("recording"));
        }
        else
        {
            archive.stopReplay(request.number("replay"));
        }
        return Map.of();
    }

    private Object listRecordings(final Request request)
    {
        final List<Object> recordings = new ArrayList<>();
        final RecordingDescriptorConsumer consumer = (
            session, correlation, recording, startTimestamp, stopTimestamp, startPosition, stopPosition, initialTerm,
            segmentLength, termLength, mtu, sessionId, streamId, stripped, original, source) ->
        {
            final Map<String, Object> descriptor = new LinkedHashMap<>();
            descriptor.put("recording", recording);
            descriptor.put("start_timestamp", startTimestamp);
            descriptor.put("stop_timestamp", stopTimestamp);
            descriptor.put("start", startPosition);
            descriptor.put("stop", stopPosition);
            descriptor.put("initial_term", initialTerm);
            descriptor.put("segment_length", segmentLength);
            descriptor.put("term_length", termLength);
            descriptor.put("mtu", mtu);
            descriptor.put("session", sessionId);
            descriptor.put("stream", streamId);
            descriptor.put("stripped", stripped);
            descriptor.put("original", original);
            descriptor.put("source", source);
            recordings.add(descriptor);
        };
        final int count = switch (request.text("by"))
        {
            case "id" -> archive.listRecording(request.number("recording"), consumer);
            case "uri" -> archive.listRecordingsForUri(
                request.number("from"), request.integer("count"), request.text("fragment"), stream(request), consumer);
            default -> archive.listRecordings(request.number("from"), request.integer("count"), consumer);
        };
        return Map.of("result", count, "recordings", recordings);
    }

    private Object listSubscriptions(final Request request)
    {
        final List<Object> subscriptions = new ArrayList<>();
        final RecordingSubscriptionDescriptorConsumer consumer = (session, correlation, subscription, stream, stripped) ->
            subscriptions.add(Map.of("subscription", subscription, "stream", stream, "stripped", stripped));
        final boolean isForStream = !request.text("stream", "").isEmpty();
        final int count = archive.listRecordingSubscriptions(
            request.integer("from"), request.integer("count"), request.text("fragment"),
            isForStream ? stream(request) : 0, isForStream, consumer);
        return Map.of("result", count, "subscriptions", subscriptions);
    }

    private long position(final Request request)
    {
        final long recording = request.number("recording");
        return switch (request.text("which"))
        {
            case "start" -> archive.getStartPosition(recording);
            case "stop" -> archive.getStopPosition(recording);
            case "max" -> archive.getMaxRecordedPosition(recording);
            default -> archive.getRecordingPosition(recording);
        };
    }

    /** An operation on whole segment files. Returns their number, and 0 for a detach. */
    private long segments(final Request request)
    {
        final long recording = request.number("recording");
        return switch (request.text("how"))
        {
            case "detach" ->
            {
                archive.detachSegments(recording, request.number("position"));
                yield 0;
            }
            case "delete" -> archive.deleteDetachedSegments(recording);
            case "purge" -> archive.purgeSegments(recording, request.number("position"));
            case "attach" -> archive.attachSegments(recording);
            case "migrate" -> archive.migrateSegments(recording, request.number("destination"));
            default -> throw new IllegalArgumentException("unknown way " + request.text("how"));
        };
    }

    private Object updateChannel(final Request request)
    {
        archive.updateChannel(request.number("recording"), channel(request));
        return Map.of();
    }

    private static ReplayParams replayParams(final Request request)
    {
        return new ReplayParams()
            .position(request.number("position", AeronArchive.NULL_POSITION))
            .length(request.number("length", AeronArchive.NULL_LENGTH))
            .boundingLimitCounterId(request.integer("counter", -1))
            .fileIoMaxLength(request.integer("io_length", -1));
    }

    private static ReplicationParams replicationParams(final Request request)
    {
        return new ReplicationParams()
            .dstRecordingId(request.number("destination", AeronArchive.NULL_POSITION))
            .stopPosition(request.number("position", AeronArchive.NULL_POSITION))
            .liveDestination(request.text("live", null))
            .replicationChannel(request.text("replication", null))
            .srcResponseChannel(request.text("source_response", null))
            .channelTagId(request.number("channel_tag", -1))
            .subscriptionTagId(request.number("subscription_tag", -1))
            .encodedCredentials(request.bytes("source_credentials"));
    }

    private static String channel(final Request request)
    {
        return request.text("channel");
    }

    private static int stream(final Request request)
    {
        return request.integer("stream");
    }

    private static Map<String, Object> result(final Object result)
    {
        final Map<String, Object> values = new LinkedHashMap<>();
        values.put("result", result);
        return values;
    }

    private static Map<String, Object> drained(final String name, final List<Object> events)
    {
        final List<Object> drained = List.copyOf(events);
        events.clear();
        return Map.of(name, drained);
    }

    private static CredentialsSupplier credentials(final Request request)
    {
        final byte[] key = request.bytes("challenge_key");
        return new Credentials(request.bytes("credentials"), request.bytes("challenge_answer"), key);
    }

    /** With a key, the response to a challenge is the HMAC-SHA-256 of the challenge. */
    private record Credentials(byte[] atConnect, byte[] atChallenge, byte[] key) implements CredentialsSupplier
    {
        public byte[] encodedCredentials()
        {
            return atConnect;
        }

        public byte[] onChallenge(final byte[] encodedChallenge)
        {
            if (0 == key.length)
            {
                return atChallenge;
            }
            try
            {
                final Mac mac = Mac.getInstance("HmacSHA256");
                mac.init(new SecretKeySpec(key, "HmacSHA256"));
                return mac.doFinal(encodedChallenge);
            }
            catch (final GeneralSecurityException ex)
            {
                throw new IllegalStateException(ex);
            }
        }
    }
}
