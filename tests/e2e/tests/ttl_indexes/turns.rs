//! M2, M5, M9: deletion by TTL indexes beside writers, in turns, and with triggers and foreign
//! keys.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use ttl_ext_e2e::{PATIENCE, Server};

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::start_sweeping(&[]))
}

/// Clients move dates into the future at the moment the rows expire: a row whose UPDATE was
/// reported is found later, and all others are deleted.
#[test]
fn moved_to_the_future_in_time() {
    let database = server().database("race");
    let mut disk = database.disk();
    for table in ["direct", "by_sql"] {
        disk.run(&format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, kind integer, at timestamptz);
             SELECT ttl.create_index('{table}', '{{\"at\": 1}}', '{{\"expireAfterSeconds\": 1, \"partialFilterExpression\": \"kind = 1\"}}')"
        ));
    }
    disk.run(
        "CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN OLD; END $$;
         CREATE TRIGGER gone BEFORE DELETE ON by_sql FOR EACH ROW EXECUTE FUNCTION gone()",
    );
    let saved: Vec<(usize, String)> = std::thread::scope(|scope| {
        let client = |number: usize| {
            let (mut session, table) = (database.connect(), ["direct", "by_sql"][number % 2]);
            let change = ["at = now() + interval '1 hour'", "kind = 2"][number / 2 % 2];
            scope.spawn(move || {
                let mut saved = Vec::new();
                let mut slower = 1;
                let until = Instant::now() + Duration::from_secs(12);
                for round in 0_u64.. {
                    if Instant::now() > until && !saved.is_empty() {
                        break;
                    }
                    let before = saved.len();
                    let first = number as u64 * 1_000_000 + round * 100;
                    // The last of them expires in 300 milliseconds or later. If the machine is too
                    // slow for all of them, it gets longer.
                    let apart = (3 + round % 4 * 5) * slower;
                    session.run(&format!(
                        "INSERT INTO {table} SELECT {first} + n, 1, clock_timestamp() - interval '1 second' + n * interval '{apart} milliseconds'
                           FROM generate_series(0, 99) AS n"
                    ));
                    for n in 0..100 {
                        saved.extend(session.column(&format!(
                            "UPDATE {table} SET {change} WHERE id = {} RETURNING id",
                            first + n
                        )));
                        // So that rows expire between the updates, not after them.
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    if saved.len() == before {
                        slower *= 2;
                    }
                }
                saved.into_iter().map(|id| (number % 2, id)).collect::<Vec<_>>()
            })
        };
        let clients: Vec<_> = (0..4).map(client).collect();
        let join =
            |client: std::thread::ScopedJoinHandle<'_, Vec<_>>| client.join().expect("a client");
        clients.into_iter().flat_map(join).collect()
    });
    for (number, table) in ["direct", "by_sql"].into_iter().enumerate() {
        let mut mine: Vec<&str> = saved
            .iter()
            .filter(|(of, _)| *of == number)
            .map(|(_, id)| id.as_str())
            .collect();
        mine.sort_unstable();
        disk.wait_until(
            &format!("SELECT count(*) FROM {table}"),
            &mine.len().to_string(),
            PATIENCE,
        );
        let mut there = disk.column(&format!("SELECT id FROM {table}"));
        there.sort_unstable();
        assert_eq!(there, mine, "{table}");
        let deleted = disk.value(&format!(
            "SELECT rows_deleted FROM ttl.stats WHERE relation = '{table}'::regclass"
        ));
        println!("{table}: {} rows kept, {deleted} deleted", mine.len());
        assert!(!mine.is_empty() && deleted != "0", "no race: {deleted}");
    }
}

/// M9: sub-passes by two indexes alternate if each has more to delete than fits into one; the
/// trigger slows each row down.
#[test]
fn sub_passes_alternate() {
    let mut disk = server().database("alternate").disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, one timestamptz, two date);
         CREATE TABLE log (n serial, by_one boolean);
         CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO public.log (by_one) VALUES (OLD.one IS NOT NULL);
             PERFORM pg_sleep(0.0005);
             RETURN OLD;
         END $$;
         CREATE TRIGGER gone BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION gone();
         INSERT INTO t SELECT n, now() - n * interval '1 hour', NULL FROM generate_series(1, 9000) AS n;
         INSERT INTO t SELECT n, NULL, current_date - n % 1000 FROM generate_series(9001, 18000) AS n;
         INSERT INTO t VALUES (0, now(), current_date + 3);
         BEGIN;
         SELECT ttl.create_index('t', '{\"one\": 1}', '{\"expireAfterSeconds\": 600}');
         SELECT ttl.create_index('t', '{\"two\": 1}', '{\"expireAfterSeconds\": 0}');
         COMMIT",
    );
    disk.wait_for_ids("t", "0");
    let switches = disk.value(
        "SELECT count(*) FROM (SELECT by_one <> lag(by_one) OVER (ORDER BY n) AS other FROM log) AS l WHERE other",
    );
    println!("{switches} times from one index to the other");
    assert!(switches.parse::<i32>().expect("a count") >= 3, "{switches}");
    disk.wait_until(
        "SELECT rows_deleted = 18000 AND sub_passes >= 4 AND passes >= 1 FROM ttl.stats",
        "t",
        PATIENCE,
    );
}

/// M9: more than 50,000 rows for each index, scattered over the table, are deleted in block order
/// for all indexes together: neither waits for the other.
#[test]
fn two_long_backlogs() {
    let mut disk = server().database("long").disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, one timestamptz, two timestamptz);
         CREATE TABLE log (n serial, by_one boolean);
         CREATE FUNCTION gone() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO public.log (by_one) VALUES (OLD.one IS NOT NULL); RETURN OLD; END $$;
         INSERT INTO t SELECT n, CASE WHEN n % 2 = 0 THEN at END, CASE WHEN n % 2 = 1 THEN at END
           FROM (SELECT n, now() - n * interval '1 minute' AS at FROM generate_series(1, 120000) AS n) AS s ORDER BY hashint4(n);
         INSERT INTO t VALUES (0, now(), now())",
    );
    let rules = "BEGIN;
         SELECT ttl.create_index('t', '{\"one\": 1}', '{\"expireAfterSeconds\": 50}');
         SELECT ttl.create_index('t', '{\"two\": 1}', '{\"expireAfterSeconds\": 50}');
         COMMIT";
    disk.run("CREATE TABLE again AS TABLE t");
    disk.run(rules);
    let left = "SELECT count(*) FROM t WHERE one IS NULL OR two IS NULL";
    disk.wait_until(left, "0", 2 * PATIENCE);
    disk.wait_until(
        "SELECT rows_deleted >= 120000 AND sub_passes > 2 AND passes >= 1 FROM ttl.stats",
        "t",
        PATIENCE,
    );
    // Again with a trigger that records the order.
    disk.run(
        "SELECT ttl.disable('t', revive_expired => true);
         DELETE FROM t; INSERT INTO t TABLE again; DROP INDEX t_one_idx, t_two_idx;
         CREATE TRIGGER gone BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION gone()",
    );
    disk.run(rules);
    disk.wait_until(left, "0", 2 * PATIENCE);
    let first = disk.value("SELECT count(*) FROM log WHERE n <= 60000 AND NOT by_one");
    println!("{first} of the first 60000 by the second index");
    assert!((5000..=55_000).contains(&first.parse().expect("a count")));
}

/// Triggers see each row once. Foreign keys cascade, or keep rows, which are counted; all others
/// are deleted.
#[test]
fn triggers_and_foreign_keys() {
    let mut disk = server().database("keys").disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY, at timestamptz, moments timestamp[]);
         CREATE TABLE seen (id integer);
         CREATE TABLE counted (rows bigint);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO public.seen VALUES (OLD.id); RETURN OLD; END $$;
         CREATE FUNCTION add_up() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN INSERT INTO public.counted SELECT count(*) FROM gone; RETURN NULL; END $$;
         CREATE TRIGGER note AFTER DELETE ON t FOR EACH ROW EXECUTE FUNCTION note();
         CREATE TRIGGER add_up AFTER DELETE ON t REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION add_up();
         CREATE TABLE cascading (id integer REFERENCES t ON DELETE CASCADE);
         CREATE TABLE nulled (id integer REFERENCES t ON DELETE SET NULL);
         CREATE TABLE keeping (id integer REFERENCES t);
         INSERT INTO t SELECT n, now() - interval '1 day' FROM generate_series(1, 100) AS n;
         INSERT INTO t SELECT n, NULL, ARRAY[NULL, '1999-12-31'::timestamp] FROM generate_series(101, 200) AS n;
         INSERT INTO t VALUES (0, now() + interval '1 day', '{}');
         INSERT INTO cascading SELECT id FROM t;
         INSERT INTO nulled SELECT id FROM t;
         INSERT INTO keeping VALUES (50), (150);
         SELECT ttl.create_index('t', '{\"at\": 1}', '{\"expireAfterSeconds\": 0}');
         SELECT ttl.create_index('t', '{\"moments\": 1}', '{\"expireAfterSeconds\": 0}')",
    );
    disk.wait_for_ids("t", "0 50 150");
    disk.wait_until(
        "SELECT blocked_rows = 2 AND last_error LIKE '%keeping%' FROM ttl.stats",
        "t",
        PATIENCE,
    );
    for (query, expected) in [
        (
            "SELECT count(*) || ' ' || count(DISTINCT id) FROM seen",
            "198 198",
        ),
        ("SELECT sum(rows) FROM counted", "198"),
        (
            "SELECT string_agg(id::text, ' ' ORDER BY id) FROM cascading",
            "0 50 150",
        ),
        ("SELECT count(*) || ' ' || count(id) FROM nulled", "201 3"),
    ] {
        assert_eq!(disk.value(query), expected, "{query}");
    }
    // C6: kept rows are hidden too.
    disk.run("RESET ttl.show_expired");
    assert_eq!(disk.column("SELECT id FROM t"), ["0"]);
    // M6: after new seconds, rows that were set aside are tried again at once.
    let began = Instant::now();
    disk.run(
        "SET ttl.show_expired = on; DELETE FROM keeping;
         SELECT ttl.coll_mod('t', '{\"index\": {\"keyPattern\": {\"at\": 1}, \"expireAfterSeconds\": 5}}')",
    );
    disk.wait_for_ids("t", "0");
    // Without that they would be tried again after a minute.
    assert!(began.elapsed() < Duration::from_secs(50), "set aside");
    // Without rules nothing expires any more.
    disk.run(
        "SELECT ttl.set_default('t', NULL); INSERT INTO t VALUES (1, '2001-01-01', '{2001-01-01}')",
    );
    disk.run("RESET ttl.show_expired");
    assert_eq!(disk.value("SELECT count(*) FROM t"), "2");
}
