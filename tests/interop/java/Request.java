import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

/** One request line: an operation and its named values, separated by tabs. */
final class Request
{
    final String operation;
    private final Map<String, String> values = new HashMap<>();

    Request(final String line)
    {
        final String[] parts = line.split("\t");
        operation = parts[0];
        for (int i = 1; i < parts.length; i++)
        {
            final int equals = parts[i].indexOf('=');
            values.put(parts[i].substring(0, equals), parts[i].substring(equals + 1));
        }
    }

    String text(final String name)
    {
        final String value = values.get(name);
        if (null == value)
        {
            throw new IllegalArgumentException(operation + " needs " + name);
        }
        return value;
    }

    String text(final String name, final String otherwise)
    {
        return values.getOrDefault(name, otherwise);
    }

    int integer(final String name)
    {
        return Integer.parseInt(text(name));
    }

    int integer(final String name, final int otherwise)
    {
        return values.containsKey(name) ? integer(name) : otherwise;
    }

    long number(final String name)
    {
        return Long.parseLong(text(name));
    }

    long number(final String name, final long otherwise)
    {
        return values.containsKey(name) ? number(name) : otherwise;
    }

    boolean flag(final String name)
    {
        return Boolean.parseBoolean(values.get(name));
    }

    int[] integers(final String name)
    {
        final String[] parts = text(name).split(",");
        final int[] result = new int[parts.length];
        for (int i = 0; i < parts.length; i++)
        {
            result[i] = Integer.parseInt(parts[i]);
        }
        return result;
    }

    byte[] bytes(final String name)
    {
        return HexFormat.of().parseHex(text(name, ""));
    }

    byte[] ascii(final String name)
    {
        return text(name, "").getBytes(StandardCharsets.US_ASCII);
    }
}
