// What an application sees of expired rows, by JDBC alone.
import java.io.StringReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import org.postgresql.PGConnection;

public class Jdbc {
    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
        System.out.println("ok: " + what);
    }

    static int count(PreparedStatement count) throws Exception {
        try (ResultSet result = count.executeQuery()) {
            result.next();
            return result.getInt(1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (Connection db = DriverManager.getConnection(arguments[0], "app", null)) {
            System.out.println("VERSION pgjdbc " + db.getMetaData().getDriverVersion());
            Statement any = db.createStatement();
            any.execute("CREATE TABLE cart (id integer PRIMARY KEY, owner text NOT NULL UNIQUE)");
            PreparedStatement enable = db.prepareStatement("SELECT ttl.enable('cart', ?)");
            enable.setString(1, "30 days");
            enable.execute();

            PreparedStatement insert = db.prepareStatement("INSERT INTO cart (id, owner) VALUES (?, ?)");
            for (int id = 1; id <= 20; id++) {
                insert.setInt(1, id);
                insert.setString(2, "user " + id);
                insert.addBatch();
            }
            insert.executeBatch();
            var copied = db.unwrap(PGConnection.class).getCopyAPI();
            copied.copyIn("COPY cart (id, owner) FROM STDIN", new StringReader("21\tuser 21\n22\tuser 22\n"));

            // Often enough for a prepared statement of the server.
            PreparedStatement count = db.prepareStatement("SELECT count(*) FROM cart");
            for (int n = 0; n < 10; n++) count(count);
            any.execute("SET ttl.preserve_ts = on");
            any.execute("UPDATE cart SET _ts = ttl.now() - interval '2 hours' WHERE id <= 10");
            any.execute("RESET ttl.preserve_ts");
            check(count(count) == 22, "live");
            PreparedStatement change = db.prepareStatement("SELECT ttl.set_default('cart', ?)");
            change.setInt(1, 3600);
            change.execute();
            check(count(count) == 12, "a prepared statement follows the default");

            for (int id = 1; id <= 5; id++) {
                insert.setInt(1, id);
                insert.setString(2, "user " + id);
                insert.addBatch();
            }
            insert.executeBatch();
            check(count(count) == 17, "keys of expired rows are free in a batch");

            Statement updatable = db.createStatement(ResultSet.TYPE_SCROLL_SENSITIVE, ResultSet.CONCUR_UPDATABLE);
            ResultSet rows = updatable.executeQuery("SELECT id, owner FROM cart WHERE id = 1");
            check(rows.next(), "a row to be updated");
            rows.updateString("owner", "somebody");
            rows.updateRow();
            check(count(count) == 17, "an updatable result");
        }
    }
}
