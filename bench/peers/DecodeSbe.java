import bench.BookDecoder;
import bench.MessageHeaderDecoder;
import bench.TradeDecoder;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.ToLongFunction;

import org.agrona.concurrent.UnsafeBuffer;

/**
 * Reads all fields of SBE messages with the flyweights of the reference implementation, in a loop.
 *
 * Arguments: {@code ROLE FILE LENGTH name=value...}. The file has messages of one length, one after the other. A rate
 * is in rows: messages, or entries of a group.
 */
public final class DecodeSbe
{
    private static final MessageHeaderDecoder HEADER = new MessageHeaderDecoder();
    private static final TradeDecoder TRADE = new TradeDecoder();
    private static final BookDecoder BOOK = new BookDecoder();

    private static long rows;

    public static void main(final String[] arguments) throws Exception
    {
        final UnsafeBuffer messages = new UnsafeBuffer(ByteBuffer.wrap(Files.readAllBytes(Path.of(arguments[1]))));
        final int length = Integer.parseInt(arguments[2]);
        final double seconds = setting(arguments, "seconds");
        final double warmup = setting(arguments, "warmup");
        final ToLongFunction<UnsafeBuffer> pass =
            "fixed".equals(arguments[0]) ? buffer -> trades(buffer, length) : buffer -> books(buffer, length);
        long sum = 0;
        double rate = 0;
        for (final double part : new double[]{ warmup, seconds - warmup })
        {
            rows = 0;
            final long begin = System.nanoTime();
            while (System.nanoTime() - begin < part * 1e9)
            {
                sum += pass.applyAsLong(messages);
            }
            rate = rows / ((System.nanoTime() - begin) / 1e9);
        }
        // The sum is printed, so that the compiler cannot leave out the reads.
        System.err.println("sum " + sum);
        System.out.println("{\"rate\": " + rate + "}");
    }

    private static long trades(final UnsafeBuffer buffer, final int length)
    {
        long sum = 0;
        for (int offset = 0; offset < buffer.capacity(); offset += length)
        {
            TRADE.wrapAndApplyHeader(buffer, offset, HEADER);
            sum += TRADE.ts() + (long)TRADE.px() + TRADE.qty() + TRADE.sym() + TRADE.side() + TRADE.seq() + TRADE.flags();
            rows++;
        }
        return sum;
    }

    private static long books(final UnsafeBuffer buffer, final int length)
    {
        long sum = 0;
        for (int offset = 0; offset < buffer.capacity(); offset += length)
        {
            BOOK.wrapAndApplyHeader(buffer, offset, HEADER);
            sum += BOOK.ts();
            for (final BookDecoder.EntriesDecoder entry : BOOK.entries())
            {
                sum += entry.px() + entry.qty() + entry.level() + entry.side() + entry.orders();
                rows++;
            }
        }
        return sum;
    }

    private static double setting(final String[] arguments, final String name)
    {
        for (final String argument : arguments)
        {
            if (argument.startsWith(name + "="))
            {
                return Double.parseDouble(argument.substring(name.length() + 1));
            }
        }
        throw new IllegalArgumentException(name + " is missing");
    }
}
