//! Tables that refer to each other by deferred foreign keys and expire together.

use ttl_ext_e2e::{PATIENCE, Server};

/// Two workers would lock what the other needs, and run into `ttl.lock_timeout` again and again.
#[test]
fn one_worker_at_a_time() {
    let server = Server::start_sweeping(&[("ttl.max_workers", "3")]);
    let database = server.database("app");
    let mut session = database.connect();
    session.run(
        "CREATE TABLE a (id int PRIMARY KEY, o int, at timestamptz);
         CREATE TABLE c (id int PRIMARY KEY, o int REFERENCES a DEFERRABLE INITIALLY DEFERRED, at timestamptz);
         CREATE TABLE b (id int PRIMARY KEY, o int REFERENCES c DEFERRABLE INITIALLY DEFERRED, at timestamptz);
         ALTER TABLE a ADD FOREIGN KEY (o) REFERENCES b DEFERRABLE INITIALLY DEFERRED;
         CREATE INDEX ON a (o); CREATE INDEX ON b (o); CREATE INDEX ON c (o);
         SELECT ttl.expire_after(t, 'at', 0) FROM unnest('{a,b,c}'::regclass[]) AS t;",
    );
    session.run(
        "BEGIN;
         INSERT INTO a SELECT g, g, now() + '1 s' FROM generate_series(1, 3000) AS g;
         INSERT INTO b SELECT g, g, now() + '1 s' FROM generate_series(1, 3000) AS g;
         INSERT INTO c SELECT g, g, now() + '1 s' FROM generate_series(1, 3000) AS g;
         COMMIT",
    );
    let mut disk = database.disk();
    let left =
        "SELECT (SELECT count(*) FROM a) + (SELECT count(*) FROM b) + (SELECT count(*) FROM c)";
    disk.wait_until(left, "0", PATIENCE);
    let waited = "SELECT count(*) FROM ttl.stats WHERE last_error LIKE '%lock timeout%'";
    assert_eq!(session.value(waited), "0");
}
