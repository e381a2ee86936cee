import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Collections;
import java.util.TreeMap;
import java.util.jar.JarFile;

/** Prints the names of Aeron's settings, with the program that uses each: the constants of the public classes in a jar. */
public final class ConfigurationNames
{
    public static void main(final String[] args) throws Exception
    {
        final TreeMap<String, String> owners = new TreeMap<>();
        try (JarFile jar = new JarFile(args[0]))
        {
            for (final var entry : Collections.list(jar.entries()))
            {
                final String name = entry.getName();
                if (name.startsWith("io/aeron/") && name.endsWith(".class"))
                {
                    addNames(owners, name.substring(0, name.length() - ".class".length()).replace('/', '.'));
                }
            }
        }
        owners.forEach((name, owner) -> System.out.println(owner + " " + name));
    }

    private static void addNames(final TreeMap<String, String> owners, final String className)
    {
        try
        {
            final Class<?> type =
                Class.forName(className, false, ConfigurationNames.class.getClassLoader());
            if (!Modifier.isPublic(type.getModifiers()))
            {
                return;
            }
            for (final Field field : type.getDeclaredFields())
            {
                if (Modifier.isPublic(field.getModifiers()) && Modifier.isStatic(field.getModifiers()) &&
                    field.getType() == String.class && field.get(null) instanceof String text &&
                    text.matches("aeron(\\.[A-Za-z0-9_]+)+"))
                {
                    owners.merge(text, owner(className), ConfigurationNames::stronger);
                }
            }
        }
        catch (final Throwable ignored)
        {
            // A class that needs another library has no settings.
        }
    }

    private static String owner(final String className)
    {
        if (className.startsWith("io.aeron.driver."))
        {
            return "driver";
        }
        final boolean isServer =
            className.startsWith("io.aeron.archive.") && !className.startsWith("io.aeron.archive.client.");
        return isServer ? "archive" : "other";
    }

    /** A setting that the driver uses is a setting of the driver, then of the archive. */
    private static String stronger(final String one, final String other)
    {
        for (final String owner : new String[]{ "driver", "archive" })
        {
            if (owner.equals(one) || owner.equals(other))
            {
                return owner;
            }
        }
        return "other";
    }
}
