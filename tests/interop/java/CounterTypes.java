import io.aeron.AeronCounters;
import io.aeron.driver.status.SystemCounterDescriptor;
import java.lang.reflect.Field;

/** Prints name and id of each type of counters of Aeron. With an argument: of each system counter. */
public final class CounterTypes
{
    private static final String END = "_TYPE_ID";

    public static void main(final String[] args) throws Exception
    {
        if (args.length > 0)
        {
            for (final SystemCounterDescriptor counter : SystemCounterDescriptor.values())
            {
                System.out.println(counter.name().toLowerCase() + " " + counter.id());
            }
            return;
        }
        for (final Field field : AeronCounters.class.getFields())
        {
            final String name = field.getName();
            if (name.endsWith(END))
            {
                final String start = name.substring(0, name.length() - END.length());
                System.out.println(start.toLowerCase() + " " + field.getInt(null));
            }
        }
    }
}
