//! Queries of one table, and of tables that lie together.

use crate::check_all;

#[test]
fn of_one_shard() {
    check_all(
        "SELECT",
        &[
            "SELECT id, v FROM {}_items WHERE id = 3",
            "SELECT count(*) FROM {}_items WHERE id = 99",
            "SELECT n.note FROM {}_notes n WHERE item = 7 ORDER BY id",
            "SELECT * FROM (SELECT id, v FROM {}_items WHERE id = 12 FOR UPDATE) AS q",
            "SELECT name FROM {}_kinds WHERE id = 3",
        ],
    );
}

#[test]
fn of_all_shards() {
    check_all(
        "SELECT",
        &[
            "SELECT id, v FROM {}_items ORDER BY id",
            "SELECT id FROM {}_items ORDER BY id LIMIT 5 OFFSET 3",
            "SELECT id FROM {}_items WHERE id IN (1, 2, 3, 4, 5, 6) ORDER BY 1",
            "SELECT v FROM {}_items WHERE kind = 3 ORDER BY v",
            "SELECT DISTINCT kind, n FROM {}_items WHERE id % 3 < 2 ORDER BY 1, 2",
            "SELECT id FROM {}_items WHERE id < 5 UNION ALL SELECT id FROM {}_items WHERE id BETWEEN 3 AND 9 ORDER BY 1",
            "SELECT id FROM {}_items EXCEPT SELECT item FROM {}_notes WHERE id < 50 ORDER BY 1",
            "SELECT name FROM {}_kinds ORDER BY name",
        ],
    );
}

#[test]
fn aggregates() {
    check_all(
        "SELECT",
        &[
            "SELECT count(*), sum(n), avg(n)::numeric(9,4), min(id), max(v) FROM {}_items",
            "SELECT kind, count(*), sum(n) FROM {}_items GROUP BY kind ORDER BY kind",
            "SELECT id, count(*) FROM {}_items GROUP BY id HAVING count(*) > 0 ORDER BY id",
            "SELECT count(DISTINCT kind * 1000 + id) FROM {}_items",
            "SELECT string_agg(v, ',' ORDER BY id) FROM {}_items",
            "SELECT kind, percentile_disc(0.5) WITHIN GROUP (ORDER BY id) FROM {}_items GROUP BY kind ORDER BY kind",
            "SELECT id, row_number() OVER (ORDER BY id) FROM {}_items ORDER BY id",
            "SELECT id, count(*) OVER (PARTITION BY item) FROM {}_notes ORDER BY item, id",
        ],
    );
}

#[test]
fn ctes_and_subqueries() {
    check_all(
        "SELECT",
        &[
            "WITH c AS MATERIALIZED (SELECT id, kind FROM {}_items) SELECT count(*) FROM c",
            "WITH c AS (SELECT id FROM {}_items ORDER BY id LIMIT 10) SELECT count(*), sum(id) FROM c",
            "WITH a AS (SELECT id FROM {}_items), b AS (SELECT item FROM {}_notes)
             SELECT count(*) FROM a JOIN b ON a.id = b.item",
            "SELECT count(*) FROM {}_items WHERE id IN (SELECT item FROM {}_notes WHERE id < 100)",
            "SELECT id FROM {}_items i WHERE EXISTS (SELECT FROM {}_notes n WHERE n.item = i.id) ORDER BY id",
            "SELECT id FROM {}_items i WHERE NOT EXISTS (SELECT FROM {}_notes n WHERE n.item = i.id AND note < 'n2') ORDER BY id",
            "SELECT avg(c) FROM (SELECT kind, count(*) AS c FROM {}_items GROUP BY kind) AS q",
            "SELECT id, (SELECT count(*) FROM {}_notes n WHERE n.item = i.id) FROM {}_items i ORDER BY id",
        ],
    );
}

/// A view, a function and a prepared statement are planned where they are used.
#[test]
fn views_and_functions() {
    let (app, twins) = crate::shared();
    let mut session = app.coordinator();
    for side in ["o", "l", "a"] {
        session.run(&format!(
            "CREATE VIEW {side}_view AS SELECT id, v FROM {side}_items WHERE n < 8"
        ));
        session.run(&format!(
            "CREATE FUNCTION {side}_count() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM {side}_items'"
        ));
        session.run(&format!(
            "CREATE FUNCTION {side}_loop() RETURNS bigint LANGUAGE plpgsql AS
               $$ DECLARE r record; c bigint := 0;
                  BEGIN FOR r IN SELECT id FROM {side}_items LOOP c := c + r.id; END LOOP; RETURN c; END $$"
        ));
    }
    for mut session in crate::sessions() {
        twins.check(&mut session, "SELECT * FROM {}_view ORDER BY id");
        twins.check(&mut session, "SELECT {}_count(), {}_loop()");
    }
}
