//! MERGE: an expired target row does not match.

use ttl_ext_citus::{Application, Session, ids};

use crate::{seen, with_table, young};

fn with_source(name: &str, distribute: &str) -> (Application<'static>, Session) {
    let (app, mut session) = with_table(name);
    session.run("CREATE TABLE s (id int, k int, v text); INSERT INTO s SELECT n, n * 3, 'new' FROM generate_series(6, 15) AS n");
    session.run(distribute);
    (app, session)
}

const MERGE: &str = "MERGE INTO o USING s ON o.id = s.id
    WHEN MATCHED THEN UPDATE SET v = 'matched' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)";

#[track_caller]
fn check(app: &Application<'_>, session: &mut Session) {
    let rows = session
        .rows("SELECT v, string_agg(id::text, ' ' ORDER BY id) FROM o GROUP BY v ORDER BY v");
    assert_eq!(
        rows,
        [
            ["matched", &ids(11..=15)],
            ["new", &ids(6..=10)],
            ["old", &ids(16..=20)]
        ]
    );
    assert_eq!(young(session), ids(6..=15));
    assert_eq!(app.on_disk("o"), ids(1..=20));
}

#[test]
fn of_tables_that_lie_together() {
    let (app, mut session) = with_source(
        "merge_together",
        "SELECT create_distributed_table('s', 'id', colocate_with => 'o')",
    );
    session.run(MERGE);
    check(&app, &mut session);
}

/// The source's rows are sent to the shards of the target.
#[test]
fn by_repartition() {
    let (app, mut session) = with_source(
        "merge_repartition",
        "SELECT create_distributed_table('s', 'k', colocate_with => 'none')",
    );
    app.node(1).run(MERGE);
    check(&app, &mut session);
}

#[test]
fn through_the_coordinator() {
    let (app, mut session) = with_source("merge_local", "SELECT create_reference_table('s')");
    session.run(&MERGE.replace(
        "USING s",
        "USING (SELECT * FROM s ORDER BY id LIMIT 100) AS s",
    ));
    check(&app, &mut session);
}

#[test]
fn one_shard() {
    let (app, mut session) = with_source(
        "merge_one",
        "SELECT create_distributed_table('s', 'id', colocate_with => 'o')",
    );
    for id in 6..=15 {
        session.run(&format!(
            "{} ",
            MERGE
                .replace(
                    "ON o.id = s.id",
                    &format!("ON o.id = s.id AND o.id = {id} AND s.id = {id}")
                )
                .replace(
                    "USING s",
                    &format!("USING (SELECT * FROM s WHERE id = {id}) AS s")
                )
        ));
    }
    check(&app, &mut session);
}

#[test]
fn deleting() {
    let (app, mut session) = with_source(
        "merge_delete",
        "SELECT create_distributed_table('s', 'id', colocate_with => 'o')",
    );
    session.run("MERGE INTO o USING s ON o.id = s.id WHEN MATCHED THEN DELETE");
    assert_eq!(seen(&mut session), ids(16..=20));
    assert_eq!(
        app.on_disk("o"),
        format!("{} {}", ids(1..=10), ids(16..=20))
    );
}
