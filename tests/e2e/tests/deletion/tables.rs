//! C5, C7: which rows are deleted and which stay, in all kinds of tables.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, until};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

/// The matrix of C2 and C3: for each default, which rows remain 6000 seconds after the last write,
/// with overrides of none, -1, 3000 and 36000 seconds.
const MATRIX: [(&str, &str, &str); 4] = [
    ("off", "NULL", "1 2 3 4"),
    ("never", "-1", "1 2 4"),
    ("short", "3000", "2 4"),
    ("long", "36000", "1 2 4"),
];

const MATRIX_ROWS: &str = "(1, now() - interval '6000 seconds', NULL),
    (2, now() - interval '6000 seconds', -1), (3, now() - interval '6000 seconds', 3000),
    (4, now() - interval '6000 seconds', 36000)";

const INDEXES: [&str; 3] = ["auto", "btree", "none"];

/// C2, C3, C4: the matrix, with every kind of index.
#[test]
fn matrix() {
    let database = server().database("matrix");
    let mut disk = database.disk();
    for index in INDEXES {
        for (name, default, _) in MATRIX {
            disk.run(&format!(
                "CREATE TABLE {name}_{index} (id integer PRIMARY KEY);
                 SELECT ttl.enable('{name}_{index}', index => '{index}');
                 SELECT ttl.set_default('{name}_{index}', {default})"
            ));
            disk.run_preserving(&format!(
                "INSERT INTO {name}_{index} (id, _ts, ttl) VALUES {MATRIX_ROWS}"
            ));
        }
    }
    for index in INDEXES {
        for (name, default, stays) in MATRIX {
            let table = format!("{name}_{index}");
            disk.wait_for_ids(&table, stays);
            if default != "NULL" {
                disk.look_again(&table);
            }
            disk.wait_for_ids(&table, stays);
        }
    }
    // C4, C9: overrides count once TTL is on again.
    disk.run("SELECT ttl.enable('off_btree', -1)");
    disk.wait_for_ids("off_btree", "1 2 4");
    let state = "SELECT index_state FROM ttl.tables WHERE relation = 'short_none'::regclass";
    assert_eq!(disk.value(state), "none");
}

/// A table without an override column: only the default counts.
#[test]
fn without_an_override_column() {
    let database = server().database("plain");
    let mut disk = database.disk();
    for index in ["auto", "btree", "none"] {
        disk.run(&format!(
            "CREATE TABLE t_{index} (id integer, at timestamptz NOT NULL DEFAULT now());
             SELECT ttl.enable('t_{index}', 3600, ts_column => 'at', ttl_column => NULL, index => '{index}')"
        ));
        disk.run_preserving(&format!(
            "INSERT INTO t_{index} SELECT n, now() - n * interval '25 minutes' FROM generate_series(1, 20) AS n"
        ));
        disk.wait_for_ids(&format!("t_{index}"), "1 2");
    }
}

/// D1 to D3: the override inside a document.
#[test]
fn by_a_document() {
    let database = server().database("document");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, body jsonb);
         SELECT ttl.enable('t', -1, document_column => 'body')",
    );
    disk.run_preserving(
        r#"INSERT INTO t (id, _ts, body) SELECT row_number() OVER (), now() - interval '1 day', body
             FROM unnest('{"{\"ttl\": 20}", "{\"ttl\": 2e1}", "{\"ttl\": 20.5}", "{\"ttl\": \"20\"}",
                           "{\"ttl\": -1}", "{\"ttl\": 0}", "{}", "{\"ttl\": 864000}"}'::jsonb[]) AS body"#,
    );
    disk.wait_for_ids("t", "3 4 5 6 7 8");
}

/// Create the tables, fill each with rows that are expired but for the ids 1000
/// to 1002, and wait until just these are left.
fn sweeps(database: &Database<'_>, tables: &[(&str, &str)]) {
    let mut disk = database.disk();
    for (table, ddl) in tables {
        disk.run(ddl);
        disk.insert_expired(table, 1, 100);
        disk.run(&format!(
            "INSERT INTO {table} (id) VALUES (1000); INSERT INTO {table} (id, ttl) VALUES (1001, 86400)"
        ));
        disk.run_preserving(&format!(
            "INSERT INTO {table} (id, _ts, ttl) VALUES (1002, now() - interval '1 day', -1),
                                                       (101, now() - interval '1 hour', 60)"
        ));
    }
    for (table, _) in tables {
        disk.wait_for_ids(table, "1000 1001 1002");
        disk.look_again(table);
        disk.wait_for_ids(table, "1000 1001 1002");
    }
}

#[test]
fn names_schemas_and_kinds() {
    let database = server().database("kinds");
    database
        .connect()
        .run("CREATE SCHEMA other; CREATE SCHEMA \"My \"\"Schema\"\"\"");
    sweeps(
        &database,
        &[
            (
                "\"My \"\"Schema\"\"\".\"The Table's $1\"",
                "CREATE TABLE \"My \"\"Schema\"\"\".\"The Table's $1\" (id integer PRIMARY KEY);
                 SELECT ttl.enable('\"My \"\"Schema\"\"\".\"The Table''s $1\"', 3600)",
            ),
            (
                "other.t",
                "CREATE TABLE other.t (id integer); SELECT ttl.enable('other.t', 3600)",
            ),
            (
                "no_log",
                "CREATE UNLOGGED TABLE no_log (id integer PRIMARY KEY); SELECT ttl.enable('no_log', 3600)",
            ),
            (
                "wide",
                "CREATE TABLE wide (gone integer, id integer PRIMARY KEY, what text DEFAULT repeat('x', 3000));
                 ALTER TABLE wide ALTER what SET STORAGE external;
                 ALTER TABLE wide DROP COLUMN gone; SELECT ttl.enable('wide', 3600)",
            ),
            (
                "with_trigger",
                "CREATE TABLE with_trigger (id integer PRIMARY KEY); SELECT ttl.enable('with_trigger', 3600);
                 CREATE TABLE seen (id integer);
                 CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
                 BEGIN INSERT INTO public.seen VALUES (OLD.id); RETURN OLD; END $$;
                 CREATE TRIGGER note BEFORE DELETE ON with_trigger FOR EACH ROW EXECUTE FUNCTION note()",
            ),
            (
                "with_statement_trigger",
                "CREATE TABLE with_statement_trigger (id integer PRIMARY KEY);
                 SELECT ttl.enable('with_statement_trigger', 3600);
                 CREATE TABLE counted (rows bigint);
                 CREATE FUNCTION add_up() RETURNS trigger LANGUAGE plpgsql AS $$
                 BEGIN INSERT INTO public.counted SELECT count(*) FROM gone; RETURN NULL; END $$;
                 CREATE TRIGGER add_up AFTER DELETE ON with_statement_trigger REFERENCING OLD TABLE AS gone
                    FOR EACH STATEMENT EXECUTE FUNCTION add_up()",
            ),
            (
                "with_rule",
                "CREATE TABLE with_rule (id integer PRIMARY KEY); SELECT ttl.enable('with_rule', 3600);
                 CREATE TABLE ruled (id integer);
                 CREATE RULE also AS ON DELETE TO with_rule DO ALSO INSERT INTO public.ruled VALUES (OLD.id)",
            ),
        ],
    );
    // Triggers and rules have seen each row once: 101, and twice a row with the id -1.
    let mut session = database.connect();
    for (sum, expected) in [
        (
            "SELECT count(*) || ' ' || count(DISTINCT id) FROM seen",
            "103 102",
        ),
        ("SELECT sum(rows) FROM counted", "103"),
        (
            "SELECT count(*) || ' ' || count(DISTINCT id) FROM ruled",
            "103 102",
        ),
    ] {
        assert_eq!(session.value(sum), expected, "{sum}");
    }
}

/// To triggers a batch is one DELETE: those for statements fire once, and their transition tables
/// have all of its rows; those for rows see each once. Also with a condition, and where a BEFORE
/// trigger makes it a DELETE indeed.
#[test]
fn triggers_see_whole_batches() {
    let database = server().database("triggers");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE firings (what text, rows bigint);
         CREATE FUNCTION note_rows() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO public.firings SELECT TG_RELID::regclass || ' ' || TG_NAME, count(*) FROM gone;
             RETURN NULL;
         END $$;
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO public.firings VALUES (TG_RELID::regclass || ' ' || TG_NAME, 1);
             RETURN OLD;
         END $$",
    );
    for (table, more) in [
        ("queued", ""),
        (
            "deferred",
            "CREATE CONSTRAINT TRIGGER late AFTER DELETE ON deferred INITIALLY DEFERRED
                FOR EACH ROW EXECUTE FUNCTION note()",
        ),
        (
            "conditional",
            "CREATE TRIGGER tenths AFTER DELETE ON conditional FOR EACH ROW WHEN (OLD.id % 10 = 0)
                EXECUTE FUNCTION note()",
        ),
        (
            "before",
            "CREATE TRIGGER early BEFORE DELETE ON before FOR EACH ROW EXECUTE FUNCTION note()",
        ),
    ] {
        disk.run(&format!(
            "CREATE TABLE {table} (id integer PRIMARY KEY); SELECT ttl.enable('{table}', 3600);
             CREATE TRIGGER each AFTER DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION note();
             CREATE TRIGGER whole AFTER DELETE ON {table} REFERENCING OLD TABLE AS gone
                FOR EACH STATEMENT EXECUTE FUNCTION note_rows();
             {more}"
        ));
        disk.insert_expired(table, 1, 3000);
        disk.wait_for_none(table);
        let stats =
            format!("SELECT rows_deleted FROM ttl.stats WHERE relation = '{table}'::regclass");
        disk.wait_until(&stats, "3000", PATIENCE);
        let rows = "SELECT split_part(what, ' ', 2), sum(rows) FROM firings
                     WHERE what LIKE $$NAME %$$ GROUP BY what ORDER BY what";
        let mut expected = vec![["each", "3000"], ["whole", "3000"]];
        match table {
            "deferred" => expected.insert(1, ["late", "3000"]),
            "conditional" => expected.insert(1, ["tenths", "300"]),
            "before" => expected.insert(1, ["early", "3000"]),
            _ => {}
        }
        assert_eq!(disk.rows(&rows.replace("NAME", table)), expected, "{table}");
        let firings = format!(
            "SELECT count(*) = (SELECT batches FROM ttl.stats WHERE relation = '{table}'::regclass)
               FROM firings WHERE what = '{table} whole'"
        );
        assert_eq!(disk.value(&firings), "t", "{table}");
    }
}

/// Partitions of two levels, and tables that inherit, with columns in another
/// order; `ctid`s repeat from one to the other.
#[test]
fn partitions_and_inheritance() {
    let database = server().database("parts");
    sweeps(
        &database,
        &[
            (
                "parts",
                "CREATE TABLE parts (id integer, what text DEFAULT 'a') PARTITION BY HASH (id);
                 SELECT ttl.enable('parts', 3600);
                 CREATE TABLE parts0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0) PARTITION BY LIST (what);
                 CREATE TABLE parts0a PARTITION OF parts0 FOR VALUES IN ('a');
                 CREATE TABLE parts0x PARTITION OF parts0 DEFAULT;
                 CREATE TABLE parts1 (gone text, _ts timestamptz NOT NULL DEFAULT now(), what text DEFAULT 'a',
                    ttl integer, id integer, CONSTRAINT parts_ttl_check CHECK (ttl.is_override(ttl) IS NOT FALSE));
                 ALTER TABLE parts1 DROP COLUMN gone;
                 ALTER TABLE parts ATTACH PARTITION parts1 FOR VALUES WITH (MODULUS 2, REMAINDER 1)",
            ),
            (
                "heirs",
                "CREATE TABLE heirs (id integer); SELECT ttl.enable('heirs', 3600);
                 CREATE TABLE heir1 (more text) INHERITS (heirs);
                 CREATE TABLE heir2 () INHERITS (heir1)",
            ),
        ],
    );
    let mut disk = database.disk();
    for heir in ["heir1", "heir2"] {
        disk.insert_expired(heir, 1, 50);
        disk.run(&format!("INSERT INTO {heir} (id) VALUES (2000)"));
        disk.wait_for_ids(heir, "2000");
    }
    // A partition that comes with expired rows.
    disk.run(
        "CREATE TABLE lists (id integer, what text DEFAULT 'a') PARTITION BY LIST (what);
         SELECT ttl.enable('lists', 3600);
         CREATE TABLE lists_a PARTITION OF lists FOR VALUES IN ('a');
         CREATE TABLE late (LIKE lists INCLUDING ALL);
         ALTER TABLE late ALTER what SET DEFAULT 'z'",
    );
    disk.insert_expired("late", 1, 100);
    disk.run("INSERT INTO late (id) VALUES (1000)");
    assert_eq!(disk.count("late"), 101);
    disk.run("ALTER TABLE lists ATTACH PARTITION late FOR VALUES IN ('z')");
    disk.wait_for_ids("lists", "1000");
    disk.wait_for_ids("late", "1000");
}

/// M12: values from which no expiry can be computed never delete a row.
#[test]
fn extreme_times_live() {
    let database = server().database("extreme");
    let mut disk = database.disk();
    disk.run("CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600)");
    disk.run_preserving(
        "INSERT INTO t (id, _ts, ttl) VALUES
            (1, 'infinity', NULL), (2, '294276-12-31', NULL), (3, '2039-01-01', 1),
            (4, now() - interval '60 years', 2147483647), (5, '294276-12-31', 2147483647),
            (6, '1960-01-01', NULL), (7, now() - interval '1 day', 2147483647)",
    );
    // 6 may be live or expired, but disk and queries agree.
    let living = database.connect().column("SELECT id FROM t ORDER BY id");
    let sure = living.iter().filter(|id| *id != "6");
    assert!(sure.eq(["1", "2", "3", "4", "5", "7"].iter()), "{living:?}");
    disk.wait_for_ids("t", &living.join(" "));
    disk.look_again("t");
    disk.wait_for_ids("t", &living.join(" "));
}

/// Rows that are expired before any worker can know of them: from a transaction longer than their
/// TTL, next to rows that keep expiring; and from an INSERT inside a statement that deletes.
#[test]
fn rows_that_come_expired() {
    let database = server().database("late");
    let (mut disk, mut slow) = (database.disk(), database.connect());
    disk.run("CREATE TABLE t (id integer); CREATE TABLE u (id integer); SELECT ttl.enable('t')");
    slow.run("BEGIN; INSERT INTO t (id, ttl) VALUES (-1, 2)");
    // Insert one after another, until rows that came after that one are deleted.
    let mut id = 0;
    let mut another = |disk: &mut Session, gone: &str| {
        disk.run(&format!("INSERT INTO t (id, ttl) VALUES ({id}, 1)"));
        id += 1;
        (disk.value(gone) == "t").then_some(())
    };
    let later = "SELECT rows_deleted >= 40 FROM ttl.stats WHERE relation = 't'::regclass";
    until("others go", PATIENCE, || another(&mut disk, later));
    slow.run("COMMIT");
    // It is deleted while others still come.
    let gone = "SELECT count(*) = 0 FROM t WHERE id = -1";
    until("it goes", PATIENCE, || another(&mut disk, gone));
    disk.run("WITH x AS (INSERT INTO t (id, ttl) VALUES (-2, 1) RETURNING id) DELETE FROM u USING x WHERE u.id = x.id");
    disk.wait_for_none("t");
}

/// M9: a pass over as many indexes as a table can have, more than fit into one turn, ends and
/// reaches the last.
#[test]
fn a_pass_takes_several_turns() {
    let database = server().database("indexes");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE t (id integer, d timestamptz);
         DO $$ BEGIN
             FOR i IN 1..100 LOOP
                 EXECUTE format('CREATE INDEX i%s ON t (d) WHERE id >= %s', i, i);
             END LOOP;
             EXECUTE format('SECURITY LABEL FOR ttl ON TABLE t IS %L', jsonb_build_object(
                 'ts_column', NULL, 'ttl_column', NULL, 'rules', (SELECT jsonb_agg(
                     jsonb_build_object('index', 'i' || i, 'expire_after_seconds', 101 - i))
                     FROM generate_series(1, 100) i)));
         END $$;
         INSERT INTO t VALUES (0, now() - interval '1 day'), (100, now() - interval '2 seconds');
         SELECT ttl.resume('t')",
    );
    disk.wait_for_ids("t", "0");
    let passes = "SELECT passes > 0 FROM ttl.stats WHERE relation = 't'::regclass";
    disk.wait_until(passes, "t", 60);
}

/// C7, with more tables than a worker keeps in its caches.
#[test]
fn more_tables_than_are_cached() {
    let database = server().database("uncached");
    let mut disk = database.disk();
    disk.run("CREATE TABLE t (id integer PRIMARY KEY) PARTITION BY RANGE (id)");
    disk.run(
        "DO $$ BEGIN
             FOR i IN 1..1200 LOOP
                 EXECUTE format('CREATE TABLE t%s PARTITION OF t FOR VALUES FROM (%s) TO (%s)', i, i, i + 1);
                 IF i % 100 = 0 THEN COMMIT; END IF;
             END LOOP;
         END $$",
    );
    disk.run("SELECT ttl.enable('t', 3600)");
    disk.insert_expired("t", 1, 1200);
    disk.wait_for_none("t");
    let swept = "SELECT rows_deleted FROM ttl.stats WHERE relation = 't'::regclass";
    disk.wait_until(swept, "1200", 60);
}
