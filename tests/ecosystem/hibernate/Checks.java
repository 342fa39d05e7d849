// Flyway's migrations, Hibernate's validation, and what an application sees of expired rows.
import jakarta.persistence.OptimisticLockException;
import java.sql.DriverManager;
import org.flywaydb.core.Flyway;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;

public class Checks {
    static SessionFactory factory(String url, String mode) {
        return new Configuration()
                .addAnnotatedClass(Cart.class)
                .setProperty("hibernate.connection.url", url)
                .setProperty("hibernate.connection.username", "app")
                .setProperty("hibernate.hbm2ddl.auto", mode)
                .buildSessionFactory();
    }

    static void check(boolean holds, String what) {
        if (!holds) throw new AssertionError(what);
        System.out.println("ok: " + what);
    }

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        Flyway flyway = Flyway.configure().dataSource(url, "app", null).locations("filesystem:migrations").load();
        check(flyway.migrate().migrationsExecuted == 2, "two migrations");
        check(flyway.migrate().migrationsExecuted == 0, "and no more");
        flyway.validate();

        // Neither mode wants to change anything.
        factory(url, "validate").close();
        factory(url, "update").close();

        try (SessionFactory factory = factory(url, "validate");
                var other = DriverManager.getConnection(url, "app", null)) {
            factory.inTransaction(session -> {
                for (int id = 1; id <= 6; id++) session.persist(new Cart(id, "user " + id));
            });
            other.createStatement().execute("SET ttl.preserve_ts = on");
            var old = "UPDATE cart SET _ts = '2001-01-01' WHERE id ";
            other.createStatement().execute(old + "<= 3");
            factory.inTransaction(session -> {
                long live = session.createSelectionQuery("SELECT count(*) FROM Cart", Long.class).getSingleResult();
                check(live == 3, "expired rows are hidden");
                check(session.find(Cart.class, 1) == null, "by key, too");
                session.merge(new Cart(1, "user 1"));
                session.persist(new Cart(2, "user 2"));
            });
            boolean refused = false;
            try {
                factory.inTransaction(session -> {
                    session.find(Cart.class, 4).ttl = 60;
                    try {
                        other.createStatement().execute(old + "= 4");
                    } catch (java.sql.SQLException error) {
                        throw new IllegalStateException(error);
                    }
                });
            } catch (OptimisticLockException error) {
                refused = true;
            }
            check(refused, "an object that expired since it was read is not updated");
        }
    }
}
