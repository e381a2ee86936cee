import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** Writes maps, lists, texts, numbers and booleans as one line of JSON. */
final class Json
{
    private Json()
    {
    }

    static String write(final Object value)
    {
        final StringBuilder out = new StringBuilder();
        append(out, value);
        return out.toString();
    }

    private static void append(final StringBuilder out, final Object value)
    {
        if (value instanceof Map<?, ?> map)
        {
            appendMap(out, map);
        }
        else if (value instanceof List<?> list)
        {
            appendList(out, list);
        }
        else if (value instanceof Number || value instanceof Boolean || null == value)
        {
            out.append(value);
        }
        else
        {
            appendText(out, value.toString());
        }
    }

    private static void appendMap(final StringBuilder out, final Map<?, ?> map)
    {
        out.append('{');
        String separator = "";
        for (final Map.Entry<?, ?> entry : map.entrySet())
        {
            out.append(separator);
            appendText(out, entry.getKey().toString());
            out.append(':');
            append(out, entry.getValue());
            separator = ",";
        }
        out.append('}');
    }

    private static void appendList(final StringBuilder out, final List<?> list)
    {
        out.append('[');
        for (final Iterator<?> i = list.iterator(); i.hasNext();)
        {
            append(out, i.next());
            out.append(i.hasNext() ? "," : "");
        }
        out.append(']');
    }

    private static void appendText(final StringBuilder out, final String text)
    {
        out.append('"');
        for (int i = 0; i < text.length(); i++)
        {
            final char c = text.charAt(i);
            if ('"' == c || '\\' == c)
            {
                out.append('\\').append(c);
            }
            else if (c < 0x20 || c > 0x7e)
            {
                out.append(String.format("\\u%04x", (int)c));
            }
            else
            {
                out.append(c);
            }
        }
        out.append('"');
    }
}
