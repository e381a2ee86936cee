import io.aeron.archive.client.AeronArchive;

/**
 * Lists all recordings of an archive with the real client, several times.
 * Prints the duration in milliseconds and the number of recordings of each listing.
 */
public final class ListRecordings
{
    public static void main(final String[] args)
    {
        final String channel = "aeron:ipc?term-length=" + args[1];
        final int count = Integer.parseInt(args[2]);
        final AeronArchive.Context context = new AeronArchive.Context()
            .aeronDirectoryName(args[0])
            .controlRequestChannel("aeron:ipc?term-length=64k")
            .controlRequestStreamId(10)
            .controlResponseChannel(channel)
            .controlResponseStreamId(20);
        try (AeronArchive archive = AeronArchive.connect(context))
        {
            for (int run = 0, runs = Integer.parseInt(args[3]); run < runs; run++)
            {
                final long start = System.nanoTime();
                final int listed = archive.listRecordings(
                    0, count, (c, i, recording, s, e, sp, ep, t, sl, tl, m, session, stream, sc, oc, source) -> {});
                System.out.println(
                    "{\"ms\": " + (System.nanoTime() - start) / 1e6 + ", \"count\": " + listed + "}");
            }
        }
    }
}
