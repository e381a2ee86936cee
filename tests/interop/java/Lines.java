import io.aeron.archive.client.ArchiveException;
import io.aeron.exceptions.RegistrationException;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.function.Function;

/** Responds to each line of standard input with a line of standard output. All other output goes to standard error. */
final class Lines
{
    private Lines()
    {
    }

    static void serve(final Function<Request, Object> perform) throws IOException
    {
        final PrintStream answers = System.out;
        System.setOut(System.err);
        final BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = requests.readLine(); null != line; line = requests.readLine())
        {
            answers.println(Json.write(answer(perform, new Request(line))));
            answers.flush();
        }
    }

    private static Map<String, Object> answer(final Function<Request, Object> perform, final Request request)
    {
        try
        {
            return Map.of("ok", perform.apply(request));
        }
        catch (final Throwable error)
        {
            return Map.of("error", Map.of(
                "type", error.getClass().getSimpleName(), "code", code(error), "text", String.valueOf(error.getMessage())));
        }
    }

    private static int code(final Throwable error)
    {
        if (error instanceof RegistrationException refused)
        {
            return refused.errorCodeValue();
        }
        return error instanceof ArchiveException refused ? refused.errorCode() : 0;
    }
}
