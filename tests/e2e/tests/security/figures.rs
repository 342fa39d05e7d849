//! A12: figures of a table, which depend on its rows, are for those who could count the rows
//! themselves. The functions behind the views check that: REVOKE on a view hides nothing.

use ttl_ext_e2e::{Database, PATIENCE, Server, hostile};

/// Of the only live row.
const EXPIRY: &str = "2041-07-17";
/// How many rows were deleted.
const DELETED: &str = "7919";

/// The victim's tables: deletion from each is over.
fn tables(database: &Database<'_>) {
    let mut victim = hostile::owner(database, "victim");
    for table in ["t", "r"] {
        victim.run(&format!(
            "CREATE TABLE {table} (id int PRIMARY KEY, secret text); SELECT ttl.enable('{table}', 3600)"
        ));
        victim.run_preserving(&format!(
            "INSERT INTO {table} (id, _ts, ttl) VALUES (0, timestamptz '{EXPIRY} 12:00+00' - interval '1000000000 s', 1000000000)"
        ));
        victim.insert_expired(table, 1, DELETED.parse().expect("a number"));
        victim.wait_for_ids(table, "0");
        victim.wait_until(
            &format!("SELECT rows_deleted = {DELETED} FROM ttl.stats WHERE relation = '{table}'::regclass"),
            "t",
            PATIENCE,
        );
        victim.wait_until(
            &format!("SELECT date(next_expiry) = '{EXPIRY}' FROM ttl.tables WHERE relation = '{table}'::regclass"),
            "t",
            PATIENCE,
        );
    }
    victim.run("ALTER TABLE r ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON r USING (false)");
}

/// Everything that a user can ask about a table, as text.
fn answers(table: &str) -> [String; 9] {
    let all = |from: &str| {
        format!("SELECT COALESCE(string_agg(to_jsonb(x)::text, ' '), '') FROM {from} AS x")
    };
    let of = |from: &str| format!("{} WHERE relation::text ~ '{table}$'", all(from));
    [
        of("ttl.tables"),
        of("ttl.stats"),
        of("ttl.placements"),
        all(&format!("(SELECT ttl_internal.standing('{table}'))")),
        all(&format!("(SELECT ttl_internal.policy('{table}'))")),
        all(&format!("(SELECT ttl.problems('{table}'))")),
        all(&format!("(SELECT ttl_internal.rules('{table}'))")),
        format!(
            "{} WHERE relid = '{table}'::regclass",
            all("ttl_internal.table_stats()")
        ),
        all("ttl_internal.node_reports()"),
    ]
}

#[test]
fn a12_figures_are_for_those_who_may_read_the_rows() {
    let server = hostile::start(&[]);
    let database = hostile::armed_database(&server);
    tables(&database);
    database.connect().run(
        "CREATE ROLE member LOGIN IN ROLE victim; CREATE ROLE monitor LOGIN IN ROLE pg_monitor; CREATE ROLE columnar LOGIN;
         CREATE ROLE bypassing LOGIN BYPASSRLS; GRANT SELECT ON t, r TO reader, bypassing; GRANT SELECT (id) ON t, r TO columnar",
    );
    for (user, of_t, of_r) in [
        ("postgres", true, true),
        ("victim", true, true),
        ("member", true, true),
        ("monitor", true, true),
        ("bypassing", true, true),
        ("reader", true, false),
        ("columnar", false, false),
        ("attacker", false, false),
    ] {
        let mut session = database.connect_as(user);
        session.run("SET TimeZone = 'UTC'; SET row_security = off");
        for (table, sees) in [("t", of_t), ("r", of_r)] {
            let mut seen = String::new();
            for query in answers(table) {
                // The report of a node has both tables.
                if query.contains("node_reports") && of_t != of_r {
                    continue;
                }
                let answer = session.value(&query);
                if !sees {
                    for secret in [EXPIRY, DELETED] {
                        assert!(!answer.contains(secret), "{user}: {query}\n{answer}");
                    }
                }
                seen += &answer;
            }
            if sees {
                let figures = session.rows(&format!(
                    "SELECT date(next_expiry), backlog, rows_deleted, batches > 0, passes > 0, sub_passes > 0, partitions_dropped,
                            last_pass_at IS NOT NULL, last_pass_ms > 0, lag, backlog_estimate, blocked_rows
                       FROM ttl.tables JOIN ttl.stats USING (relation) WHERE relation = '{table}'::regclass"
                ));
                let expected = [
                    EXPIRY, "0", DELETED, "t", "t", "t", "0", "t", "t", "00:00:00", "0", "0",
                ];
                assert_eq!(figures, [expected], "{user}: {table}");
                assert!(
                    seen.contains(EXPIRY) && seen.contains(DELETED),
                    "{user}: {seen}"
                );
            } else {
                // Every figure is NULL; what the table takes of the workers is not.
                let shown = session.value(&format!(
                    "SELECT string_agg(key, ' ' ORDER BY key) FROM ttl.stats AS s, jsonb_each_text(to_jsonb(s)) AS e
                      WHERE relation = '{table}'::regclass AND value IS NOT NULL"
                ));
                assert_eq!(shown, "relation slow time_used_ms", "{user}");
                let shown = session.rows(&format!(
                    "SELECT next_expiry, backlog, default_ttl, problems, worker IN ('running', 'sleeping'), index_state
                       FROM ttl.tables WHERE relation = '{table}'::regclass"
                ));
                assert_eq!(
                    shown,
                    [["∅", "∅", "3600", "{}", "t", "not needed"]],
                    "{user}"
                );
            }
        }
    }
}

/// The counts of a worker's progress, and SELECT on the table by way of which a partition is read.
#[test]
fn a12_progress_counts_for_those_who_may_read_the_rows() {
    let slow = [("ttl.max_effort", "1"), ("ttl.batch_size", "10")];
    let server = Server::start_sweeping(&[slow[0], slow[1], ("ttl.min_effort", "1")]);
    let database = server.database("d");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE t (id int) PARTITION BY RANGE (id); CREATE TABLE t1 PARTITION OF t DEFAULT; SELECT ttl.enable('t', 3600);
         CREATE ROLE stranger LOGIN; CREATE ROLE reader LOGIN; GRANT SELECT ON t TO reader",
    );
    disk.insert_expired("t", 1, 5000);
    let progress = "SELECT DISTINCT rows_deleted > 0, batch_size > 0 FROM ttl.progress WHERE relation = 't1'::regclass";
    let seen = |user: &str, expected: &str| {
        database.connect_as(user).wait_until(
            &format!("SELECT string_agg(p::text, ' ') FROM ({progress}) AS p"),
            expected,
            PATIENCE,
        );
    };
    seen("reader", "(t,t)");
    seen("stranger", "(,)");
    seen("reader", "(t,t)");
}
