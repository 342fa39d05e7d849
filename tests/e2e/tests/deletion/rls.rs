//! C7: row-level security does not keep expired rows from deletion, and cascades and triggers still
//! see their rows.

use ttl_ext_e2e::Server;

#[test]
fn policies_do_not_keep_expired_rows() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("app");
    database.connect().run(
        "CREATE ROLE tenant LOGIN; CREATE SCHEMA AUTHORIZATION tenant; GRANT CREATE ON SCHEMA public TO tenant",
    );
    let mut disk = database.disk();
    let kinds = [
        ("none_allowed", ""),
        (
            "restricted",
            "CREATE POLICY a ON {t} USING (true); CREATE POLICY b ON {t} AS RESTRICTIVE USING (false)",
        ),
        (
            "no_delete",
            "CREATE POLICY a ON {t} FOR SELECT USING (true); CREATE POLICY b ON {t} FOR DELETE USING (false)",
        ),
        (
            "failing",
            "CREATE POLICY a ON {t} USING (1 / (id - id) = 1)",
        ),
    ];
    for (name, policies) in kinds {
        for by_sql in [false, true] {
            let table = format!("tenant.{name}_{by_sql}");
            let mut owner = database.connect_as("tenant");
            owner.run(&format!(
                "CREATE TABLE {table} (id integer PRIMARY KEY); SELECT ttl.enable('{table}', 3600);
                 INSERT INTO {table} VALUES (0)"
            ));
            if by_sql {
                owner.run(&format!(
                    "CREATE FUNCTION {table}_nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
                     CREATE TRIGGER nothing BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {table}_nothing()"
                ));
            }
            owner.run(&policies.replace("{t}", &table));
            owner.run(&format!(
                "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; ALTER TABLE {table} FORCE ROW LEVEL SECURITY"
            ));
            disk.insert_expired(&table, 1, 100);
            disk.wait_for_ids(&table, "0");
            let error =
                "SELECT blocked_rows, last_error FROM ttl.stats WHERE relation = '{t}'::regclass";
            assert_eq!(
                disk.rows(&error.replace("{t}", &table)),
                [["0", "∅"]],
                "{table}"
            );
        }
    }
}

/// A cascade to a table with FORCE ROW LEVEL SECURITY leaves no orphans.
#[test]
fn cascades_into_protected_tables() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("app");
    let mut disk = database.disk();
    disk.run(
        "CREATE ROLE tenant; CREATE SCHEMA AUTHORIZATION tenant; SET ROLE tenant;
         CREATE TABLE tenant.t (id integer PRIMARY KEY); SELECT ttl.enable('tenant.t', 3600);
         CREATE TABLE tenant.child (id integer REFERENCES tenant.t ON DELETE CASCADE);
         INSERT INTO tenant.t SELECT n FROM generate_series(0, 100) AS n;
         INSERT INTO tenant.child SELECT n FROM generate_series(0, 100) AS n;
         ALTER TABLE tenant.t ENABLE ROW LEVEL SECURITY; ALTER TABLE tenant.t FORCE ROW LEVEL SECURITY;
         ALTER TABLE tenant.child ENABLE ROW LEVEL SECURITY; ALTER TABLE tenant.child FORCE ROW LEVEL SECURITY;
         RESET ROLE",
    );
    disk.run_preserving("UPDATE tenant.t SET _ts = now() - interval '1 day' WHERE id > 0");
    disk.wait_for_ids("tenant.t", "0");
    disk.wait_for_ids("tenant.child", "0");
}
