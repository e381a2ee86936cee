import java.lang.reflect.InvocationTargetException;
import java.util.HexFormat;

/**
 * Runs the cases that the program `sbe_cases` wrote. Prints a line for each difference, and the number of messages last.
 */
public final class SbeCases {
    public static void main(final String[] arguments) throws ReflectiveOperationException {
        int messages = 0;
        for (int index = 0; index < Integer.parseInt(arguments[0]); index++) {
            final String name = "case" + index;
            final Class<?> codecs = Class.forName(name + ".Case" + index);
            try {
                messages += compare(name, codecs);
            } catch (final InvocationTargetException failure) {
                System.out.println(name + ": " + failure.getCause());
            }
        }
        System.out.println(messages + " messages");
    }

    private static int compare(final String name, final Class<?> codecs) throws ReflectiveOperationException {
        final HexFormat hex = HexFormat.of();
        final byte[][] theirs = (byte[][])codecs.getMethod("encode").invoke(null);
        final String[] expected = (String[])codecs.getMethod("expected").invoke(null);
        final byte[][] ours = new byte[expected.length][];
        for (int index = 0; index < expected.length; index++) {
            ours[index] = hex.parseHex(expected[index]);
            final String encoded = hex.formatHex(theirs[index]);
            if (!encoded.equals(expected[index])) {
                System.out.println(name + ", message " + index + ": Java " + encoded + ", ours " + expected[index]);
            }
        }
        codecs.getMethod("check", byte[][].class).invoke(null, (Object)ours);
        return expected.length;
    }
}
