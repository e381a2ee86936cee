import io.aeron.security.Authenticator;
import io.aeron.security.AuthenticatorSupplier;
import io.aeron.security.SessionProxy;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** Accepts the credentials {@code secret}, challenges {@code ask} and expects {@code riddle:answer}, rejects all others. */
public final class ChallengingAuthenticator implements AuthenticatorSupplier, Authenticator
{
    private static final byte[] CHALLENGE = "riddle".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] NOBODY = {};
    private final Map<Long, String> shown = new HashMap<>();

    public Authenticator get()
    {
        return this;
    }

    public void onConnectRequest(final long sessionId, final byte[] encodedCredentials, final long nowMs)
    {
        shown.put(sessionId, new String(encodedCredentials, StandardCharsets.US_ASCII));
    }

    public void onChallengeResponse(final long sessionId, final byte[] encodedCredentials, final long nowMs)
    {
        shown.put(sessionId, new String(encodedCredentials, StandardCharsets.US_ASCII));
    }

    public void onConnectedSession(final SessionProxy session, final long nowMs)
    {
        switch (shown.get(session.sessionId()))
        {
            case "secret" -> session.authenticate(NOBODY);
            case "ask" -> session.challenge(CHALLENGE);
            default -> session.reject();
        }
    }

    public void onChallengedSession(final SessionProxy session, final long nowMs)
    {
        switch (shown.get(session.sessionId()))
        {
            case "ask" -> {}
            case "riddle:answer" -> session.authenticate(NOBODY);
            default -> session.reject();
        }
    }
}
