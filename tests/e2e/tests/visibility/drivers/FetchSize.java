import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;

/** Reads a result in pieces, pauses in its midst, and says what it has read, and what a new query finds. */
class FetchSize {
    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        int seconds = Integer.parseInt(arguments[1]);
        try (Connection connection = DriverManager.getConnection(url, "postgres", "")) {
            try (Statement statement = connection.createStatement()) {
                statement.execute("CREATE TABLE t (id integer PRIMARY KEY)");
                statement.execute("SELECT ttl.enable('t', " + seconds + ")");
                statement.execute("INSERT INTO t SELECT generate_series(1, 1000)");
            }
            connection.setAutoCommit(false);
            int read = 0;
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(50);
                try (ResultSet rows = statement.executeQuery("SELECT id FROM t ORDER BY id")) {
                    while (rows.next()) {
                        if (++read == 10) {
                            Thread.sleep(seconds * 1000L + 500);
                        }
                    }
                }
            }
            try (Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("SELECT count(*) FROM t")) {
                rows.next();
                System.out.println(read + " " + rows.getInt(1));
            }
        }
    }
}
