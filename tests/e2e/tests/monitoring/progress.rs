//! Complaint 6: `ttl.progress` shows what each worker is at, and why it waits.

use ttl_ext_e2e::{PATIENCE, Server};

#[test]
fn progress() {
    // A hundredth of its time, in small batches: it is at it until it may do more.
    let slow = [
        ("ttl.min_effort", "1"),
        ("ttl.max_effort", "1"),
        ("ttl.batch_size", "10"),
    ];
    let server = Server::start_sweeping(&slow);
    let database = server.database("d");
    let mut disk = database.disk();
    disk.run(
        "CREATE TABLE t (id integer PRIMARY KEY); SELECT ttl.enable('t', 3600, index => 'btree')",
    );
    disk.run(
        "CREATE ROLE guest LOGIN; CREATE ROLE monitor LOGIN; GRANT pg_read_all_stats TO monitor",
    );
    disk.insert_expired("t", 1, 5000);
    // Whoever asks is a client.
    let at_work = "SELECT count(*) FROM ttl.progress JOIN pg_stat_activity USING (pid, datid, datname)
         WHERE backend_type = 'ttl_ext worker' AND relation = 't'::regclass AND relid = relation
           AND phase = 'sweeping index' AND rows_deleted BETWEEN 1 AND 5000 AND batch_size BETWEEN 1 AND 10
           AND effort = 1 AND waits_for IN ('clients', 'ttl.max_effort')";
    disk.wait_until(at_work, "1", PATIENCE);
    // There may be a second one, which finds nothing to do.
    database.connect_as("guest").wait_until(
        "SELECT count(*) FROM ttl.progress WHERE datname = 'd' AND relation = 't'::regclass AND phase IS NOT NULL",
        "1",
        PATIENCE,
    );

    // From another database: only the process, unless one reads all statistics.
    let other = server.database("other");
    let seen =
        "SELECT DISTINCT datname, relid IS NOT NULL, relation, phase IS NOT NULL, rows_deleted IS NOT NULL,
                       effort IS NOT NULL FROM ttl.progress WHERE datname = 'd'";
    let mut guest = other.connect_as("guest");
    assert_eq!(guest.rows(seen), [["d", "f", "∅", "f", "f", "f"]]);
    let mut monitor = other.connect_as("monitor");
    monitor.wait_until(
        "SELECT count(*) FROM ttl.progress WHERE datname = 'd' AND relid IS NOT NULL AND relation IS NULL
            AND phase IS NOT NULL AND rows_deleted > 0 AND effort = 1",
        "1",
        PATIENCE,
    );

    server.reload(&[
        ("ttl.max_effort", "100"),
        ("ttl.min_effort", "100"),
        ("ttl.batch_size", "10000"),
    ]);
    disk.wait_for_none("t");
    disk.wait_until(
        "SELECT count(*) FROM ttl.progress WHERE relid IS NOT NULL OR phase <> 'idle' OR waits_for <> 'expired rows'",
        "0",
        PATIENCE,
    );
}
