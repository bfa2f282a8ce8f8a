package PACKAGE;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A small serving program that fails in the way that SERVE_STEP names. Names in capitals vary. */
public class CLASSNAME {
    static final String ARGUMENT = System.getenv().getOrDefault("SERVE_ARGUMENT", "");

    static final int SECONDS = Integer.parseInt(System.getenv().getOrDefault("SERVE_SECONDS", "1"));

    static class LOADERNAME {
        Object apply(String step) throws Exception {
            List<Object> kept = new ArrayList<>();
            switch (step) {
                case "heap":
                    while (true) kept.add(new float[1 << 20]);
                case "array":
                    return new float[Integer.MAX_VALUE];
                case "direct":
                    while (true) kept.add(ByteBuffer.allocateDirect(4 << 20));
                case "metaspace":
                    while (true) {
                        ClassLoader loader = new ClassLoader() {};
                        kept.add(Proxy.newProxyInstance(loader, new Class<?>[] {Runnable.class}, (a, b, c) -> null));
                    }
                case "library":
                    System.loadLibrary(ARGUMENT);
                    return null;
                case "library-file":
                    System.load(ARGUMENT);
                    return null;
                case "native-method":
                    return nativeCreate(ARGUMENT);
                case "helper":
                    return new Helper().weights();
                case "by-name":
                    return Class.forName(ARGUMENT).getDeclaredConstructor().newInstance();
                case "map":
                    try (FileChannel channel = FileChannel.open(Path.of(ARGUMENT), StandardOpenOption.READ)) {
                        return channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
                    }
                case "write":
                    return Files.write(Path.of(ARGUMENT), new byte[1 << 20]);
                case "folder":
                    return Files.createDirectories(Path.of(ARGUMENT));
                case "fetch": {
                    HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(SECONDS)).build();
                    HttpRequest request = HttpRequest.newBuilder(URI.create(ARGUMENT)).timeout(Duration.ofSeconds(SECONDS)).build();
                    HttpResponse<byte[]> response = client.send(request, HttpResponse.BodyHandlers.ofByteArray());
                    return response.body();
                }
                case "url":
                    var connection = URI.create(ARGUMENT).toURL().openConnection();
                    connection.setConnectTimeout(1000 * SECONDS);
                    connection.setReadTimeout(1000 * SECONDS);
                    return connection.getInputStream().readAllBytes();
                case "future":
                    return Executors.newSingleThreadExecutor(r -> {
                        Thread thread = new Thread(r, "scorer-1");
                        thread.setDaemon(true);
                        return thread;
                    }).submit(() -> { new CountDownLatch(1).await(); return 1; }).get(1, TimeUnit.SECONDS);
                case "completable":
                    return new CompletableFuture<float[]>().orTimeout(1, TimeUnit.SECONDS).join();
                case "wild": {
                    Field field = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
                    field.setAccessible(true);
                    Object unsafe = field.get(null);
                    return unsafe.getClass().getMethod("getLong", long.class).invoke(unsafe, 8L);
                }
                default:
                    return null;
            }
        }

        native long nativeCreate(String model);
    }

    static class Helper {
        float[] weights() { return new float[4]; }
    }

    static Object METHODNAME(String step) throws Exception {
        return new LOADERNAME().apply(step);
    }

    static Object WRAPPERNAME(String step) {
        try {
            return METHODNAME(step);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (Exception error) {
            throw new IllegalStateException(System.getenv("SERVE_SENTENCE").formatted(System.getenv("SERVE_MODEL")), error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String step = System.getenv("SERVE_STEP");
        String depth = System.getenv().getOrDefault("SERVE_DEPTH", "0");
        if (depth.equals("0")) {
            METHODNAME(step);
        } else if (depth.equals("1")) {
            WRAPPERNAME(step);
        } else {
            Thread thread = new Thread(() -> WRAPPERNAME(step), "inference-worker-" + depth);
            thread.start();
            thread.join();
        }
        System.out.println("server ready");
    }
}
