import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.checksum.Checksums;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.archive.status.RecordingPos;
import org.agrona.concurrent.status.CountersReader;

import java.io.File;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.zip.CRC32;

/** The real archive and its client, controlled by lines of text. It records pattern messages of its own publications. */
public final class JavaArchive
{
    private static final long TIMEOUT_NS = 20_000_000_000L;
    private Archive archive;
    private AeronArchive client;

    public static void main(final String[] args) throws Exception
    {
        Lines.serve(new JavaArchive()::perform);
        System.exit(0);
    }

    private Object perform(final Request request)
    {
        return switch (request.operation)
        {
            case "open" -> open(request);
            case "record" -> record(request);
            case "replay" -> replay(request);
            case "purge" -> Map.of("files", client.purgeRecording(request.number("recording")));
            case "close" -> close();
            default -> throw new IllegalArgumentException("unknown operation " + request.operation);
        };
    }

    /** Starts an archive on the driver of a directory. A requested checksum is stored in each frame's session id. */
    private Map<String, Object> open(final Request request)
    {
        final Archive.Context context = new Archive.Context()
            .aeronDirectoryName(request.text("dir"))
            .archiveDir(new File(request.text("archive_dir")))
            .controlChannelEnabled(false)
            .localControlChannel("aeron:ipc?term-length=64k")
            .replicationChannel("aeron:udp?endpoint=localhost:0")
            .segmentFileLength(request.integer("segment_length"))
            .archiveClientContext(new AeronArchive.Context().controlResponseChannel("aeron:udp?endpoint=localhost:0"))
            .threadingMode(ArchiveThreadingMode.SHARED);
        if (!request.text("checksum", "").isEmpty())
        {
            context.recordChecksum(Checksums.newInstance(request.text("checksum")));
        }
        archive = Archive.launch(context);
        client = AeronArchive.connect(new AeronArchive.Context()
            .aeronDirectoryName(request.text("dir"))
            .controlRequestChannel("aeron:ipc?term-length=64k")
            .controlResponseChannel("aeron:ipc?term-length=64k"));
        return Map.of();
    }

    /** Publishes messages and waits until they are recorded. With {@code stop}, then stops the recording and closes. */
    private Map<String, Object> record(final Request request)
    {
        final String channel = request.text("channel");
        final int stream = request.integer("stream");
        final long subscription = client.startRecording(channel, stream, SourceLocation.LOCAL);
        final ExclusivePublication publication = client.context().aeron().addExclusivePublication(channel, stream);
        final CountersReader counters = client.context().aeron().countersReader();
        final int counter = recordingCounter(counters, publication.sessionId());
        final long recording = RecordingPos.getRecordingId(counters, counter);
        final long start = counters.getCounterValue(counter);
        final Object sent = new Publisher(publication).publish(request).get("sent");
        await(() -> counters.getCounterValue(counter) == publication.position());
        final long position = publication.position();
        if (request.flag("stop"))
        {
            client.stopRecording(subscription);
            publication.close();
            await(() -> client.getStopPosition(recording) == position);
        }
        return Map.of(
            "recording", recording, "start", start, "position", position, "sent", sent,
            "session", publication.sessionId(), "stream", stream);
    }

    /** Replays a whole recording. Returns its positions, and number and checksum of its messages. */
    private Map<String, Object> replay(final Request request)
    {
        final long recording = request.number("recording");
        final long start = client.getStartPosition(recording);
        final long stop = client.getStopPosition(recording);
        final CRC32 checksum = new CRC32();
        final long[] count = {0};
        final FragmentAssembler assembler = new FragmentAssembler((buffer, offset, length, header) ->
        {
            final byte[] message = new byte[length];
            buffer.getBytes(offset, message);
            checksum.update(message);
            count[0]++;
        });
        try (Subscription subscription = client.replay(recording, start, stop - start, "aeron:ipc", 1))
        {
            await(() -> subscription.imageCount() == 1);
            final Image image = subscription.imageAtIndex(0);
            await(() ->
            {
                subscription.poll(assembler, 100);
                return image.position() >= stop || image.isClosed();
            });
        }
        return Map.of("start", start, "stop", stop, "count", count[0], "checksum", checksum.getValue());
    }

    private static int recordingCounter(final CountersReader counters, final int session)
    {
        await(() -> RecordingPos.findCounterIdBySession(counters, session, -1) != CountersReader.NULL_COUNTER_ID);
        return RecordingPos.findCounterIdBySession(counters, session, -1);
    }

    private static void await(final BooleanSupplier condition)
    {
        final long deadlineNs = System.nanoTime() + TIMEOUT_NS;
        while (!condition.getAsBoolean())
        {
            if (System.nanoTime() > deadlineNs)
            {
                throw new IllegalStateException("the archive did not get there in time");
            }
            Thread.yield();
        }
    }

    private Map<String, Object> close()
    {
        client.close();
        archive.close();
        return Map.of();
    }
}
