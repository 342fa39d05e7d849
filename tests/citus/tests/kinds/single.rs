//! Tables with one shard, and those distributed by range or appended to.

use crate::{cluster, lives_and_expires, lives_and_leaves};

#[test]
fn without_a_distribution_column() {
    let app = cluster().application("single");
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
    session.run("SELECT create_distributed_table('o', NULL)");
    lives_and_expires(&app, &mut session, "o");
}

/// Their expired rows are kept for 15 minutes, so that a transaction that began before finds them everywhere.
#[test]
fn reference_tables() {
    let app = cluster().application("reference");
    let mut session = app.coordinator();
    session.run("CREATE TABLE o (id int PRIMARY KEY, v text)");
    session.run("SELECT create_reference_table('o')");
    lives_and_leaves(&app, &mut session, "o", 8);
    app.assert_copies_equal("o");
}

/// Names that need quotes, and are as long as they may be: a shard's name is then shortened.
#[test]
fn names() {
    let app = cluster().application("names");
    let mut session = app.coordinator();
    let long = format!("\"{}\"", "Long name ".repeat(6));
    session.run("CREATE SCHEMA \"My Shop\"");
    for table in [
        "\"My Shop\".\"Order's\"",
        &long,
        "o_102008",
        "\"My Shop\".o_1",
    ] {
        session.run(&format!(
            "CREATE TABLE {table} (id int PRIMARY KEY, v text)"
        ));
        session.run(&format!(
            "SELECT create_distributed_table('{}', 'id')",
            table.replace('\'', "''")
        ));
        lives_and_expires(&app, &mut session, table);
    }
}
