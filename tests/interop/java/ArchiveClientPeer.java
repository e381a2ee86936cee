import java.util.HashMap;
import java.util.Map;

/**
 * The real archive client, controlled by lines of text. It has the operations of JavaPeer, those of ArchiveClient for the
 * client {@code client}, and those of PersistentReader. archive_peers.py describes the protocol.
 */
public final class ArchiveClientPeer
{
    private final JavaPeer peer = new JavaPeer();
    private final Map<Long, ArchiveClient> clients = new HashMap<>();
    private PersistentReader reader;
    private long nextClient = 1;

    public static void main(final String[] args) throws Exception
    {
        Lines.serve(new ArchiveClientPeer()::perform);
        System.exit(0);
    }

    private Object perform(final Request request)
    {
        if ("connect_archive".equals(request.operation))
        {
            final ArchiveClient client = new ArchiveClient(peer, request);
            clients.put(nextClient, client);
            return client.connected(nextClient++);
        }
        if ("persistent_open".equals(request.operation))
        {
            reader = new PersistentReader(peer, request);
            return Map.of();
        }
        if (request.operation.startsWith("persistent_"))
        {
            return reader.perform(request);
        }
        if ("disconnect".equals(request.operation))
        {
            clients.values().forEach(ArchiveClient::close);
            clients.clear();
        }
        if (request.text("client", "").isEmpty())
        {
            return peer.perform(request);
        }
        final long id = request.number("client");
        final ArchiveClient client = "close_archive".equals(request.operation) ? clients.remove(id) : clients.get(id);
        return client.perform(request);
    }
}
