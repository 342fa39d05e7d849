//! S4, S6, S7: large, deep or tangled catalogs, misleading names and locks of a stranger do not
//! affect other users.

use std::time::{Duration, Instant};

use ttl_ext_e2e::{PATIENCE, Session, hostile};

/// Expired rows stay on disk.
const STAY: [(&str, &str); 1] = [("ttl.enabled", "off")];

/// C3. The search for rows of the same transaction used an unqualified `::text`: a domain of that
/// name in the temporary schema of the user who deleted from the parent ran its CHECK as the
/// child's owner, and gave away that owner's table.
#[test]
fn types_of_the_temporary_schema_are_not_found() {
    let server = hostile::start(&STAY);
    let database = hostile::armed_database(&server);
    let mut victim = database.connect_as("victim");
    victim.run(
        "CREATE TABLE a_p (id integer PRIMARY KEY);
         CREATE TABLE a_t (pid integer DEFAULT 0 UNIQUE REFERENCES a_p ON DELETE SET DEFAULT);
         CREATE TABLE a_g (pid integer REFERENCES a_t (pid) ON DELETE CASCADE);
         CREATE TABLE a_secret (secret text);
         INSERT INTO a_p VALUES (0), (1);
         SELECT ttl.enable('a_t', 3600);
         SET ttl.preserve_ts = on;
         INSERT INTO a_t (pid, _ts) VALUES (0, now() - interval '1 day'), (1, now());
         GRANT SELECT, DELETE ON a_p TO attacker",
    );
    let mut attacker = database.connect_as("attacker");
    attacker.run(
        "CREATE FUNCTION pg_temp.f(t pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN
           IF current_user <> session_user THEN EXECUTE 'GRANT ALL ON public.a_secret TO attacker'; END IF;
           RETURN true; END$$",
    );
    attacker.run("CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (pg_temp.f(VALUE))");
    attacker.run("DELETE FROM a_p WHERE id = 1");
    let error = attacker.error("SELECT FROM a_secret");
    assert_eq!(error.message(), "permission denied for table a_secret");
    assert!(!hostile::attacker_is_superuser(&mut database.connect()));
    // The row with the default has replaced the expired one.
    assert_eq!(victim.column("SELECT pid FROM a_t"), ["0"]);
}

/// Tables `c1`, …, each of which inherits from the former; each in a transaction of its own.
fn chain(session: &mut Session, length: u32) {
    session.run("CREATE TABLE c1 (id integer)");
    session.run(&format!(
        "DO $$BEGIN FOR n IN 2 .. {length} LOOP
           EXECUTE format('CREATE TABLE c%s () INHERITS (c%s)', n, n - 1); COMMIT;
         END LOOP; END$$"
    ));
}

/// C4. Each level of inheritance took a stack frame without a check of the stack depth: the server
/// crashed at some 28,000 levels in a release build, and at 12,000 in a test build. `TTL_LEVELS` is
/// how many are created, before CREATE EXTENSION, since the time was also quadratic in them.
#[test]
fn deep_inheritance() {
    let levels = std::env::var("TTL_LEVELS").map_or(12000, |n| n.parse().expect("TTL_LEVELS"));
    let server = hostile::start(&[("max_locks_per_transaction", "2000")]);
    let database = server.plain_database("deep");
    let mut superuser = database.connect();
    superuser.run("GRANT CREATE ON SCHEMA public TO attacker");
    let mut attacker = database.connect_as("attacker");
    chain(&mut attacker, levels);
    superuser.run("CREATE EXTENSION ttl_ext");
    attacker.run(&format!(
        "CREATE TABLE low () INHERITS (c{levels}); SELECT FROM low"
    ));
    attacker.run("SELECT ttl.enable('low', 1); ALTER TABLE low ADD COLUMN more integer");
    attacker.run("INSERT INTO low VALUES (1)");
    let mut disk = database.disk();
    disk.wait_until("SELECT count(*) FROM low", "0", PATIENCE);
}

/// S6. Every path through a diamond of inheritance was followed, 2ⁿ of them: with 17 levels a
/// CREATE TABLE took 6 s and a SELECT 1.4 s, and workers were ended while they loaded the policies
/// of the database.
#[test]
fn diamonds_of_inheritance() {
    let server = hostile::start(&[]);
    for levels in [17, 25] {
        let database = hostile::armed_database(&server);
        let mut attacker = database.connect_as("attacker");
        attacker.run("SET statement_timeout = '20s'");
        attacker.run("CREATE TABLE a1 (id integer); CREATE TABLE b1 (id integer)");
        attacker.run(&format!(
            "SET client_min_messages = warning;
             DO $$BEGIN FOR n IN 2 .. {levels} LOOP
               EXECUTE format('CREATE TABLE a%1$s () INHERITS (a%2$s, b%2$s)', n, n - 1);
               EXECUTE format('CREATE TABLE b%1$s () INHERITS (a%2$s, b%2$s)', n, n - 1);
             END LOOP; END$$"
        ));
        attacker.run(&format!(
            "CREATE TABLE low (id integer) INHERITS (a{levels}, b{levels});
             SELECT ttl.enable('low', 1);
             DO $$BEGIN FOR n IN 1 .. 30 LOOP
               EXECUTE format('CREATE TABLE child%s () INHERITS (low)', n); END LOOP; END$$;
             SELECT FROM a1; SELECT FROM child30"
        ));
        let mut victim = database.connect_as("victim");
        victim.run(
            "SET statement_timeout = '20s';
             CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 1); INSERT INTO t VALUES (1)",
        );
        attacker.run("INSERT INTO child30 VALUES (1)");
        let mut disk = database.disk();
        disk.wait_until("SELECT count(*) FROM t", "0", PATIENCE);
        disk.wait_until("SELECT count(*) FROM child30", "0", PATIENCE);
    }
}

/// S7. While any session held the extension's lock, which needs no privilege, nothing was deleted
/// in the database, and nothing said why.
#[test]
fn a_strangers_lock_on_the_extension() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    let mut victim = database.connect_as("victim");
    victim.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 1)");
    let mut attacker = database.connect_as("attacker");
    attacker.run(
        "CREATE FUNCTION mine() RETURNS integer LANGUAGE sql AS 'SELECT 1';
         BEGIN; ALTER FUNCTION mine() DEPENDS ON EXTENSION ttl_ext",
    );
    victim.run("INSERT INTO t VALUES (1)");
    let mut disk = database.disk();
    disk.wait_until("SELECT count(*) FROM t", "0", PATIENCE);
    attacker.run("ROLLBACK");
}

/// Model 7: no batch begins once the extension is being dropped, by whatever statement. Deletion
/// resumes when the extension is created again, repeatedly: a worker may see the new extension
/// before its caches are invalidated.
#[test]
fn the_extension_is_dropped() {
    let server = hostile::start(&[]);
    for drop in [
        "DROP EXTENSION ttl_ext CASCADE",
        "DROP OWNED BY keeper CASCADE",
    ] {
        let database = server.plain_database(&format!("dropped{}", drop.len()));
        let mut disk = database.disk();
        disk.run(
            "DO $$BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'keeper')
             THEN CREATE ROLE keeper SUPERUSER; END IF; END$$;
             SET ROLE keeper; CREATE EXTENSION ttl_ext; RESET ROLE;
             CREATE TABLE t (id integer); SELECT ttl.enable('t', 1)",
        );
        let mut dropping = database.connect();
        dropping.run("SET client_min_messages = warning");
        let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'object' AND mode = 'AccessExclusiveLock'
             AND classid = 'pg_extension'::regclass AND objsubid <> 0 AND granted";
        for _ in 0..4 {
            dropping.run("BEGIN");
            dropping.run(drop);
            assert_eq!(disk.value(held), "1", "{drop}");
            dropping.run("COMMIT");
            disk.run(
                "SET ROLE keeper; CREATE EXTENSION ttl_ext; RESET ROLE; SELECT ttl.resume_restored(); INSERT INTO t VALUES (1)",
            );
            disk.wait_until("SELECT count(*) FROM t", "0", PATIENCE);
        }
    }
}

/// S6. Any DROP … CASCADE read all labels, which took 12 s for one with 40,000 rules and could not
/// be cancelled.
#[test]
fn a_strangers_giant_label() {
    let server = hostile::start(&STAY);
    let database = hostile::armed_database(&server);
    database
        .connect_as("victim")
        .run("CREATE TABLE giant (id integer)");
    // As large a label as SECURITY LABEL accepts.
    database.connect().run(
        "SET allow_system_table_mods = on;
         INSERT INTO pg_seclabel SELECT 'giant'::regclass, 'pg_class'::regclass, 0, 'ttl',
           json_build_object('version', 1, 'ts_column', NULL, 'ttl_column', NULL, 'rules', json_agg(
             json_build_object('index', 'i' || n, 'expire_after_seconds', 1)))
           FROM generate_series(1, 40000) AS n",
    );
    let mut reader = database.connect_as("reader");
    reader.run("CREATE TABLE z (id integer PRIMARY KEY)");
    let begin = Instant::now();
    reader.run("DROP TABLE z CASCADE");
    // In milliseconds; it took 80 s in a build like the tests'.
    assert!(begin.elapsed() < Duration::from_secs(10));
}

/// S7. Any DROP … CASCADE visited all tables with the trigger, took ACCESS EXCLUSIVE on other
/// owners' tables that no longer need it, and dropped it there.
#[test]
fn tables_of_others_are_left_alone() {
    let server = hostile::start(&STAY);
    let database = hostile::armed_database(&server);
    let mut victim = database.connect_as("victim");
    victim.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 60)");
    // While the table is in use the trigger stays.
    let mut busy = database.connect_as("victim");
    busy.run("BEGIN; SELECT FROM t");
    victim.run("SELECT ttl.disable('t')");
    busy.run("COMMIT");
    let trigger =
        "SELECT count(*) FROM pg_trigger WHERE tgrelid = 't'::regclass AND tgname LIKE '~ttl%'";
    assert_eq!(
        victim.value(trigger),
        "1",
        "there is nothing to leave alone"
    );
    let mut attacker = database.connect_as("attacker");
    attacker.run("BEGIN; CREATE TABLE z (id integer PRIMARY KEY); DROP TABLE z CASCADE");
    let locks = "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass";
    assert_eq!(victim.value(locks), "0");
    attacker.run("COMMIT");
    assert_eq!(victim.value(trigger), "1");
}

/// M8: labels follow what a statement really drops, also on another owner's table: the rule ends
/// with its index, and the trigger is dropped with the last key.
#[test]
fn what_goes_by_cascade_is_followed() {
    let server = hostile::start(&STAY);
    let database = hostile::armed_database(&server);
    let mut reader = database.connect_as("reader");
    reader.run("CREATE TYPE mood AS ENUM ('a', 'b')");
    let mut victim = database.connect_as("victim");
    victim.run(
        "CREATE TABLE t (id integer, m mood, at timestamptz, UNIQUE (id, m));
         CREATE INDEX gone ON t (at) WHERE m = 'a'; CREATE INDEX stays ON t (at);
         SELECT ttl.expire_index('gone', 60); SELECT ttl.expire_index('stays', 90)",
    );
    let rules = "SELECT jsonb_path_query_array(rules, '$[*].name') FROM ttl.tables";
    let trigger = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE '~ttl%'";
    assert_eq!(victim.value(rules), r#"["gone", "stays"]"#);
    assert_eq!(victim.value(trigger), "1");
    // A failed or rolled back statement changes nothing.
    reader.run("BEGIN; SAVEPOINT s");
    reader.run("SET client_min_messages = warning; DROP TYPE mood CASCADE");
    reader.run("ROLLBACK TO s; COMMIT");
    assert_eq!(victim.value(rules), r#"["gone", "stays"]"#);
    reader.run("DROP TYPE mood CASCADE");
    assert_eq!(victim.value(rules), r#"["stays"]"#);
    assert_eq!(victim.value(trigger), "0");
}
