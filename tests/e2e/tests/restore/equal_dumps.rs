//! Equal policies have equal dumps: a tool that compares schemas sees a difference only where there is one,
//! whatever calls and whatever databases led to a policy.

use std::fmt::Write;

use ttl_ext_e2e::Server;

use crate::ddl_forms::schema_of;

/// Ways to one table with one policy. The first is the plainest.
const WAYS: [(&str, &[&str]); 11] = [
    (
        "CREATE TABLE t (id int PRIMARY KEY)",
        &[
            "SELECT ttl.enable('t', 3600)",
            "ALTER TABLE t SET (ttl.default_ttl = '1 hour')",
            "SELECT ttl.enable('t', 86400); INSERT INTO t SELECT generate_series(1, 9); SELECT ttl.set_default('t', 3600)",
            "SELECT ttl.enable('t', 3600); SELECT ttl.disable('t'); SELECT ttl.enable('t', 3600)",
            "SELECT ttl.enable('t', 3600); SELECT ttl.disable('t', drop_columns => true); SELECT ttl.enable('t', 3600)",
            "SELECT ttl.enable('t', 3600); SELECT ttl.pause('t'); SELECT ttl.resume('t')",
            "SELECT ttl.enable('t', 3600); SELECT ttl.set_option('t', 'hidden', 'false'); SELECT ttl.set_option('t', 'hidden', NULL)",
            "SELECT ttl.enable('t', 3600); ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME _ts TO s; ALTER TABLE u RENAME s TO _ts; ALTER TABLE u RENAME TO t",
            "SECURITY LABEL FOR ttl ON TABLE t IS NULL; SELECT ttl.enable('t', 3600)",
        ],
    ),
    (
        "CREATE TABLE t (id int); CREATE TABLE a (id int, _ts timestamptz, ttl int); CREATE TABLE b (LIKE a)",
        &[
            "SELECT ttl.enable('t', -1); SELECT ttl.archive_to('t', 'a')",
            "SELECT ttl.enable('t', -1); SELECT ttl.archive_to('t', 'b'); SELECT ttl.archive_to('t', 'a')",
            "SELECT ttl.enable('t', -1); SELECT ttl.archive_to('t', 'a'); CREATE TABLE c (LIKE a); DROP TABLE a; ALTER TABLE c RENAME TO a; SELECT ttl.archive_to('t', 'a')",
        ],
    ),
    (
        "CREATE TABLE t (id int, one date, two timestamptz); CREATE INDEX i ON t (one); CREATE INDEX j ON t (two)",
        &[
            "SELECT ttl.expire_index('i', 0, time_zone => 'UTC'); SELECT ttl.expire_index('j', 60)",
            "SELECT ttl.expire_index('j', 60); SELECT ttl.expire_index('i', 0, time_zone => 'UTC')",
            "SELECT ttl.expire_index('j', 86400); INSERT INTO t VALUES (1, 'infinity', 'infinity'); SELECT ttl.expire_index('i', 0, time_zone => 'UTC'); SELECT ttl.expire_index('j', 60)",
            "SELECT ttl.expire_index('i', 0, time_zone => 'UTC'); SELECT ttl.expire_index('j', 60); ALTER INDEX i RENAME TO z; ALTER INDEX z RENAME TO i",
        ],
    ),
    (
        "CREATE TABLE t (id int)",
        &[
            "SELECT ttl.enable('t', 3600, ttl_column => NULL); SELECT ttl.set_option('t', 'keep_expired', '60'); SELECT ttl.set_option('t', 'notify', 'gone'); SELECT ttl.set_option('t', 'ts_granularity', '9')",
            "SELECT ttl.enable('t', 3600, ttl_column => NULL, ts_granularity => 9); SELECT ttl.set_option('t', 'notify', 'gone'); SELECT ttl.set_option('t', 'keep_expired', '60')",
            "ALTER TABLE t SET (ttl.default_ttl = 3600, ttl.ttl_column = none, ttl.notify = gone, ttl.keep_expired = 60, ttl.ts_granularity = 9)",
        ],
    ),
    (
        "CREATE TABLE t (id int, body jsonb)",
        &[
            "SELECT ttl.enable('t', 3600, document_column => 'body')",
            "ALTER TABLE t SET (ttl.default_ttl = 60, ttl.document_column = body); ALTER TABLE t SET (ttl.default_ttl = 3600)",
        ],
    ),
    (
        "CREATE TABLE t (id int) PARTITION BY RANGE (id); CREATE TABLE p PARTITION OF t FOR VALUES FROM (0) TO (9)",
        &[
            "SELECT ttl.enable('t', 3600)",
            "SELECT ttl.enable('t', 60); SELECT ttl.set_default('t', 3600)",
        ],
    ),
    (
        "CREATE TABLE t (id int, _ts timestamptz NOT NULL DEFAULT now(), ttl int)",
        &[
            "SELECT ttl.enable('t', 3600, ts_column => '_ts', ttl_column => 'ttl')",
            "ALTER TABLE t SET (ttl.default_ttl = 3600, ttl.ts_column = _ts, ttl.ttl_column = ttl)",
        ],
    ),
    (
        "CREATE TABLE t (id int)",
        &[
            "SELECT ttl.enable('t', 3600, index => 'btree')",
            "SELECT ttl.enable('t', 3600, index => 'none'); ALTER TABLE t VALIDATE CONSTRAINT t_ttl_check; SELECT ttl.enable('t', 3600, index => 'btree')",
        ],
    ),
    (
        "CREATE TABLE t (id int)",
        &["SELECT ttl.enable('t', 3600); SELECT ttl.pause('t')"],
    ),
    // Indexes that are built in the background.
    (
        "CREATE TABLE t (id int)",
        &[
            "SELECT ttl.enable('t', 3600, index => 'btree', concurrently => true)",
            "SELECT ttl.enable('t', 60, index => 'btree', concurrently => true); SELECT ttl.set_default('t', 3600)",
        ],
    ),
    (
        "CREATE TABLE t (id int) PARTITION BY RANGE (id); CREATE TABLE p PARTITION OF t FOR VALUES FROM (0) TO (9); CREATE TABLE t_ttl_ext_idx (id int)",
        &[
            "SELECT ttl.enable('t', 3600, index => 'btree', concurrently => true)",
            "SELECT ttl.enable('t', 60, index => 'btree', concurrently => true); SELECT ttl.set_default('t', 3600)",
        ],
    ),
];

#[test]
fn equal_policies_have_equal_dumps() {
    let server = Server::start_sweeping(&[]);
    let (mut faults, mut compared) = (String::new(), 0);
    for (number, (table, ways)) in WAYS.iter().enumerate() {
        let mut plainest: Option<String> = None;
        for (way, calls) in ways.iter().enumerate() {
            let database = server.database(&format!("way_{number}_{way}"));
            let mut session = database.connect();
            // OIDs differ in each database.
            session.run(&format!(
                "CREATE TABLE taken (id int); DROP TABLE taken; {table}"
            ));
            for call in calls.split("; ") {
                session.run(call);
            }
            session.wait_until(
                "SELECT bool_or(ttl_internal.policy(relation) ? 'build_pending') FROM ttl.tables",
                "f",
                60,
            );
            let dump = schema_of(&database, &[]);
            assert!(dump.contains("SECURITY LABEL FOR ttl ON TABLE"), "{dump}");
            match &plainest {
                None => plainest = Some(dump.clone()),
                Some(plainest) if *plainest != dump => {
                    let _ = writeln!(
                        faults,
                        "-- {table}; {calls}\n{}",
                        differing(plainest, &dump)
                    );
                }
                Some(_) => {}
            }
            compared += 1;
            // And of what was restored, once it is resumed.
            if way == 0 {
                let restored = server.database(&format!("restored_{number}"));
                let mut session = restored.connect();
                session.run("DROP EXTENSION ttl_ext CASCADE");
                session.run(&format!("{dump}; RESET ALL; SELECT ttl.resume_restored()"));
                let again = schema_of(&restored, &[]);
                if again != dump {
                    let _ = writeln!(faults, "-- restored: {table}\n{}", differing(&dump, &again));
                }
                compared += 1;
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
    println!("{compared} dumps compared");
}

/// The lines that only one of the two has.
fn differing(one: &str, other: &str) -> String {
    let only = |sign: &str, these: &str, those: &str| -> String {
        let differs = |line: &&str| !those.lines().any(|other| other == *line);
        these
            .lines()
            .filter(differs)
            .map(|line| format!("{sign} {line}\n"))
            .collect()
    };
    only("-", one, other) + &only("+", other, one)
}
