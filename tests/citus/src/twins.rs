//! The oracle of hiding: what a query says of a table with expired rows it must say of one where they are
//! deleted.

use ttl_ext_e2e::Session;

use crate::application::Application;

/// Three sets of tables with the same rows, told apart by a prefix in queries, `{}`.
#[derive(Debug)]
pub struct Twins;

/// With TTL, and its expired rows; without those; without TTL, and with them.
const SIDES: [&str; 3] = ["o", "l", "a"];

impl Twins {
    /// Tables `o_items` and `o_notes` (distributed by id and by item), `o_kinds` (a reference table) with TTL,
    /// and their twins: rows whose number is a multiple of three are expired.
    pub fn create(application: &Application<'_>) -> Twins {
        let mut session = application.coordinator();
        for side in SIDES {
            session.run(&format!(
                "CREATE TABLE {side}_items (id bigint PRIMARY KEY, kind int, n int, v text);
                 CREATE INDEX ON {side}_items (kind);
                 CREATE TABLE {side}_notes (id bigint, item bigint, m int, note text, PRIMARY KEY (item, id));
                 CREATE TABLE {side}_kinds (id int PRIMARY KEY, name text)"
            ));
            session.run(&format!(
                "SELECT create_distributed_table('{side}_items', 'id');
                 SELECT create_distributed_table('{side}_notes', 'item', colocate_with => '{side}_items');
                 SELECT create_reference_table('{side}_kinds')"
            ));
        }
        for table in ["items", "notes", "kinds"] {
            session.run(&format!("SELECT ttl.enable('o_{table}', 3600)"));
        }
        for side in SIDES {
            fill(&mut session, side);
        }
        Twins
    }

    /// The answer to a query of the table with TTL.
    ///
    /// # Panics
    /// If it is not that without expired rows, or would be the same with them.
    #[track_caller]
    pub fn check(&self, session: &mut Session, query: &str) -> Vec<Vec<String>> {
        let mut ask = |side: &str| session.rows(&query.replace("{}", side));
        // What Citus refuses fails without TTL.
        let (live, all) = (ask("l"), ask("a"));
        let ttl = ask("o");
        assert_ne!(live, all, "expired rows make no difference to {query}");
        assert_eq!(ttl, live, "{query}");
        ttl
    }
}

fn fill(session: &mut Session, side: &str) {
    let (columns, written, live) = match side {
        "o" => (
            ", _ts",
            ", now() - CASE WHEN n % 3 = 0 THEN interval '1 day' ELSE interval '10 minutes' END",
            "true",
        ),
        "l" => ("", "", "n % 3 <> 0"),
        _ => ("", "", "true"),
    };
    session.run_preserving(&format!(
        "INSERT INTO {side}_items (id, kind, n, v{columns})
            SELECT n, n % 7, n % 10, 'v' || n {written} FROM generate_series(1, 200) AS n WHERE {live};
         INSERT INTO {side}_notes (id, item, m, note{columns})
            SELECT n, n % 200 + 1, n % 9, 'n' || n {written} FROM generate_series(1, 400) AS n WHERE {live};
         INSERT INTO {side}_kinds (id, name{columns})
            SELECT n, 'k' || n {written} FROM generate_series(0, 6) AS n WHERE {live}"
    ));
}
