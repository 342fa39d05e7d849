//! Complaint 6: monitoring does not mislead. Where nobody deletes, `lag` and `backlog_estimate` of
//! `ttl.stats` are NULL, and `ttl.problems` says why.

use ttl_ext_e2e::{Database, PATIENCE, Server, Session};

const TABLE: &str =
    "CREATE TABLE t (id integer PRIMARY KEY, what text); SELECT ttl.enable('t', 3600)";

const OFF: &str = "deletion is off: ttl.enabled";
const NO_SLOT: &str = "no background worker slot is free: raise max_worker_processes";

/// Lag and backlog, and the problems, of the only table.
const SHOWN: &str = "SELECT concat_ws('|', COALESCE(lag::text, '?'), COALESCE(backlog_estimate::text, '?'), problems)
   FROM ttl.stats JOIN ttl.tables USING (relation)";

fn unknown_for(cause: &str) -> String {
    format!("?|?|{{\"{cause}\"}}")
}

fn with_expired_rows<'a>(server: &'a Server, name: &str) -> (Database<'a>, Session) {
    let database = server.database(name);
    let mut disk = database.disk();
    disk.run(TABLE);
    disk.insert_expired("t", 1, 100);
    (database, disk)
}

/// `ttl.enabled = off`, at the start and later, alternating with on.
#[test]
fn deletion_is_off() {
    let server = Server::start(&[("ttl.naptime", "1s"), ("ttl.min_effort", "100")]);
    let (_database, mut disk) = with_expired_rows(&server, "off");
    assert_eq!(disk.value(SHOWN), unknown_for(OFF));
    server.reload(&[("ttl.enabled", "on")]);
    disk.wait_for_none("t");
    disk.wait_until(SHOWN, "00:00:00|0|{}", PATIENCE);
    server.reload(&[("ttl.enabled", "off")]);
    disk.wait_until(SHOWN, &unknown_for(OFF), PATIENCE);
    // A table whose rows do not expire has no figures.
    disk.run("SELECT ttl.disable('t')");
    assert_eq!(disk.value(SHOWN), "00:00:00|0|{}");
}

/// No slot for a worker, until there is one.
#[test]
fn no_slot() {
    let server = Server::start_sweeping(&[
        ("max_logical_replication_workers", "0"),
        ("max_worker_processes", "1"),
    ]);
    let (database, mut disk) = with_expired_rows(&server, "slots");
    disk.wait_until(SHOWN, &unknown_for(NO_SLOT), PATIENCE);
    assert_eq!(disk.count("t"), 100);
    drop(disk);
    server.configure(&[("max_worker_processes", "8")]);
    server.restart();
    let mut disk = database.disk();
    disk.wait_for_none("t");
    disk.wait_until(SHOWN, "00:00:00|0|{}", PATIENCE);
}

/// No launcher, as there was no slot for it.
#[test]
fn no_launcher() {
    let server = Server::start_sweeping(&[
        ("max_logical_replication_workers", "0"),
        ("max_worker_processes", "0"),
    ]);
    let (_database, mut disk) = with_expired_rows(&server, "launcher");
    let shown = disk.value(SHOWN);
    assert!(
        shown.starts_with("?|?|{\"deletion is off: its launcher is not running"),
        "{shown}"
    );
}

/// Templates are left alone.
#[test]
fn template() {
    let server = Server::start_sweeping(&[]);
    let (_database, mut disk) = with_expired_rows(&server, "pattern");
    disk.wait_for_none("t");
    disk.run("ALTER DATABASE pattern IS_TEMPLATE true");
    assert_eq!(
        disk.value(SHOWN),
        unknown_for("deletion is off: the database is a template")
    );
    disk.run("ALTER DATABASE pattern IS_TEMPLATE false");
    disk.insert_expired("t", 1, 10);
    disk.wait_for_none("t");
    disk.wait_until(SHOWN, "00:00:00|0|{}", PATIENCE);
}

/// It waits for `ttl.resume`.
#[test]
fn restored() {
    let server = Server::start_sweeping(&[]);
    let mut disk = server.database("app").disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, _ts timestamptz NOT NULL DEFAULT ttl.current_ts());
         INSERT INTO t VALUES (1, now() - interval '1 day');
         SECURITY LABEL FOR ttl ON TABLE t IS '{\"ttl_column\": null, \"default_ttl\": 3600}'",
    );
    let known = "SELECT lag IS NULL AND backlog_estimate IS NULL FROM ttl.stats";
    assert_eq!(disk.value(known), "t");
    disk.run("SELECT ttl.resume('t')");
    disk.wait_for_none("t");
    disk.wait_until(
        "SELECT lag = '0' AND backlog_estimate = 0 FROM ttl.stats",
        "t",
        PATIENCE,
    );
}

/// Every look at the table fails: the error is a problem, shown only to permitted users.
#[test]
fn failing_from_the_beginning() {
    let server = Server::start(&[("ttl.naptime", "1s"), ("ttl.min_effort", "100")]);
    let (database, mut disk) = with_expired_rows(&server, "app");
    disk.run("CREATE ROLE standing_guest LOGIN");
    let mut locker = database.disk();
    locker.run("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE");
    server.reload(&[("ttl.enabled", "on")]);
    let known = "SELECT lag IS NULL AND backlog_estimate IS NULL FROM ttl.stats";
    assert_eq!(disk.value(known), "t");
    let told = |text: &str| {
        format!(
            "SELECT bool_or(problem LIKE 'deletion from public.t fails again and again: {text}')
                   FROM unnest(ttl.problems('t')) AS problem"
        )
    };
    disk.wait_until(&told("could not obtain lock on relation%"), "t", PATIENCE);
    assert_eq!(disk.value(known), "t");
    let mut guest = database.connect_as("standing_guest");
    assert_eq!(guest.value(&told("its owner sees why in ttl.stats")), "t");
    locker.run("COMMIT");
    disk.wait_for_none("t");
    disk.wait_until(
        "SELECT lag = '0' AND backlog_estimate = 0 AND ttl.problems('t') = '{}' FROM ttl.stats",
        "t",
        PATIENCE,
    );
}

/// More tables than fit into shared memory.
#[test]
fn no_room() {
    let server = Server::start_sweeping(&[("ttl.max_tables", "100")]);
    let mut disk = server.database("app").disk();
    disk.run(
        "CREATE TABLE t (d timestamptz) PARTITION BY RANGE (d); CREATE INDEX t_d ON t (d);
         SELECT ttl.expire_index('t_d', 0)",
    );
    disk.wait_until(SHOWN, "00:00:00|0|{}", PATIENCE);
    for batch in 0..4 {
        disk.run(&format!(
            "DO $$ BEGIN FOR n IN {batch} * 500 + 1 .. {batch} * 500 + 500 LOOP
                EXECUTE format('CREATE TABLE t%s PARTITION OF t FOR VALUES FROM (%L) TO (%L)', n,
                               timestamptz '2800-01-01' + n * interval '1 day', timestamptz '2800-01-01' + (n + 1) * interval '1 day');
             END LOOP; END $$"
        ));
    }
    disk.wait_until(
        "SELECT lag IS NULL AND backlog_estimate IS NULL
                AND problems::text LIKE '{\"no room in shared memory for % and 1899 more (1900 of 2000 tables): all 100 places %\"}'
           FROM ttl.stats JOIN ttl.tables USING (relation)",
        "t",
        PATIENCE,
    );
}

/// Objects that are looked up by name as an owner without USAGE on the schema.
#[test]
fn owners_without_usage() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("app");
    let mut disk = database.disk();
    disk.run(
        "CREATE ROLE standing_parent; CREATE ROLE \"Standing child\"; CREATE SCHEMA s; CREATE SCHEMA \"S 2\";
         CREATE TABLE s.t (id integer PRIMARY KEY); ALTER TABLE s.t OWNER TO standing_parent;
         SELECT ttl.enable('s.t', 3600);
         CREATE TABLE s.cascading (id integer PRIMARY KEY); ALTER TABLE s.cascading OWNER TO standing_parent;
         SELECT ttl.enable('s.cascading', 3600);
         CREATE TABLE s.grandchild (id integer REFERENCES s.cascading ON DELETE CASCADE);
         CREATE TABLE s.plain (id integer PRIMARY KEY); ALTER TABLE s.plain OWNER TO standing_parent;
         SELECT ttl.enable('s.plain', 3600);
         CREATE TABLE \"S 2\".child (id integer REFERENCES s.t); ALTER TABLE \"S 2\".child OWNER TO \"Standing child\";
         CREATE TABLE s.p (d timestamptz) PARTITION BY RANGE (d);
         CREATE TABLE s.p1 PARTITION OF s.p FOR VALUES FROM ('2001-01-01') TO ('2002-01-01');
         CREATE TABLE s.p2 PARTITION OF s.p FOR VALUES FROM ('2900-01-01') TO ('3000-01-01');
         ALTER TABLE s.p OWNER TO standing_parent; ALTER TABLE s.p1 OWNER TO standing_parent; ALTER TABLE s.p2 OWNER TO standing_parent;
         CREATE INDEX p_d ON s.p (d)",
    );
    disk.run("SELECT ttl.expire_index('s.p_d', 60, drop_partitions => true)");
    disk.insert_expired("s.t", 1, 10);
    disk.insert_expired("s.plain", 1, 10);
    disk.insert_expired("s.cascading", 1, 10);
    let problems = |table: &str| {
        format!("SELECT p FROM unnest(ttl.problems('{table}')) AS p WHERE p LIKE '%GRANT USAGE%'")
    };
    let foreign_key = [
        "deletion fails at a foreign key, which looks \"S 2\".child up by name: its owner \"Standing child\" may not use schema \"S 2\"; GRANT USAGE ON SCHEMA \"S 2\" TO \"Standing child\"",
        "deletion fails at a foreign key, which looks s.t up by name: its owner standing_parent may not use schema s; GRANT USAGE ON SCHEMA s TO standing_parent",
    ];
    let partitions = "partitions are not dropped as a whole: its owner standing_parent may not use schema s; GRANT USAGE ON SCHEMA s TO standing_parent";
    assert_eq!(disk.column(&problems("s.t")), foreign_key);
    assert_eq!(disk.column(&problems("s.p")), [partitions]);
    // Where nothing is looked up, the privilege is not needed.
    disk.wait_for_none("s.plain");
    disk.wait_for_none("s.cascading");
    assert_eq!(disk.value("SELECT ttl.problems('s.plain')"), "{}");
    // Holds for each of them.
    for (schema, default, grant) in [
        ("s", 3599, "GRANT USAGE ON SCHEMA s TO standing_parent"),
        (
            "S 2",
            3598,
            "GRANT USAGE ON SCHEMA \"S 2\" TO \"Standing child\"",
        ),
    ] {
        let error = format!(
            "SELECT last_error = 'permission denied for schema {schema}' FROM ttl.stats WHERE relation = 's.t'::regclass"
        );
        disk.wait_until(&error, "t", PATIENCE);
        assert_eq!(disk.count("s.t"), 10);
        disk.run(grant);
        // A new policy tries rows that are set aside at once.
        disk.run(&format!("SELECT ttl.set_default('s.t', {default})"));
    }
    disk.wait_for_none("s.t");
    assert!(disk.column(&problems("s.t")).is_empty());
    assert!(disk.column(&problems("s.p")).is_empty());
}

/// A standby deletes nothing by design: no problem, but the figures are NULL.
#[test]
fn standby() {
    let server = Server::start_sweeping(&[]);
    let (_database, mut disk) = with_expired_rows(&server, "app");
    disk.wait_for_none("t");
    let standby = server.start_standby(&[]);
    let mut session = standby.connect("app", "postgres");
    assert_eq!(session.value(SHOWN), "?|?|{}");
}

/// A DETACH CONCURRENTLY that was interrupted leaves a partition whose rows are hidden and never deleted.
#[test]
fn half_detached() {
    let server = Server::start_sweeping(&[]);
    let database = server.database("detached");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE p (id integer) PARTITION BY RANGE (id);
         CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (100);
         CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200);
         SELECT ttl.enable('p', 3600)",
    );
    disk.wait_until("SELECT ttl.problems('p')", "{}", PATIENCE);
    let mut reader = database.connect();
    reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM p");
    disk.run("SET statement_timeout = '1s'");
    let error = disk.error("ALTER TABLE p DETACH PARTITION p1 CONCURRENTLY");
    assert_eq!(error.code().code(), "57014", "{error:?}");
    disk.run("RESET statement_timeout");
    reader.run("COMMIT");
    let told = disk.value("SELECT array_to_string(ttl.problems('p'), '; ')");
    let call = "ALTER TABLE public.p DETACH PARTITION public.p1 FINALIZE";
    assert!(
        told.contains("expired rows of public.p1 are not deleted") && told.ends_with(call),
        "{told}"
    );
    disk.run(call);
    assert_eq!(disk.value("SELECT ttl.problems('p')"), "{}");
}

/// Where nothing is to be deleted any more, nothing is blocked; nor in a table that was emptied. A row that comes to
/// the place of one that was set aside is not taken for it.
#[test]
fn nothing_is_blocked_without_a_policy() {
    let server = Server::start_sweeping(&[]);
    let (_database, mut disk) = with_expired_rows(&server, "blocked");
    let blocked = "SELECT blocked_rows FROM ttl.stats";
    disk.wait_for_none("t");
    disk.run(
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';
         CREATE TRIGGER no BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION no()",
    );
    disk.insert_expired("t", 1, 1);
    disk.wait_until(blocked, "1", PATIENCE);
    disk.run("TRUNCATE t");
    disk.wait_until(blocked, "0", 20);
    disk.insert_expired("t", 1, 1);
    disk.wait_until(blocked, "1", PATIENCE);
    disk.run("ALTER TABLE t DISABLE TRIGGER no");
    // It is tried again after a minute; its copy in another file at once.
    disk.run("VACUUM FULL t");
    disk.wait_until("SELECT count(*) FROM t", "0", 20);
    disk.run("ALTER TABLE t ENABLE TRIGGER no");
    disk.insert_expired("t", 1, 1);
    disk.wait_until(blocked, "1", PATIENCE);
    disk.run("SELECT ttl.disable('t', revive_expired => true)");
    assert_eq!(disk.value(blocked), "0");
}

/// What a statement brings about that stops deletion, or writes, is said by the statement.
#[test]
fn a_statement_says_what_it_stops() {
    let server = Server::start(&[]);
    let mut session = server.database("says").connect();
    session.run(
        "CREATE ROLE app; CREATE ROLE second; GRANT ALL ON SCHEMA public TO app, second;
         CREATE TABLE p (id int) PARTITION BY LIST (id); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); SELECT ttl.enable('p', 60);
         CREATE TABLE s (id int); SELECT ttl.enable('s', 60); CREATE TABLE a (LIKE s); SELECT ttl.archive_to('s', 'a');
         CREATE TABLE above (id int, k int, _ts timestamptz, ttl int) PARTITION BY LIST (k);
         CREATE TABLE l (id int, k int); SELECT ttl.enable('l', 60);
         CREATE TABLE parent (id int); CREATE TABLE child (id int); SELECT ttl.enable('child', 60); ALTER TABLE parent ADD _ts timestamptz NOT NULL DEFAULT now(), ADD ttl int",
    );
    let said = ["WARNING:", "has a problem from now on"];
    for (statement, about) in [
        ("ALTER TABLE p OWNER TO app", Some("p")),
        (
            "CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)",
            Some("p"),
        ),
        ("ALTER TABLE p2 OWNER TO app", None),
        ("ALTER TABLE p2 OWNER TO second", Some("p")),
        ("ALTER TABLE p ADD n int", None),
        ("ALTER TABLE s ADD n int", Some("s")),
        ("ALTER TABLE a ADD n int", None),
        (
            "ALTER TABLE above ATTACH PARTITION l FOR VALUES IN (1)",
            Some("l"),
        ),
        ("ALTER TABLE child INHERIT parent", Some("child")),
        ("ALTER TABLE child NO INHERIT parent", None),
        ("CREATE TABLE other (id int)", None),
    ] {
        let before = server.log_lines(&said).len();
        session.run(statement);
        let all = server.log_lines(&said);
        assert_eq!(
            all.len() - before,
            usize::from(about.is_some()),
            "{statement}: {all:#?}"
        );
        if let Some(table) = about {
            let of_table = format!("of table public.{table} has");
            assert!(all[before].contains(&of_table), "{statement}: {all:#?}");
        }
    }
}

/// An index for deletion is built as the owner of the table, who may lack CREATE on the schema.
#[test]
fn an_owner_who_may_not_create() {
    let server = Server::start(&[]);
    let mut session = server.database("may_not").connect();
    session.run(
        "CREATE ROLE builds_not; CREATE SCHEMA s; CREATE TABLE s.t (id int); GRANT USAGE ON SCHEMA s TO builds_not; ALTER TABLE s.t OWNER TO builds_not;
         SELECT ttl.enable('s.t', 60, index => 'btree', concurrently => true)",
    );
    let said = server.log_lines(&[
        "WARNING:",
        "the index for deletion of table s.t cannot be built",
    ]);
    assert_eq!(said.len(), 1, "{said:#?}");
    assert_eq!(
        session.value("SELECT to_do FROM ttl.check() WHERE problem LIKE 'no valid index on%'"),
        "GRANT CREATE ON SCHEMA s TO builds_not;"
    );
}
