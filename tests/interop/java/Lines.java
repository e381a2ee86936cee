import io.aeron.exceptions.RegistrationException;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.function.Function;

/** Answers each line of standard input with one of standard output; whatever else is printed goes to standard error. */
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
            final int code = error instanceof RegistrationException refused ? refused.errorCodeValue() : 0;
            return Map.of("error", Map.of(
                "type", error.getClass().getSimpleName(), "code", code, "text", String.valueOf(error.getMessage())));
        }
    }
}
