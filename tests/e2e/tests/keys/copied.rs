//! C6: COPY FROM STDIN with keys of expired rows; a failed COPY changes nothing. Not a golden file,
//! because psql's handling of the data then depends on its minor version.

use ttl_ext_e2e::{Server, Session, SqlState};

/// What is on disk.
fn there(disk: &mut Session) -> String {
    disk.column("SELECT id || ' ' || v FROM t ORDER BY id, v")
        .join(", ")
}

/// Both ways: expired rows are deleted before the COPY, or by the trigger, if `_ts` is given.
#[test]
fn a_copy_that_fails_frees_no_key() {
    let server = Server::start(&[]);
    for (name, columns, more) in [
        ("cleared", "id, v", ""),
        ("by_trigger", "id, v, _ts", "\t2100-01-01"),
    ] {
        let database = server.database(name);
        let (mut session, mut disk) = (database.connect(), database.disk());
        disk.run(
            "CREATE TABLE t (id integer PRIMARY KEY, v text); SELECT ttl.enable('t', 3600);
             INSERT INTO t VALUES (11, 'live')",
        );
        disk.run_preserving(
            "INSERT INTO t (id, v, _ts) SELECT n, 'old', now() - interval '1 day' FROM generate_series(1, 3) AS n",
        );
        let before = "1 old, 2 old, 3 old, 11 live";
        assert_eq!(there(&mut disk), before, "{name}");
        let mut copy = |ids: &[i32]| {
            let lines = ids.iter().map(|id| format!("{id}\tnew{more}\n"));
            let text: String = lines.collect();
            session.copy_in(&format!("COPY t ({columns}) FROM STDIN"), &text)
        };
        for (ids, taken) in [([3, 11], 11), ([3, 3], 3)] {
            let error = copy(&ids).expect_err("a key is taken");
            let error = error.as_db_error().expect("an error of the server");
            assert_eq!(*error.code(), SqlState::UNIQUE_VIOLATION, "{error:?}");
            let detail = format!("Key (id)=({taken}) already exists.");
            assert_eq!(error.detail(), Some(detail.as_str()), "{name}");
            assert_eq!(there(&mut disk), before, "{name}");
        }
        assert_eq!(copy(&[3, 12]).ok(), Some(2), "{name}");
        let live = "SELECT string_agg(id || ' ' || v, ', ' ORDER BY id) FROM t";
        assert_eq!(
            database.connect().value(live),
            "3 new, 11 live, 12 new",
            "{name}"
        );
    }
}
