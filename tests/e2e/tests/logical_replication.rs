//! C1 and logical replication: a subscriber's table with TTL keeps the `_ts`
//! and the overrides that arrive, in the initial copy and afterwards.

use std::time::{Duration, Instant};

use ttl_ext_e2e::{Server, Session};

const TABLE: &str = "CREATE TABLE t (id integer PRIMARY KEY, what text,
    _ts timestamptz NOT NULL DEFAULT now(), ttl integer)";

fn contents(session: &mut Session) -> Vec<String> {
    session.column("SELECT id, what, _ts, ttl FROM t ORDER BY id")
}

/// Wait until the subscriber has on disk what the publisher has.
fn catch_up(publisher: &mut Session, subscriber: &mut Session) -> Vec<String> {
    let expected = contents(publisher);
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let there = contents(subscriber);
        if there == expected {
            return there;
        }
        assert!(
            Instant::now() < deadline,
            "{there:#?} instead of {expected:#?}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_subscriber_keeps_the_times_that_arrive() {
    let publisher = Server::start(&[("wal_level", "logical")]);
    let subscriber = Server::start(&[]);
    let source = publisher.plain_database("app");
    let target = subscriber.database("app");
    let (mut writer, mut disk, mut reader) = (source.connect(), target.connect(), target.connect());
    writer.run(TABLE);
    writer.run(
        "INSERT INTO t VALUES (1, 'live', now() - interval '10 minutes', NULL),
            (2, 'expired', now() - interval '2 hours', NULL), (3, 'never', now() - interval '2 hours', -1);
         CREATE PUBLICATION p FOR TABLE t",
    );
    disk.run(TABLE);
    disk.run("SELECT ttl.enable('t', 3600); SET ttl.show_expired = on");
    disk.run(&format!(
        "CREATE SUBSCRIPTION s CONNECTION '{}' PUBLICATION p",
        publisher.conninfo("app")
    ));
    let seen = |reader: &mut Session| reader.column("SELECT id FROM t ORDER BY id").join(" ");

    // The initial copy.
    catch_up(&mut writer, &mut disk);
    assert_eq!(seen(&mut reader), "1 3");

    // The stream: INSERT, UPDATE of rows that are hidden there or not, DELETE.
    writer.run(
        "INSERT INTO t VALUES (4, 'expired', now() - interval '3 hours', NULL),
            (5, 'live', now() - interval '20 minutes', NULL), (6, 'expired', now() - interval '20 minutes', 60)",
    );
    catch_up(&mut writer, &mut disk);
    assert_eq!(seen(&mut reader), "1 3 5");
    writer.run("UPDATE t SET what = 'touched without its time'");
    catch_up(&mut writer, &mut disk);
    assert_eq!(seen(&mut reader), "1 3 5");
    writer.run("UPDATE t SET _ts = now() - interval '30 minutes' WHERE id IN (2, 4)");
    catch_up(&mut writer, &mut disk);
    assert_eq!(seen(&mut reader), "1 2 3 4 5");
    writer.run("UPDATE t SET _ts = now() - interval '90 minutes' WHERE id IN (1, 2)");
    catch_up(&mut writer, &mut disk);
    assert_eq!(seen(&mut reader), "3 4 5");
    writer.run("DELETE FROM t WHERE id IN (1, 5)");
    assert_eq!(catch_up(&mut writer, &mut disk).len(), 4);
    assert_eq!(seen(&mut reader), "3 4");

    // C1 holds for the subscriber's own writers.
    reader.run("UPDATE t SET what = 'by hand' WHERE id = 4");
    let fresh = "SELECT id FROM t WHERE _ts > now() - interval '5 minutes'";
    assert_eq!(reader.column(fresh), ["4"]);
    disk.run("DROP SUBSCRIPTION s");
}
