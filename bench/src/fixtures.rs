//! Tables and the switch of background deletion.

use std::time::{Duration, Instant};

use ttl_ext_e2e::{Server, Session};

/// The lifetime of rows, in seconds, wherever nothing speaks for another.
pub const LIFETIME: u64 = 86_400;

/// A side's name in the tables, and its table: as it was before TTL, without columns and indexes.
pub const BARE: (&str, &str) = ("bare", "bare");

/// The same with [`columns_by_hand`].
pub const BY_HAND: (&str, &str) = ("by hand", "by_hand");

/// What one adds by hand who deletes by a job: the columns, and the index that the job needs.
pub fn columns_by_hand(session: &mut Session, table: &str) {
    session.run(&format!(
        "ALTER TABLE {table} ADD _ts timestamptz NOT NULL DEFAULT now(), ADD ttl integer;
         CREATE INDEX ON {table} (_ts)"
    ));
}

/// A table as pg_partman keeps it, which drops a partition when it is over: one for each hour of a day. Its key must
/// have the time of creation, so that nothing makes `id` unique.
pub const PARTITIONED: (&str, &str) = ("24 partitions by time", "partitioned");

/// Makes [`PARTITIONED`].
pub fn partitioned_by_hand(session: &mut Session, fillfactor: u32) {
    session.run(&format!(
        "CREATE TABLE partitioned (id bigint, data text, created_at timestamptz NOT NULL DEFAULT now(),
                                   PRIMARY KEY (id, created_at)) PARTITION BY RANGE (created_at);
         DO $$
         DECLARE
             first timestamptz := date_trunc('hour', now()) - interval '21 hours';
         BEGIN
             FOR n IN 0..23 LOOP
                 EXECUTE format('CREATE TABLE partitioned_%s PARTITION OF partitioned FOR VALUES FROM (%L) TO (%L)
                                 WITH (fillfactor = {fillfactor})',
                                n, first + n * interval '1 hour', first + (n + 1) * interval '1 hour');
             END LOOP;
         END $$"
    ));
}

/// The time of creation of row `i`, in any of the partitions up to now's.
pub const CREATED: &str = "now() - i % 21 * interval '1 hour'";

/// Columns, constraint and indexes as `ttl.enable` adds them, without time to live: where only
/// the restriction is to be measured.
pub fn same_without_ttl(session: &mut Session, table: &str) {
    session.run(&format!(
        "ALTER TABLE {table} ADD _ts timestamptz NOT NULL DEFAULT now(),
                             ADD ttl integer CHECK (ttl > 0 OR ttl = -1)"
    ));
    indexes_by_hand(session, table);
}

/// Indexes as `ttl.enable` adds them.
pub fn indexes_by_hand(session: &mut Session, table: &str) {
    session.run(&format!(
        "CREATE INDEX ON {table} (ttl.expiry_key(_ts, ttl))"
    ));
}

/// Turn time to live on.
pub fn enable(session: &mut Session, table: &str, default: i64) {
    session.run(&format!("SELECT ttl.enable('{table}', {default})"));
}

/// Make both sides of a comparison rest before one is measured: statistics, visibility
/// and hint bits are set, and no checkpoint is near.
pub fn settle(session: &mut Session, tables: &str) {
    session.run(&format!("VACUUM (ANALYZE) {tables}"));
    session.run("CHECKPOINT");
}

/// How long statements take, in seconds.
pub fn timed(session: &mut Session, sql: &str) -> f64 {
    let begin = Instant::now();
    session.run(sql);
    begin.elapsed().as_secs_f64()
}

/// A single number.
pub fn number(session: &mut Session, sql: &str) -> f64 {
    let text = session.value(sql);
    text.parse()
        .unwrap_or_else(|_| panic!("{sql}: {text} is not a number"))
}

/// The rows of a table that are on disk, expired ones as well.
pub fn on_disk(session: &mut Session, table: &str) -> u64 {
    let sql = format!("SET ttl.show_expired = on; SELECT count(*) FROM {table}");
    let count = number(session, &sql) as u64;
    session.run("RESET ttl.show_expired");
    count
}

/// Set a setting by ALTER SYSTEM and a reload; `DEFAULT` takes it back.
pub fn set(server: &Server, name: &str, value: &str) {
    let mut session = server.connect("postgres", "postgres");
    session.run(&format!("ALTER SYSTEM SET {name} = {value}"));
    session.run("SELECT pg_reload_conf()");
}

/// Switch background deletion on.
pub fn worker_on(server: &Server) {
    set(server, "ttl.enabled", "on");
}

/// Switch it off, and wait until the workers have left.
pub fn worker_off(server: &Server) {
    set(server, "ttl.enabled", "off");
    let mut session = server.connect("postgres", "postgres");
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'ttl_ext worker'";
    wait(&mut session, sql, "0", 20, 120);
}

/// Ask every `step` milliseconds until the query has this value.
///
/// # Panics
/// If it has not within `seconds`.
pub fn wait(session: &mut Session, sql: &str, expected: &str, step: u64, seconds: u64) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        let value = session.value(sql);
        if value == expected {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "still {value} and not {expected} after {seconds} s: {sql}"
        );
        std::thread::sleep(Duration::from_millis(step));
    }
}

/// A copy of a database, files and all: the same data, to the page, for each side and
/// each repetition, and much faster than to make them anew.
pub fn copy_database(server: &Server, template: &str, name: &str) -> Session {
    let mut session = server.connect("postgres", "postgres");
    session.run(&format!("DROP DATABASE IF EXISTS {name}"));
    session.run(&format!(
        "CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy"
    ));
    session.run("CHECKPOINT");
    let mut copy = server.connect(name, "postgres");
    let extension = "SELECT count(*) FROM pg_extension WHERE extname = 'ttl_ext'";
    if copy.value(extension) == "1" {
        // In a copy nothing is deleted before that is asked for.
        copy.run("SELECT ttl.resume_restored()");
    }
    copy
}

/// Set a database apart as a template: workers leave it alone.
pub fn keep_as_template(server: &Server, name: &str) {
    let mut session = server.connect("postgres", "postgres");
    session.run(&format!("ALTER DATABASE {name} IS_TEMPLATE true"));
}

/// Drop databases, templates as well.
pub fn drop_databases(server: &Server, names: &[&str]) {
    let mut session = server.connect("postgres", "postgres");
    for name in names {
        let sql = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
        if session.value(&sql) == "1" {
            session.run(&format!("ALTER DATABASE {name} IS_TEMPLATE false"));
            session.run(&format!("DROP DATABASE {name}"));
        }
    }
}

/// The plan of a query, without costs.
pub fn plan(session: &mut Session, sql: &str) -> String {
    let lines = session.column(&format!("EXPLAIN (COSTS OFF) {sql}"));
    format!("```\n{sql}\n{}\n```", lines.join("\n"))
}
