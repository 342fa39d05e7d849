import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;
import java.sql.Types;

/** Gives the default of a table as each type that a program may have it in, and says what it became. */
class Seconds {
    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0], "postgres", "");
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE t (id integer PRIMARY KEY)");
            statement.execute("SELECT ttl.enable('t', '1 second')");
            Object[] values = {
                11, 12L, (short) 13, new java.math.BigDecimal("14.0"), 15.0, 16.0f, "17 seconds", "18",
                new org.postgresql.util.PGInterval("19 seconds")
            };
            StringBuilder told = new StringBuilder();
            for (Object value : values) {
                try (PreparedStatement change = connection.prepareStatement("SELECT ttl.set_default('t', ?)")) {
                    change.setObject(1, value);
                    // As a named statement, too, with binary parameters.
                    for (int time = 0; time < 6; time++) {
                        change.execute();
                    }
                }
                told.append(present(statement)).append(' ');
            }
            try (PreparedStatement change = connection.prepareStatement("SELECT ttl.set_default('t', ?)")) {
                change.setObject(1, "20 seconds", Types.OTHER);
                change.execute();
                told.append(present(statement)).append(' ');
                change.setNull(1, Types.INTEGER);
                change.execute();
                told.append(present(statement));
            }
            System.out.println(told);
        }
    }

    private static String present(Statement statement) throws Exception {
        try (ResultSet rows = statement.executeQuery("SELECT default_ttl FROM ttl.tables")) {
            rows.next();
            return rows.getString(1);
        }
    }
}
