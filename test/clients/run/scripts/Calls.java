import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;

/** The modes of a client with HttpClient. Arguments: the URL, the mode, and a file that "up" sends. */
class Calls {
    public static void main(String[] args) throws Exception {
        var mode = args[1];
        var request = HttpRequest.newBuilder(URI.create(args[0]));
        if (mode.equals("held")) request.POST(BodyPublishers.ofString("hello"));
        if (mode.equals("up")) request.POST(BodyPublishers.ofFile(Path.of(args[2])));
        var answer = HttpClient.newHttpClient().send(request.build(), BodyHandlers.ofInputStream());
        try (InputStream body = answer.body()) {
            if (mode.equals("down")) measure(body);
            else if (mode.equals("stream") || mode.equals("revoked")) show(body);
            else System.out.println(answer.statusCode() + " " + new String(body.readAllBytes()));
        }
        System.exit(answer.statusCode() == 200 ? 0 : 1);
    }

    private static void measure(InputStream body) throws Exception {
        var digest = MessageDigest.getInstance("SHA-256");
        var bytes = new byte[65_536];
        long size = 0;
        for (int read; (read = body.read(bytes)) >= 0; size += read) digest.update(bytes, 0, read);
        System.out.println(size + " " + HexFormat.of().formatHex(digest.digest()));
    }

    private static void show(InputStream body) throws Exception {
        var bytes = new byte[65_536];
        for (int read; (read = body.read(bytes)) >= 0; ) {
            System.out.write(bytes, 0, read);
            System.out.flush();
        }
    }
}
