//! M1, M8, M10: TTL indexes after a dump, after an upgrade, and on a standby.

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, SqlState, Upgrade, catch_up};

/// A table of rules only, a partitioned one, and one with a clock beside its rule.
const TABLES: &str = "
CREATE SCHEMA s;
CREATE TABLE s.t (id integer PRIMARY KEY, kind text, at timestamptz, moments timestamp[]);
SELECT ttl.create_index('s.t', '{\"at\": 1}', '{\"name\": \"The \\\"Index\\\"\", \"expireAfterSeconds\": 3600, \"partialFilterExpression\": \"kind LIKE ''deb%'' OR id = 7\"}');
SELECT ttl.create_index('s.t', '{\"moments\": 1}', '{\"name\": \"by_moments\", \"expireAfterSeconds\": 0}');
CREATE TABLE p (id integer, day date, gone integer) PARTITION BY LIST (id);
CREATE TABLE p1 (day date, id integer, gone integer);
ALTER TABLE p ATTACH PARTITION p1 DEFAULT;
ALTER TABLE p DROP COLUMN gone;
SELECT ttl.create_index('p', '{\"day\": 1}', '{\"expireAfterSeconds\": 86400}');
CREATE TABLE c (id integer PRIMARY KEY, at timestamptz);
SELECT ttl.enable('c', 864000);
SELECT ttl.create_index('c', '{\"at\": 1}', '{\"expireAfterSeconds\": 60}')";

/// Rows 1 to 90 are expired, 1001 and 1002 live.
const ROWS: &str = "
INSERT INTO s.t SELECT n, 'debug', now() - interval '1 day' FROM generate_series(1, 60) AS n;
INSERT INTO s.t SELECT n, 'error', now() - interval '1 day', '{infinity,1999-01-01}' FROM generate_series(61, 90) AS n;
INSERT INTO s.t VALUES (1001, 'error', now() - interval '1 day', '{-infinity}'), (1002, 'debug', now() + interval '1 day', '{}');
INSERT INTO p SELECT n, current_date - 5 FROM generate_series(1, 90) AS n;
INSERT INTO p VALUES (1001, NULL), (1002, current_date + 1);
INSERT INTO c SELECT n, now() - interval '1 day' FROM generate_series(1, 90) AS n;
INSERT INTO c VALUES (1001, NULL), (1002, now() + interval '1 day')";

const NAMES: [&str; 3] = ["s.t", "p", "c"];
const LIVING: &str = "1001 1002";

/// The rules, as a list.
fn rules(session: &mut Session) -> Vec<String> {
    session.column("SELECT relation::text || ' ' || rules::text || ' ' || coalesce(ts_column, '-') FROM ttl.tables ORDER BY 1")
}

#[track_caller]
fn assert_rules(session: &mut Session) {
    let rules = rules(session);
    assert_eq!(rules.len(), 3, "{rules:?}");
    assert!(
        rules[0].starts_with("c [{") && rules[0].ends_with(" _ts"),
        "{rules:?}"
    );
    assert!(
        rules[1].starts_with("p [{") && rules[1].contains("86400"),
        "{rules:?}"
    );
    assert!(
        rules[2].contains("The \\\"Index\\\"")
            && rules[2].contains("deb%")
            && rules[2].contains("moments"),
        "{rules:?}"
    );
}

fn problems(session: &mut Session) -> Vec<String> {
    session.column(
        "SELECT array_remove(problems, 'deletion is off: ttl.enabled')::text FROM ttl.tables",
    )
}

/// Rules are dumped and in force at once after a restore, but nothing is deleted before
/// `ttl.resume`.
#[test]
fn dump_and_restore() {
    let server = Server::start(&[("ttl.naptime", "1s"), ("ttl.min_effort", "100")]);
    let source = server.database("source");
    let mut session = source.disk();
    session.run(TABLES);
    session.run(ROWS);
    let expected = rules(&mut session);
    let dumps = [("custom", &["-Fc"][..]), ("directory", &["-Fd", "-j2"][..])];
    for (name, options) in dumps {
        let file = server.dir().join(name);
        server.must_run(source.tool("pg_dump").args(options).arg("-f").arg(&file));
        let target = server.plain_database(name);
        let jobs: &[&str] = if name == "directory" {
            &["-j2"]
        } else {
            &["--exit-on-error"]
        };
        server.must_run(
            target
                .tool("pg_restore")
                .args(jobs)
                .args(["-d", name])
                .arg(&file),
        );
    }
    server.reload(&[("ttl.enabled", "on")]);
    for name in NAMES {
        session.wait_for_ids(name, LIVING);
    }
    for (name, _) in dumps {
        let target = server.existing_database(name);
        let (mut disk, mut user) = (target.disk(), target.connect());
        assert_eq!(rules(&mut disk), expected);
        assert_rules(&mut disk);
        disk.run(
            "CREATE TABLE sentinel (id integer PRIMARY KEY); SELECT ttl.enable('sentinel', 3600)",
        );
        disk.look_again("sentinel");
        for table in NAMES {
            assert_eq!(disk.count(table), 92, "{table}");
            assert_eq!(
                user.column(&format!("SELECT id FROM {table} ORDER BY id"))
                    .join(" "),
                LIVING,
                "{table}"
            );
            let problem = disk.value(&format!(
                "SELECT problems::text FROM ttl.tables WHERE relation = '{table}'::regclass"
            ));
            assert!(problem.contains("ttl.resume"), "{problem}");
        }
        // C6: the key of an expired row is free nevertheless.
        user.run("INSERT INTO s.t (id) VALUES (1); DELETE FROM s.t WHERE id = 1");
        disk.run("SELECT ttl.resume(t) FROM unnest('{s.t,p,c}'::regclass[]) AS t");
        for table in NAMES {
            disk.wait_for_ids(table, LIVING);
        }
        assert!(problems(&mut disk).iter().all(|p| p == "{}"));
        assert_eq!(rules(&mut disk).len(), 4);
    }
}

/// pg_upgrade keeps rules in force, and is no restore.
#[test]
fn pg_upgrade_keeps_rules() {
    let filled = Upgrade::of_app(|source| {
        source.connect().run(TABLES);
        source.connect().run(ROWS);
    });
    let Some(new) = filled else { return };
    let mut disk = new.existing_database("app").disk();
    assert_rules(&mut disk);
    for table in NAMES {
        disk.wait_for_ids(table, LIVING);
    }
    assert!(problems(&mut disk).iter().all(|p| p == "{}"));
}

#[track_caller]
fn assert_seen(replica: &Database<'_>, expected: &str, when: &str) {
    let mut reader = replica.connect();
    for table in NAMES {
        for query in [
            format!("SELECT id FROM {table} ORDER BY id"),
            format!(
                "SELECT id FROM (SELECT id FROM {table} UNION ALL SELECT 1 WHERE false) AS u ORDER BY id"
            ),
        ] {
            assert_eq!(reader.column(&query).join(" "), expected, "{when}: {query}");
        }
    }
    assert_eq!(
        reader.column("SELECT id FROM p1 ORDER BY id").join(" "),
        expected
    );
    assert_eq!(
        reader.copy_out("COPY s.t TO STDOUT").len(),
        expected.split(' ').count()
    );
}

/// C6, M10: a standby hides by TTL indexes, deletes nothing, and shows the rules
/// without writing.
#[test]
fn standby() {
    let primary = Server::start(&[("wal_level", "replica"), ("hot_standby_feedback", "on")]);
    let database = primary.database("app");
    let mut writer = database.connect();
    writer.run(TABLES);
    writer.run(ROWS);
    // The primary takes no transaction ID to show them either.
    assert_eq!(
        writer.value(
            "WITH r AS MATERIALIZED (SELECT * FROM ttl.tables)
             SELECT (SELECT count(*) FROM r) || coalesce(pg_current_xact_id_if_assigned()::text, ' none')"
        ),
        "3 none"
    );
    let standby = primary.start_standby(&[("ttl.enabled", "on"), ("ttl.naptime", "1s")]);
    let replica = standby.existing_database("app");
    let mut reader = replica.connect();
    catch_up(&mut writer, &mut reader);
    assert_seen(&replica, LIVING, "at first");
    assert_rules(&mut reader);
    assert_eq!(rules(&mut reader), rules(&mut writer));
    assert_eq!(
        reader.value("SELECT jsonb_array_length(ttl_internal.rules('s.t'))"),
        "2"
    );
    assert!(problems(&mut reader).iter().all(|p| p == "{}"));
    for statement in [
        "SELECT ttl.purge('s.t')",
        "SELECT ttl.expire_index('c_at_idx', 5)",
        "SELECT ttl.create_index('p', '{\"day\": 1}', '{\"expireAfterSeconds\": 5}')",
        "SELECT ttl.coll_mod('c', '{\"index\": {\"keyPattern\": {\"at\": 1}, \"expireAfterSeconds\": 100}}')",
        "INSERT INTO s.t VALUES (1)",
    ] {
        let error = reader.error(statement);
        assert_eq!(
            *error.code(),
            SqlState::READ_ONLY_SQL_TRANSACTION,
            "{statement}: {error:?}"
        );
    }
    // C8 and M6: changes on the primary act at once, also on cached plans.
    reader.run(
        "SET plan_cache_mode = force_generic_plan;
         PREPARE seen AS SELECT (SELECT count(*) FROM s.t) + (SELECT count(*) FROM p1) + (SELECT count(*) FROM c)",
    );
    assert_eq!(reader.value("EXECUTE seen"), "6");
    let mut all: Vec<String> = (1..=90).map(|n| n.to_string()).collect();
    all.push(LIVING.to_owned());
    for (change, expected) in [
        (
            "SELECT ttl.expire_index(i, NULL, revive_expired => true)
               FROM unnest('{p_day_idx,c_at_idx,\"s.\\\"The \\\"\\\"Index\\\"\\\"\\\"\",s.by_moments}'::regclass[]) AS i",
            all.join(" "),
        ),
        (
            "SELECT ttl.expire_index(i, 3600)
               FROM unnest('{p_day_idx,c_at_idx,\"s.\\\"The \\\"\\\"Index\\\"\\\"\\\"\",s.by_moments}'::regclass[]) AS i",
            LIVING.to_owned(),
        ),
    ] {
        writer.run(change);
        catch_up(&mut writer, &mut reader);
        assert_seen(&replica, &expected, change);
        let count = 3 * expected.split(' ').count();
        assert_eq!(reader.value("EXECUTE seen"), count.to_string(), "{change}");
    }
    assert_eq!(replica.disk().count("s.t"), 92);
    // M10: after promotion it deletes.
    standby.promote();
    let mut disk = replica.disk();
    for table in NAMES {
        disk.wait_for_ids(table, LIVING);
    }
    disk.wait_until(
        "SELECT bool_and(rows_deleted = 90) FROM ttl.stats",
        "t",
        PATIENCE,
    );
}
