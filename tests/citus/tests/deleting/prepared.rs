//! Rule 7: writes that Citus commits in two phases are noticed as soon as others. A naptime of an hour would
//! show one that is not.

use std::sync::OnceLock;

use ttl_ext_citus::{Cluster, ids};

use crate::with_table;

fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start_sweeping(&[("ttl.naptime", "1h")]))
}

#[test]
fn writes_in_two_phases() {
    let (app, mut session) = with_table(cluster(), "two_phases");
    // Workers have looked, and sleep.
    session.insert_expired("o", 1, 40);
    app.wait_for_disk("o", "");
    session.run("INSERT INTO o SELECT n, 'x' FROM generate_series(1, 80) AS n");
    let prepared = "SELECT count(*) FROM pg_dist_transaction";
    session.value(prepared);
    session.run(
        "BEGIN; SET LOCAL citus.force_max_query_parallelization = on; UPDATE o SET ttl = 1 WHERE id <= 40; COMMIT",
    );
    app.wait_for_disk("o", &ids(41..=80));
    session.run(
        "BEGIN; UPDATE o SET ttl = 1 WHERE id = 41; UPDATE o SET ttl = 2 WHERE id = 42; COMMIT",
    );
    app.wait_for_disk("o", &ids(43..=80));
}

#[test]
fn a_policy_in_two_phases() {
    let (app, mut session) = with_table(cluster(), "policy_phases");
    session.run("INSERT INTO o SELECT n, 'x' FROM generate_series(1, 80) AS n");
    session.run("BEGIN; SELECT ttl.set_default('o', 1); COMMIT");
    app.wait_for_disk("o", "");
}
