import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.ByteOrder;
import java.util.Arrays;

/** The content of test messages: message n has n in its first eight bytes, then (n + index) mod 256 in each byte. */
final class Pattern
{
    private static final int LONGEST = 17 * 1024 * 1024;
    private static final byte[] RAMP = new byte[LONGEST + 256];
    private static final byte[] SCRATCH = new byte[LONGEST];

    static
    {
        for (int i = 0; i < RAMP.length; i++)
        {
            RAMP[i] = (byte)i;
        }
    }

    private final UnsafeBuffer number = new UnsafeBuffer(new byte[8]);

    void write(final MutableDirectBuffer target, final int offset, final int length, final long n)
    {
        target.putBytes(offset, RAMP, (int)(n & 0xff), length);
        number.putLong(0, n, ByteOrder.LITTLE_ENDIAN);
        target.putBytes(offset, number, 0, Math.min(8, length));
    }

    boolean matches(final DirectBuffer source, final int offset, final int length, final long n)
    {
        number.putLong(0, n, ByteOrder.LITTLE_ENDIAN);
        final int head = Math.min(8, length);
        for (int i = 0; i < head; i++)
        {
            if (source.getByte(offset + i) != number.getByte(i))
            {
                return false;
            }
        }
        source.getBytes(offset, SCRATCH, 0, length);
        final int start = (int)(n & 0xff);
        return Arrays.equals(SCRATCH, head, length, RAMP, start + head, start + length);
    }
}
