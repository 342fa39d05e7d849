//! Cursors, prepared statements, COPY TO, pieces of a result.

use crate::{sessions, shared};

#[test]
fn prepared() {
    let (_, twins) = shared();
    for mut session in sessions() {
        for mode in ["auto", "force_custom_plan", "force_generic_plan"] {
            session.run(&format!("SET plan_cache_mode = '{mode}'"));
            for side in ["o", "l", "a"] {
                session.run(&format!(
                    "PREPARE {side}_one (bigint) AS SELECT count(*), max(v) FROM {side}_items WHERE id = $1;
                     PREPARE {side}_some (int) AS SELECT id, v FROM {side}_items WHERE kind = $1 ORDER BY id;
                     PREPARE {side}_all AS SELECT count(*), sum(id) FROM {side}_items"
                ));
            }
            for _ in 0..8 {
                twins.check(&mut session, "EXECUTE {}_one (30)");
                // Citus has no generic plans of several shards with parameters.
                if mode != "force_generic_plan" {
                    twins.check(&mut session, "EXECUTE {}_some (3)");
                }
                twins.check(&mut session, "EXECUTE {}_all");
            }
            session.run("DEALLOCATE ALL");
        }
    }
}

#[test]
fn extended_protocol() {
    for mut session in sessions() {
        let one = session
            .client
            .prepare("SELECT count(*) FROM o_items WHERE id = $1")
            .expect("prepare");
        for round in 0..8_i64 {
            for (id, expected) in [(30_i64, 0_i64), (31, 1)] {
                let row = session.client.query_one(&one, &[&id]).expect("query");
                assert_eq!(row.get::<_, i64>(0), expected, "{id}, round {round}");
            }
        }
        // In pieces, by a portal.
        let mut transaction = session.client.transaction().expect("begin");
        let portal = transaction
            .bind("SELECT id FROM o_items ORDER BY id", &[])
            .expect("bind");
        let mut ids: Vec<i64> = Vec::new();
        loop {
            let rows = transaction.query_portal(&portal, 7).expect("fetch");
            if rows.is_empty() {
                break;
            }
            ids.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
        }
        let expected: Vec<i64> = (1..=200).filter(|n| n % 3 != 0).collect();
        assert_eq!(ids, expected);
    }
}

#[test]
fn cursors() {
    for mut session in sessions() {
        for hold in ["", "WITH HOLD"] {
            session.run(&format!(
                "BEGIN; DECLARE c CURSOR {hold} FOR SELECT id FROM o_items ORDER BY id"
            ));
            assert_eq!(session.column("FETCH 3 FROM c").join(" "), "1 2 4");
            if !hold.is_empty() {
                session.run("COMMIT");
            }
            assert_eq!(session.column("FETCH 2 FROM c").join(" "), "5 7");
            session.run(if hold.is_empty() { "COMMIT" } else { "CLOSE c" });
        }
    }
}

#[test]
fn copy_to() {
    for mut session in sessions() {
        for sql in [
            "COPY o_items (id) TO STDOUT",
            "COPY (SELECT id FROM o_items) TO STDOUT",
        ] {
            let mut ids: Vec<i64> = session
                .copy_out(sql)
                .iter()
                .map(|line| line.parse().expect("a number"))
                .collect();
            ids.sort_unstable();
            let expected: Vec<i64> = (1..=200).filter(|n| n % 3 != 0).collect();
            assert_eq!(ids, expected, "{sql}");
        }
        let mut kinds = session.copy_out("COPY o_kinds (id) TO STDOUT");
        kinds.sort();
        assert_eq!(kinds.join(" "), "1 2 4 5", "a reference table");
    }
}

/// The filter is in the plans of shards.
#[test]
fn explain() {
    for mut session in sessions() {
        for query in [
            "SELECT * FROM o_items WHERE id = 1",
            "SELECT count(*) FROM o_items",
            "SELECT count(*) FROM o_kinds",
        ] {
            let plan = session
                .column(&format!("EXPLAIN (COSTS OFF) {query}"))
                .join("\n");
            assert!(plan.contains("ttl.live("), "{plan}");
        }
        let plan = session
            .column("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT id FROM o_items")
            .join("\n");
        assert!(plan.contains("ttl.live("), "{plan}");
    }
}
