//! M11: partitions are dropped as a whole by the column of a TTL index. M1: the plans that find
//! rows which expire by one.

use std::sync::OnceLock;

use ttl_ext_e2e::{PATIENCE, Server, Session, lacks_library};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

/// The partitions of a table, without its name.
fn leaves(root: &str) -> String {
    format!(
        "SELECT string_agg(replace(relid::regclass::text, '{root}_', ''), ' ' ORDER BY relid::regclass::text)
           FROM pg_partition_tree('{root}') WHERE isleaf"
    )
}

/// A table by years, with rows in each partition; bounds before it and after.
fn by_years(disk: &mut Session, table: &str, ty: &str) {
    disk.run(&format!(
        "CREATE TABLE {table} (id integer, kind text, at {ty}) PARTITION BY RANGE (at);
         CREATE TABLE {table}_first PARTITION OF {table} FOR VALUES FROM (MINVALUE) TO ('2010-01-01');
         CREATE TABLE {table}_2010 PARTITION OF {table} FOR VALUES FROM ('2010-01-01') TO ('2011-01-01');
         CREATE TABLE {table}_2011 PARTITION OF {table} FOR VALUES FROM ('2011-01-01') TO ('2020-01-01') PARTITION BY LIST (kind);
         CREATE TABLE {table}_2011a PARTITION OF {table}_2011 FOR VALUES IN ('a');
         CREATE TABLE {table}_2011z PARTITION OF {table}_2011 DEFAULT;
         CREATE TABLE {table}_now PARTITION OF {table} FOR VALUES FROM ('2020-01-01') TO ('2300-01-01');
         CREATE TABLE {table}_last PARTITION OF {table} FOR VALUES FROM ('2300-01-01') TO (MAXVALUE);
         CREATE TABLE {table}_rest PARTITION OF {table} DEFAULT;
         INSERT INTO {table} SELECT n, 'a', ('2005-06-01'::date + 365 * (n % 18))::{ty} FROM generate_series(1, 900) AS n;
         INSERT INTO {table} SELECT 1000 + n % 18, NULL, ('2005-06-01'::date + 365 * (n % 18))::{ty} FROM generate_series(1, 90) AS n;
         INSERT INTO {table} VALUES (2001, 'b', now() + interval '5 days'), (2002, NULL, 'infinity'), (2003, NULL, NULL);
         CREATE INDEX {table}_by_date ON {table} (at)"
    ));
}

#[test]
fn partitions_go_by_each_type() {
    let mut disk = server().database("types").disk();
    for (table, ty) in [("p", "timestamptz"), ("q", "timestamp"), ("r", "date")] {
        by_years(&mut disk, table, ty);
        disk.run(&format!(
            "SELECT ttl.expire_index('{table}_by_date', 86400, drop_partitions => true)"
        ));
        // Its first partition has no infinite date.
        disk.wait_until(&leaves(table), "last now rest", PATIENCE);
        disk.wait_for_ids(table, "2001 2002 2003");
        // Counted after the commit by which others see it.
        let dropped = format!(
            "SELECT partitions_dropped FROM ttl.stats WHERE relation = '{table}'::regclass"
        );
        disk.wait_until(&dropped, "4", PATIENCE);
        assert_eq!(
            disk.value(&format!("SELECT to_regclass('{table}_2011a')")),
            "∅"
        );
    }
}

/// M12: `-infinity` is no date, so the row lives and keeps its partition.
#[test]
fn minus_infinity_keeps_its_partition() {
    let mut disk = server().database("infinite").disk();
    for (table, ty) in [("p", "timestamptz"), ("q", "timestamp"), ("r", "date")] {
        by_years(&mut disk, table, ty);
        disk.run(&format!(
            "INSERT INTO {table} VALUES (3000, 'a', '-infinity');
             SELECT ttl.expire_index('{table}_by_date', 0, drop_partitions => true)"
        ));
        disk.wait_until(&leaves(table), "first last now rest", PATIENCE);
        disk.wait_for_ids(table, "2001 2002 2003 3000");
        disk.run(&format!("DELETE FROM {table} WHERE id = 3000"));
        disk.wait_until(&leaves(table), "last now rest", 2 * PATIENCE);
    }
}

/// With a partial index, or one on another column, rows are deleted and partitions stay; so they do
/// without `drop_partitions`.
#[test]
fn partitions_stay() {
    let mut disk = server().database("stay").disk();
    by_years(&mut disk, "p", "timestamptz");
    let all = "2010 2011a 2011z first last now rest";
    disk.run(
        "CREATE INDEX of_a ON p (at) WHERE kind = 'a';
         SELECT ttl.expire_index('of_a', 86400, drop_partitions => true)",
    );
    let left = "SELECT count(*) FILTER (WHERE kind = 'a') || ' ' || count(*) FROM p";
    disk.wait_until(left, "0 93", PATIENCE);
    assert_eq!(disk.value(&leaves("p")), all);
    by_years(&mut disk, "q", "date");
    disk.run("SELECT ttl.expire_index('q_by_date', 86400)");
    disk.wait_for_ids("q", "2001 2002 2003");
    assert_eq!(disk.value(&leaves("q")), all);
    by_years(&mut disk, "r", "timestamp");
    disk.run(
        "ALTER TABLE r ADD COLUMN other timestamptz;
         UPDATE r SET other = now() - interval '1 day' WHERE id % 2 = 0;
         SELECT ttl.create_index('r', '{\"other\": 1}', '{\"expireAfterSeconds\": 60}')",
    );
    let error = disk.value("SELECT ttl.expire_index('r_other_idx', 60, drop_partitions => true)");
    assert_eq!(error, "");
    disk.wait_until("SELECT count(*) FROM r WHERE id % 2 = 0", "0", PATIENCE);
    assert_eq!(disk.value(&leaves("r")), all);
    // The rule on the partition key drops the partitions, whatever the other rules are.
    disk.run("SELECT ttl.expire_index('p_by_date', 86400)");
    disk.wait_until(&leaves("p"), "last now rest", PATIENCE);
}

/// M1: what the worker runs, and what `ttl.purge` runs, uses the
/// TTL index.
#[test]
fn the_sweep_uses_the_index() {
    if lacks_library("auto_explain", "partitions::the_sweep_uses_the_index") {
        return;
    }
    let server = Server::start_sweeping(&[
        ("shared_preload_libraries", "ttl_ext, auto_explain"),
        ("auto_explain.log_min_duration", "0"),
        ("auto_explain.log_nested_statements", "on"),
    ]);
    let database = server.database("plans");
    let mut disk = database.disk();
    disk.run(
        "SET auto_explain.log_min_duration = -1;
         CREATE TABLE t (id integer, kind text, at timestamptz, moment timestamp, day date, dates date[]);
         CREATE TABLE p (id integer, day date) PARTITION BY LIST (id);
         CREATE TABLE p1 PARTITION OF p DEFAULT;
         CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
         CREATE TRIGGER gone BEFORE DELETE ON p FOR EACH ROW EXECUTE FUNCTION gone();
         INSERT INTO t SELECT n, (ARRAY['debug', 'error'])[1 + n % 2], now(), now() + interval '1 day',
                current_date + 1, ARRAY[current_date + 1] FROM generate_series(1, 50000) AS n;
         INSERT INTO p SELECT n, current_date + 1 FROM generate_series(1, 50000) AS n;
         SELECT ttl.create_index('t', '{\"at\": 1}', '{\"name\": \"t_by_at\", \"expireAfterSeconds\": 3600, \"partialFilterExpression\": \"kind = ''debug''\"}');
         SELECT ttl.create_index('t', '{\"moment\": -1}', '{\"name\": \"t_by_moment\", \"expireAfterSeconds\": 3600}');
         SELECT ttl.create_index('t', '{\"day\": 1}', '{\"name\": \"t_by_day\", \"expireAfterSeconds\": 3600}');
         SELECT ttl.create_index('t', '{\"dates\": 1}', '{\"name\": \"t_by_dates\", \"expireAfterSeconds\": 3600}');
         SELECT ttl.create_index('p', '{\"day\": 1}', '{\"expireAfterSeconds\": 3600}');
         ANALYZE t; ANALYZE p",
    );
    const ROWS: &str = "
        INSERT INTO t (id, kind, at) SELECT -n, 'debug', now() - interval '1 day' FROM generate_series(1, 10) AS n;
        INSERT INTO t (id, moment) SELECT -n, now() - interval '1 day' FROM generate_series(1, 10) AS n;
        INSERT INTO t (id, day) SELECT -n, current_date - 1 FROM generate_series(1, 10) AS n;
        INSERT INTO t (id, dates) SELECT -n, ARRAY[current_date - 1] FROM generate_series(1, 10) AS n;
        INSERT INTO p SELECT -n, current_date - 1 FROM generate_series(1, 10) AS n";
    disk.run(ROWS);
    disk.wait_until("SELECT count(*) FROM t WHERE id < 0", "0", PATIENCE);
    disk.wait_until("SELECT count(*) FROM p WHERE id < 0", "0", PATIENCE);
    let found = plans(&server, "ttl_ext worker");
    for (table, index) in INDEXES {
        let scan = format!(" using {index} on {table} ");
        let is_it = |plan: &&String| plan.contains("SELECT ctid") && plan.contains(&scan);
        let plan = found.iter().find(is_it);
        let plan = plan.unwrap_or_else(|| panic!("{index}\n{}", found.join("\n---\n")));
        println!("{plan}");
        assert!(plan.contains("Index Cond"), "{plan}");
    }

    // In a session, by DELETE.
    server.reload(&[("ttl.enabled", "off")]);
    disk.run(ROWS);
    disk.run("SET auto_explain.log_min_duration = 0");
    assert_eq!(disk.value("SELECT ttl.purge('t')"), "40");
    assert_eq!(disk.value("SELECT ttl.purge('p')"), "10");
    disk.run("SET auto_explain.log_min_duration = -1");
    let found = plans(&server, "client backend");
    for (table, index) in INDEXES {
        let deletes = format!("Delete on {table} ");
        let is_it = |plan: &&String| plan.contains(&deletes) && plan.contains(index);
        let plan = found.iter().find(is_it);
        let plan = plan.unwrap_or_else(|| panic!("{index}\n{}", found.join("\n---\n")));
        println!("{plan}");
        assert!(!plan.contains("Seq Scan"), "{plan}");
    }
}

/// The indexes of the tables below, by which rows expire.
const INDEXES: [(&str, &str); 5] = [
    ("t", "t_by_at"),
    ("t", "t_by_moment"),
    ("t", "t_by_day"),
    ("t", "t_by_dates"),
    ("p1", "p1_day_idx"),
];

/// The texts and plans of the queries that processes of a kind have run.
fn plans(server: &Server, kind: &str) -> Vec<String> {
    let log = server.log_lines(&[]);
    let mut plans = Vec::new();
    let mut lines = log.iter().peekable();
    while let Some(line) = lines.next() {
        if line.contains(kind) && line.contains("plan:") {
            let mut plan = Vec::new();
            while let Some(more) = lines.next_if(|line| line.starts_with('\t')) {
                plan.push(more.as_str());
            }
            plans.push(plan.join("\n"));
        }
    }
    plans
}
