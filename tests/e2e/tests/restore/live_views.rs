//! C31: views of live rows come with a dump, and go by the policy that is there.

use ttl_ext_e2e::Server;

#[test]
fn a_live_view_is_dumped_and_restored() {
    let server = Server::start(&[]);
    let source = server.database("source");
    let mut session = source.connect();
    session.run(
        "CREATE SCHEMA s; CREATE TABLE s.t (id integer PRIMARY KEY);
         SELECT ttl.enable('s.t', 3600, hidden => false);
         SELECT ttl.create_live_view('s.t', 'a_view', drop_with_policy => true);
         INSERT INTO s.t VALUES (1001)",
    );
    session.insert_expired("s.t", 1, 5);
    let file = server.dir().join("live_views.dump");
    server.must_run(source.tool("pg_dump").arg("-Fc").arg("-f").arg(&file));
    let target = server.plain_database("target");
    let mut restore = target.tool("pg_restore");
    server.must_run(restore.args(["--exit-on-error", "-d", "target"]).arg(&file));
    let mut session = target.connect();
    assert_eq!(session.value("SELECT count(*) FROM s.t"), "6");
    assert_eq!(session.column("SELECT id FROM s.a_view"), ["1001"]);
    session.run("INSERT INTO s.a_view VALUES (1002)");
    // The label's note is still about it.
    session.run("SELECT ttl.resume('s.t'); SELECT ttl.disable('s.t', drop_columns => true)");
    assert_eq!(session.value("SELECT to_regclass('s.a_view') IS NULL"), "t");
    // Those that were seen all the time live on.
    assert_eq!(session.value("SELECT count(*) FROM s.t"), "7");
}
