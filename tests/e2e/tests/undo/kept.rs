//! C23: `keep_expired`. Rows lie on both sides of the line, by times that are hours apart.

use std::sync::OnceLock;

use ttl_ext_e2e::{Database, PATIENCE, Server, Session};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

/// Lets the table keep its expired rows for so many seconds.
fn keep(disk: &mut Session, table: &str, seconds: i32) {
    disk.run(&format!(
        "SELECT ttl.set_option('{table}', 'keep_expired', '{seconds}')"
    ));
}

/// A table whose rows live for a minute and are kept for an hour.
fn table(database: &Database<'_>, index: &str, more: &str) -> Session {
    let mut disk = database.disk();
    disk.run(&format!(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 60, index => '{index}'); {more}"
    ));
    keep(&mut disk, "t", 3600);
    disk
}

/// 1 and 6 live; 2, 4 and 7 expired half an hour ago, 3, 5 and 8 more than an hour ago.
const ROWS: &str = "INSERT INTO t (id, _ts, ttl) VALUES
    (1, now(), NULL), (2, now() - interval '31 min', NULL), (3, now() - interval '2 h', NULL),
    (4, now() - interval '31 min', 60), (5, now() - interval '2 h', 60), (6, now() - interval '2 h', -1),
    (7, now() - interval '150 min', 7200), (8, now() - interval '121 min', 3600)";

fn stay_as_long_as_they_are_kept(disk: &mut Session) {
    disk.run("INSERT INTO t (id, ttl) VALUES (1, -1)");
    disk.run_preserving(&ROWS.replace("(1, now(), NULL), ", ""));
    disk.wait_for_ids("t", "1 2 4 6 7");
    disk.look_again("t");
    disk.wait_for_ids("t", "1 2 4 6 7");
    let expired = "SELECT string_agg(id::text, ' ' ORDER BY id) FROM ttl.expired(NULL::t)";
    assert_eq!(disk.value(expired), "2 4 7");
}

/// Whatever leads to the rows, and whatever is in the way of their deletion.
#[test]
fn c23_tables_of_all_kinds() {
    let trigger = |when: &str| {
        format!(
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
             CREATE TRIGGER f {when} DELETE ON t FOR EACH ROW EXECUTE FUNCTION f()"
        )
    };
    for (name, index, more) in [
        ("k_btree", "btree", String::new()),
        ("k_none", "none", String::new()),
        ("k_auto", "auto", String::new()),
        ("k_before", "btree", trigger("BEFORE")),
        ("k_after", "btree", trigger("AFTER")),
    ] {
        let database = server().database(name);
        stay_as_long_as_they_are_kept(&mut table(&database, index, &more));
    }
}

/// What is kept is neither backlog nor lag; `ttl.purge` deletes it; so does a smaller figure.
#[test]
fn c23_purge_does_not_wait() {
    let database = server().database("k_purge");
    let mut disk = table(&database, "btree", "");
    stay_as_long_as_they_are_kept(&mut disk);
    disk.wait_until(
        "SELECT backlog = 0 AND lag = '0' AND next_expiry < now() - interval '25 min' AND keep_expired = 3600
           FROM ttl.tables JOIN ttl.stats USING (relation) WHERE relation = 't'::regclass",
        "t",
        PATIENCE,
    );
    let mut user = database.connect();
    assert_eq!(user.value("SELECT ttl.revive('t', 'id = 4')"), "1");
    assert_eq!(user.value("SELECT ttl.purge('t')"), "2");
    disk.wait_for_ids("t", "1 4 6");
    disk.run_preserving(
        &ROWS
            .replace("(1, now(), NULL), ", "")
            .replace("(4, now() - interval '31 min', 60), ", "")
            .replace("(6, now() - interval '2 h', -1),", ""),
    );
    disk.wait_for_ids("t", "1 2 4 6 7");
    keep(&mut disk, "t", 0);
    disk.wait_until("SELECT count(*) FROM t WHERE id IN (2, 7)", "0", PATIENCE);
}

/// A key is free as ever: the new row ends the old one's second life. Many rows at once end only
/// those whose keys they have.
#[test]
fn c23_keys_are_free() {
    let database = server().database("k_keys");
    let mut disk = table(&database, "btree", "");
    stay_as_long_as_they_are_kept(&mut disk);
    let mut user = database.connect();
    user.run("INSERT INTO t (id) VALUES (2)");
    user.run("INSERT INTO t (id) SELECT generate_series(7, 5000)");
    let expired = "SELECT string_agg(id::text, ' ' ORDER BY id) FROM ttl.expired(NULL::t)";
    assert_eq!(disk.value(expired), "4");
    user.copy_in("COPY t (id) FROM STDIN", "6000\n6001\n")
        .expect("no key is taken");
    assert_eq!(disk.value(expired), "4");
}

/// TTL indexes of every type, partial too.
#[test]
fn c23_ttl_indexes() {
    let database = server().database("k_dates");
    let mut disk = database.disk();
    for (at, (kind, value)) in [
        ("timestamptz", "now() - n * interval '1 day'"),
        (
            "timestamp",
            "(now() - n * interval '1 day') AT TIME ZONE 'UTC'",
        ),
        (
            "date",
            "((now() - n * interval '1 day') AT TIME ZONE 'UTC')::date",
        ),
        (
            "timestamptz[]",
            "ARRAY[now(), now() - n * interval '1 day']",
        ),
        (
            "date[]",
            "ARRAY[NULL, ((now() - n * interval '1 day') AT TIME ZONE 'UTC')::date]",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (table, index) = (format!("d{at}"), format!("d{at}_at_idx"));
        let using = if kind.ends_with(']') {
            format!("CREATE INDEX {index} ON {table} (ttl.earliest(at))")
        } else {
            format!("CREATE INDEX {index} ON {table} (at) WHERE id <> 9")
        };
        disk.run(&format!(
            "CREATE TABLE {table} (id integer, at {kind}); {using}; SELECT ttl.expire_index('{index}', 86400)"
        ));
        keep(&mut disk, &table, 3 * 86_400);
        // Those of 2 and 3 days ago expired 1 and 2 days ago.
        let rows = |days: &str| {
            format!("INSERT INTO {table} SELECT n, {value} FROM unnest(ARRAY[{days}]) AS n")
        };
        disk.run(&rows("0, 2, 3, 6, 7, 9"));
        let stay = if kind.ends_with(']') {
            "0 2 3"
        } else {
            "0 2 3 9"
        };
        disk.wait_for_ids(&table, stay);
        disk.run(&rows("8"));
        disk.wait_for_ids(&table, stay);
        assert_eq!(
            disk.value(&format!(
                "SELECT string_agg(id::text, ' ' ORDER BY id) FROM ttl.expired(NULL::{table})"
            )),
            "2 3"
        );
    }
}

/// M11: a partition goes as a whole when its newest row has been kept for so long.
#[test]
fn c23_whole_partitions() {
    let database = server().database("k_parts");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE p (id integer, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
         SELECT ttl.enable('p', 864000000, drop_partitions => true)",
    );
    keep(&mut disk, "p", 86_400);
    // Partitions of a day, which begin 12 hours ago, 36 hours ago …
    disk.run(
        "DO $$ BEGIN FOR n IN 0..5 LOOP
             EXECUTE format('CREATE TABLE p_%s PARTITION OF p FOR VALUES FROM (%L) TO (%L)',
                 n, now() - n * interval '1 day' - interval '12 h', now() - (n - 1) * interval '1 day' - interval '12 h');
         END LOOP; END $$",
    );
    disk.run_preserving(
        "INSERT INTO p SELECT n, now() - n * interval '1 day' FROM generate_series(0, 5) AS n;
         UPDATE p SET ttl = 4 * 86400 + 1800 WHERE id = 5",
    );
    disk.run("SELECT ttl.set_default('p', 86400)");
    // All rows of p_2 expired 12 hours ago, those of p_3 36 hours ago. In p_5 one expired 23 hours ago.
    let leaves = "SELECT string_agg(relid::regclass::text, ' ' ORDER BY relid::regclass::text)
                    FROM pg_partition_tree('p') WHERE isleaf";
    disk.wait_until(leaves, "p_0 p_1 p_2 p_5", PATIENCE);
    disk.run("INSERT INTO p VALUES (100)");
    disk.wait_for_ids("p", "0 1 5 100");
    assert_eq!(
        disk.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM ttl.expired(NULL::p)"),
        "1 5"
    );
}
