//! M11: with `drop_partitions`, a partition whose rows are all expired is dropped as a whole.

use std::sync::OnceLock;

use ttl_ext_e2e::{PATIENCE, Server, Session};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

/// A table `p` by days of 24 hours that change 12 hours from now, so that no
/// test meets midnight: `p_5` ... `p_0`, `p_rest` (MAXVALUE), `p_default`. Each
/// old one has rows of its day, the default one has rows of ten days ago.
const BY_DAY: &str = "
    CREATE TABLE p (id integer, _ts timestamptz NOT NULL DEFAULT now(), ttl integer) PARTITION BY RANGE (_ts);
    DO $$
    DECLARE today timestamptz := date_trunc('second', now()) - interval '12 hours';
    BEGIN
        FOR n IN 0..5 LOOP
            EXECUTE format('CREATE TABLE p_%s PARTITION OF p FOR VALUES FROM (%L) TO (%L)',
                n, today - n * interval '1 day', today - (n - 1) * interval '1 day');
        END LOOP;
        EXECUTE format('CREATE TABLE p_rest PARTITION OF p FOR VALUES FROM (%L) TO (MAXVALUE)', today + interval '1 day');
    END $$;
    CREATE TABLE p_default PARTITION OF p DEFAULT;
    INSERT INTO p SELECT 100 * day + n, now() - (day * 24 + 11) * interval '1 hour'
      FROM generate_series(1, 5) AS day, generate_series(1, 50) AS n;
    INSERT INTO p SELECT 1000 + n, now() - interval '10 days' FROM generate_series(1, 50) AS n;
    INSERT INTO p VALUES (1, now()), (2, now() + interval '30 hours')";

/// Two days: `p_2` is expired in part; `p_3` is the youngest partition without a live row.
const TWO_DAYS: i32 = 2 * 86400;

fn with_table(name: &str) -> Session {
    let mut disk = server().database(name).disk();
    disk.run(BY_DAY);
    disk
}

/// The partitions of `p`.
fn leaves(root: &str) -> String {
    format!(
        "SELECT string_agg(relid::regclass::text, ' ' ORDER BY relid::regclass::text)
           FROM pg_partition_tree('{root}') WHERE isleaf"
    )
}

fn dropped(disk: &mut Session, root: &str) -> i64 {
    let sql =
        format!("SELECT partitions_dropped FROM ttl.stats WHERE relation = '{root}'::regclass");
    disk.value(&sql).parse().expect("a count")
}

/// How many rows are on disk that are two days old.
const EXPIRED: &str = "SELECT count(*) FROM p WHERE _ts <= now() - interval '2 days'";

#[test]
fn old_partitions_go() {
    let mut disk = with_table("old");
    disk.run(&format!(
        "SELECT ttl.enable('p', {TWO_DAYS}, drop_partitions => true)"
    ));
    disk.wait_until(&leaves("p"), "p_0 p_1 p_2 p_default p_rest", PATIENCE);
    // In the others row by row; the default partition is never dropped.
    disk.wait_until(EXPIRED, "0", PATIENCE);
    assert_eq!(
        disk.value("SELECT string_agg(id::text, ' ') FROM p WHERE id < 10"),
        "1 2"
    );
    assert_eq!(dropped(&mut disk, "p"), 3);
    // Dropped, not only detached.
    assert_eq!(disk.value("SELECT to_regclass('p_4')"), "∅");
    // A longer default drops nothing more, a shorter one does.
    disk.run("SELECT ttl.set_default('p', 86400 * 30)");
    disk.look_again("p");
    disk.wait_until(&leaves("p"), "p_0 p_1 p_2 p_default p_rest", PATIENCE);
    disk.run("SELECT ttl.set_default('p', 1)");
    disk.wait_until(&leaves("p"), "p_0 p_default p_rest", PATIENCE);
    // Partitions for present rows stay, empty or not.
    disk.look_again("p");
    disk.wait_until(&leaves("p"), "p_0 p_default p_rest", PATIENCE);
}

/// Only with `drop_partitions`; a default of -1 or none drops nothing.
#[test]
fn not_without_being_asked() {
    let mut disk = with_table("not_asked");
    disk.run("SELECT ttl.enable('p', -1, drop_partitions => true)");
    disk.look_again("p");
    let all = "p_0 p_1 p_2 p_3 p_4 p_5 p_default p_rest";
    assert_eq!(disk.value(&leaves("p")), all);
    disk.run(&format!(
        "SELECT ttl.enable('p', {TWO_DAYS}, drop_partitions => false)"
    ));
    disk.wait_until(EXPIRED, "0", PATIENCE);
    disk.look_again("p");
    assert_eq!(disk.value(&leaves("p")), all);
    assert_eq!(dropped(&mut disk, "p"), 0);
    // Asked later: what has been deleted before is evidence, too.
    disk.run(&format!(
        "SELECT ttl.enable('p', {TWO_DAYS}, drop_partitions => true)"
    ));
    disk.wait_until(&leaves("p"), "p_0 p_1 p_2 p_default p_rest", PATIENCE);
    // A table partitioned by another column has no such bound.
    disk.run(
        "CREATE TABLE q (id integer) PARTITION BY RANGE (id);
         CREATE TABLE q_1 PARTITION OF q FOR VALUES FROM (-10) TO (1000);
         SELECT ttl.enable('q', 3600, drop_partitions => true)",
    );
    disk.insert_expired("q", 1, 100);
    disk.wait_for_none("q");
    assert_eq!(disk.value(&leaves("q")), "q_1");
}

/// A live row with an override keeps its partition.
#[test]
fn a_live_row_keeps_its_partition() {
    let mut disk = with_table("live_row");
    disk.run_preserving(
        "UPDATE p SET ttl = -1 WHERE id IN (401, 402); UPDATE p SET ttl = 864000 WHERE id = 501",
    );
    disk.run(&format!(
        "SELECT ttl.enable('p', {TWO_DAYS}, drop_partitions => true)"
    ));
    disk.wait_until(
        &leaves("p"),
        "p_0 p_1 p_2 p_4 p_5 p_default p_rest",
        PATIENCE,
    );
    disk.wait_until(EXPIRED, "3", PATIENCE);
    disk.look_again("p");
    assert_eq!(
        disk.value("SELECT string_agg(id::text, ' ' ORDER BY id) FROM p WHERE id > 200"),
        "401 402 501"
    );
    disk.run_preserving("UPDATE p SET ttl = NULL WHERE id IN (401, 402)");
    disk.wait_until(&leaves("p"), "p_0 p_1 p_2 p_5 p_default p_rest", PATIENCE);
    // C1: a write moves the row into the present.
    disk.run("UPDATE p SET ttl = NULL WHERE id = 501");
    disk.wait_until(&leaves("p"), "p_0 p_1 p_2 p_default p_rest", PATIENCE);
    assert_eq!(
        disk.value("SELECT tableoid::regclass FROM p WHERE id = 501"),
        "p_0"
    );
}

/// A partition that cannot be dropped is emptied row by row, and the reason is shown.
#[test]
fn partitions_that_cannot_be_dropped() {
    let mut disk = with_table("needed");
    disk.run("CREATE VIEW v AS SELECT * FROM p_4");
    disk.run(&format!(
        "SELECT ttl.enable('p', {TWO_DAYS}, drop_partitions => true)"
    ));
    disk.wait_until(&leaves("p"), "p_0 p_1 p_2 p_4 p_default p_rest", PATIENCE);
    disk.wait_until(EXPIRED, "0", PATIENCE);
    disk.wait_until(
        "SELECT last_error LIKE '%p_4%' FROM ttl.stats WHERE relation = 'p'::regclass",
        "t",
        PATIENCE,
    );
    assert_eq!(disk.value("SELECT count(*) FROM v"), "0");

    // A foreign key on the partitioned table, with a row that it keeps.
    let mut disk = with_table("referenced");
    disk.run(
        "ALTER TABLE p ADD PRIMARY KEY (id, _ts);
         CREATE TABLE child (id integer, ts timestamptz, FOREIGN KEY (id, ts) REFERENCES p);
         INSERT INTO child SELECT id, _ts FROM p WHERE id IN (1, 410)",
    );
    disk.run(&format!(
        "SELECT ttl.enable('p', {TWO_DAYS}, drop_partitions => true)"
    ));
    disk.wait_until(EXPIRED, "1", PATIENCE);
    disk.wait_until(
        "SELECT last_error IS NOT NULL FROM ttl.stats WHERE relation = 'p'::regclass",
        "t",
        PATIENCE,
    );
    assert_eq!(disk.value("SELECT id FROM p_4"), "410");
    assert_eq!(disk.value("SELECT count(*) FROM p WHERE id = 1"), "1");
    // C6: still hidden.
    disk.run("RESET ttl.show_expired");
    assert_eq!(disk.value("SELECT count(*) FROM p WHERE id = 410"), "0");
}

/// A range by `_ts` above or below another level, and a key of two columns.
#[test]
fn levels() {
    let mut disk = server().database("levels").disk();
    disk.run(
        "CREATE TABLE a (id integer, kind text DEFAULT 'x', _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts, id);
         CREATE TABLE a_old PARTITION OF a FOR VALUES FROM (MINVALUE, MINVALUE) TO ('2020-01-01', 7) PARTITION BY LIST (kind);
         CREATE TABLE a_old_x PARTITION OF a_old FOR VALUES IN ('x');
         CREATE TABLE a_old_rest PARTITION OF a_old DEFAULT;
         CREATE TABLE a_new PARTITION OF a FOR VALUES FROM ('2020-01-01', 7) TO (MAXVALUE, MAXVALUE);
         INSERT INTO a (id, _ts) VALUES (1, '2010-01-01'), (2, now());
         SELECT ttl.enable('a', 3600, drop_partitions => true);
         CREATE TABLE b (id integer, kind text DEFAULT 'x', _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY LIST (kind);
         CREATE TABLE b_x PARTITION OF b FOR VALUES IN ('x') PARTITION BY RANGE (_ts);
         CREATE TABLE b_x_old PARTITION OF b_x FOR VALUES FROM ('2000-01-01') TO ('2020-01-01');
         CREATE TABLE b_x_new PARTITION OF b_x FOR VALUES FROM ('2020-01-01') TO ('2100-01-01');
         INSERT INTO b (id, _ts) VALUES (1, '2010-01-01'), (2, now());
         SELECT ttl.enable('b', 3600, drop_partitions => true)",
    );
    disk.wait_for_ids("a", "2");
    disk.wait_until("SELECT to_regclass('a_old_x')", "∅", PATIENCE);
    disk.wait_until(&leaves("b"), "b_x_new", PATIENCE);
    disk.wait_for_ids("b", "2");
}

/// A DROP waits for readers of an old partition no longer than `ttl.lock_timeout`, so that others
/// wait behind it only briefly; deletion elsewhere continues.
#[test]
fn partitions_in_use() {
    let mut disk = with_table("in_use");
    let mut reader = server().existing_database("in_use").disk();
    disk.run("CREATE TABLE u (id integer PRIMARY KEY); SELECT ttl.enable('u', 3600)");
    // Statements that need a strong lock run before the reader.
    disk.run("SELECT ttl.enable('p')");
    reader.run("BEGIN; SELECT count(*) FROM p_5");
    disk.run(&format!(
        "SELECT ttl.enable('p', {TWO_DAYS}, drop_partitions => true)"
    ));
    disk.look_again("u");
    disk.wait_until(&leaves("p"), "p_0 p_1 p_2 p_5 p_default p_rest", PATIENCE);
    disk.run("SET lock_timeout = '30s'; INSERT INTO p (id) VALUES (7)");
    reader.run("COMMIT");
    disk.wait_until(&leaves("p"), "p_0 p_1 p_2 p_default p_rest", PATIENCE);
}

/// A partition that has stood empty since it was made is there for rows that are still to come.
#[test]
fn an_empty_partition_has_its_time() {
    let server = Server::start_sweeping(&[]);
    let mut disk = server.database("app").disk();
    let by_year = |table: &str| {
        format!(
            "CREATE TABLE {table} (id integer, _ts timestamptz NOT NULL DEFAULT now()) PARTITION BY RANGE (_ts);
             CREATE TABLE {table}_2019 PARTITION OF {table} FOR VALUES FROM ('2019-01-01') TO ('2020-01-01');
             CREATE TABLE {table}_2020 PARTITION OF {table} FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
             CREATE TABLE {table}_rest PARTITION OF {table} DEFAULT;
             SELECT ttl.enable('{table}', 3600, drop_partitions => true)"
        )
    };
    disk.run(&by_year("p"));
    disk.look_again("p");
    let all = "p_2019 p_2020 p_rest";
    assert_eq!(disk.value(&leaves("p")), all);
    // A back-fill.
    disk.run_preserving("INSERT INTO p (id, _ts, ttl) VALUES (1, '2020-06-01', -1)");
    disk.look_again("p");
    assert_eq!(disk.value(&leaves("p")), all);
    // Rows that have expired are evidence; those of a transaction that failed are not.
    disk.run_preserving("BEGIN; INSERT INTO p (id, _ts) VALUES (2, '2019-06-01'); ROLLBACK");
    disk.look_again("p");
    assert_eq!(disk.value(&leaves("p")), all);
    disk.run_preserving("INSERT INTO p (id, _ts) VALUES (2, '2019-06-01')");
    disk.wait_until(&leaves("p"), "p_2020 p_rest", PATIENCE);
    // So are rows that workers have deleted one by one; but not after TRUNCATE.
    disk.run(&by_year("q"));
    disk.run_preserving(
        "INSERT INTO q (id, _ts, ttl) VALUES (1, '2019-06-01', -1), (1, '2020-06-01', -1)",
    );
    disk.run_preserving("INSERT INTO q (id, _ts) VALUES (2, '2019-06-01'), (2, '2020-06-01')");
    disk.wait_for_ids("q", "1 1");
    disk.run("BEGIN; LOCK TABLE q; DELETE FROM q WHERE tableoid = 'q_2019'::regclass; TRUNCATE q_2020; COMMIT");
    disk.wait_until(&leaves("q"), "q_2020 q_rest", PATIENCE);
    disk.look_again("q");
    assert_eq!(disk.value(&leaves("q")), "q_2020 q_rest");
    // Its time.
    server.reload(&[("ttl.empty_partition_age", "1s")]);
    disk.wait_until(&leaves("q"), "q_rest", PATIENCE);
    disk.look_again("p");
    assert_eq!(disk.value(&leaves("p")), "p_2020 p_rest");
}
