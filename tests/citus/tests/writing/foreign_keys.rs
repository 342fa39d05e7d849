//! Foreign keys between tables that lie together, and to reference tables.

use ttl_ext_citus::{Application, Session, SqlState, ids};

use crate::{seen, with_table};

/// `o`, and rows of `child` that refer to each of it.
fn with_child(name: &str, options: &str) -> (Application<'static>, Session) {
    let (app, mut session) = with_table(name);
    session.run("SET ttl.preserve_ts = on");
    session.run("CREATE TABLE child (id int, o int, PRIMARY KEY (o, id))");
    session.run("SELECT create_distributed_table('child', 'o', colocate_with => 'o')");
    session.run("UPDATE o SET _ts = now() - interval '10 minutes'");
    session.run(&format!(
        "ALTER TABLE child ADD FOREIGN KEY (o) REFERENCES o {options}"
    ));
    session.run("RESET ttl.preserve_ts");
    (app, session)
}

#[test]
fn an_expired_row_is_not_there() {
    let (_, mut session) = with_child("fk_lookup", "");
    for id in [1, 2, 3, 4] {
        let error = session.error(&format!("INSERT INTO child VALUES (1, {id})"));
        assert_eq!(*error.code(), SqlState::FOREIGN_KEY_VIOLATION);
    }
    session.run("INSERT INTO child VALUES (1, 11), (2, 12), (3, 13)");
}

#[test]
fn rows_that_refer_go_along() {
    let (app, mut session) = with_child("fk_cascade", "ON DELETE CASCADE");
    session.run("INSERT INTO child SELECT n, n FROM generate_series(11, 20) AS n");
    session.run_preserving("UPDATE o SET _ts = now() - interval '2 hours' WHERE id <= 15");
    assert_eq!(seen(&mut session), ids(16..=20));
    // A new row with the key of an expired one.
    session.run("INSERT INTO o VALUES (11, 'new')");
    assert_eq!(
        session.column("SELECT id FROM child ORDER BY id").join(" "),
        ids(12..=20)
    );
    session.run("SELECT ttl.purge('o')");
    assert_eq!(app.on_disk("child"), ids(16..=20));
    assert_eq!(app.on_disk("o"), format!("11 {}", ids(16..=20)));
}

#[test]
fn to_a_reference_table() {
    let (app, mut session) = with_table("fk_reference");
    session.run("CREATE TABLE r (id int PRIMARY KEY, v text)");
    session.run("SELECT create_reference_table('r')");
    session.run("SELECT ttl.enable('r', 3600)");
    session.run_preserving(
        "INSERT INTO r (id, _ts) SELECT n, now() - CASE WHEN n <= 5 THEN interval '2 hours' ELSE interval '0' END
           FROM generate_series(1, 10) AS n",
    );
    session.run("ALTER TABLE o ADD COLUMN r int");
    session.run("ALTER TABLE o ADD FOREIGN KEY (r) REFERENCES r ON DELETE CASCADE");
    let error = session.error("INSERT INTO o (id, r) VALUES (101, 3)");
    assert_eq!(*error.code(), SqlState::FOREIGN_KEY_VIOLATION);
    session.run("INSERT INTO o (id, r) SELECT n + 100, n FROM generate_series(6, 10) AS n");
    session.run_preserving("UPDATE r SET _ts = now() - interval '2 hours' WHERE id <= 7");
    session.run("SELECT ttl.purge('r')");
    app.assert_copies_equal("r");
    assert_eq!(
        session
            .column("SELECT id FROM o WHERE id > 100 ORDER BY id")
            .join(" "),
        ids(108..=110)
    );
}
