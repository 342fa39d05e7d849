//! A2, L3: what PUBLIC may call is what `docs/security.md` lists, and tells and locks nothing that
//! the caller may not read.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::arguments::arguments;
use ttl_ext_e2e::{Database, Server, Session, hostile};

const DOCUMENT: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/security.md"
));

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| hostile::start(&[("ttl.enabled", "off")]))
}

/// The rows of the table in "What PUBLIC may execute": names of functions without the schema, with
/// how many have the name, and the reason.
fn listed() -> Vec<(Vec<(&'static str, u32)>, &'static str)> {
    let document: &str = DOCUMENT.replace("`ttl_internal.", "`ttl.").leak();
    let (_, section) = document
        .split_once("\n## What PUBLIC may execute\n")
        .expect("the section");
    let (section, _) = section.split_once("\n## ").expect("a section after it");
    let rows = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `ttl."));
    rows.map(|row| {
        let (functions, reason) = row.split_once(" | ").expect("a reason");
        let function = |text: &'static str| {
            let (name, rest) = text.split_once('`').expect("a name in backquotes");
            let count = rest.trim().trim_matches(['(', ')']);
            (name, count.parse().unwrap_or(1))
        };
        let functions = functions.split(", `ttl.").map(function).collect();
        (functions, reason.trim_end_matches('|').trim())
    })
    .collect()
}

/// The names of functions in the row whose reason begins so.
fn of_reason(beginning: &str) -> Vec<&'static str> {
    let row = listed()
        .into_iter()
        .find(|(_, reason)| reason.starts_with(beginning));
    let (functions, _) = row.unwrap_or_else(|| panic!("no row '{beginning}'"));
    functions.into_iter().map(|(name, _)| name).collect()
}

/// All functions of the extension, and whether PUBLIC may execute each.
const FUNCTIONS: &str = "
    SELECT p.oid, p.pronamespace::regnamespace AS schema, p.proname, p.proargtypes, p.proleakproof, p.prosecdef,
           EXISTS (SELECT FROM aclexplode(COALESCE(p.proacl, acldefault('f', p.proowner))) AS a
                    WHERE a.grantee = 0) AS is_public,
           EXISTS (SELECT FROM aclexplode(COALESCE(p.proacl, acldefault('f', p.proowner))) AS a
                    WHERE a.grantee NOT IN (0, p.proowner)) AS is_granted
      FROM pg_proc AS p
      JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
      JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
     WHERE e.extname = 'ttl_ext'";

#[test]
fn public_may_execute_what_the_document_lists() {
    let mut session = server().database("listed").connect();
    let mut documented = BTreeMap::new();
    for (functions, reason) in listed() {
        assert!(reason.len() > 20, "no reason: {functions:?}");
        for (name, count) in functions {
            let before = documented.insert(name.to_owned(), count.to_string());
            assert_eq!(before, None, "{name} is listed twice");
        }
    }
    let granted = session.rows(&format!(
        "SELECT proname, count(*) FROM ({FUNCTIONS}) AS f WHERE is_public GROUP BY proname"
    ));
    let granted: BTreeMap<String, String> = granted
        .into_iter()
        .map(|mut row| (row.remove(0), row.remove(0)))
        .collect();
    assert_eq!(
        granted, documented,
        "left: the catalog, right: the document"
    );
    assert!(granted.len() > 40, "{}", granted.len());
    let others = session.column(&format!(
        "SELECT oid::regprocedure FROM ({FUNCTIONS}) AS f WHERE is_granted OR proleakproof OR prosecdef"
    ));
    assert_eq!(others, [""; 0], "granted, LEAKPROOF or SECURITY DEFINER");
    // Besides functions: the schema, its views, a type.
    let more = session.column(
        "SELECT format('%s of schema %s', a.privilege_type, nspname) FROM pg_namespace, aclexplode(nspacl) AS a
          WHERE nspname IN ('ttl', 'ttl_internal') AND a.grantee = 0
         UNION ALL
         SELECT format('%s of %s', a.privilege_type, oid::regclass) FROM pg_class, aclexplode(relacl) AS a
          WHERE relnamespace IN ('ttl'::regnamespace, 'ttl_internal'::regnamespace) AND a.grantee = 0 ORDER BY 1",
    );
    let expected = [
        "SELECT of ttl.placements",
        "SELECT of ttl.progress",
        "SELECT of ttl.stats",
        "SELECT of ttl.tables",
        "USAGE of schema ttl",
        "USAGE of schema ttl_internal",
    ];
    assert_eq!(more, expected);
}

/// The victim's secret, behind row-level security and a view with a barrier.
fn secret(database: &Database<'_>) -> Session {
    let mut victim = database.connect_as("victim");
    victim.run(
        "CREATE TABLE sal (who text PRIMARY KEY, salary int, note text, t oid, p tid);
         INSERT INTO sal (who, salary, p) VALUES ('ceo', 60000, '(0,1)'), ('attacker', 100, '(0,1)');
         ALTER TABLE sal ENABLE ROW LEVEL SECURITY;
         CREATE POLICY own ON sal USING (who = current_user);
         CREATE VIEW barrier WITH (security_barrier) AS SELECT *, 1 AS one FROM sal WHERE who = current_user;
         CREATE TABLE parted (id int) PARTITION BY RANGE (id);
         CREATE TABLE gone (id int); CREATE TABLE dropped AS SELECT 'gone'::regclass::oid AS dropped; DROP TABLE gone;
         CREATE TABLE locked (id int); SELECT ttl.enable('locked', 3600); INSERT INTO locked VALUES (1);
         GRANT SELECT ON sal, barrier, dropped TO attacker; GRANT SELECT, UPDATE ON locked TO attacker",
    );
    victim
}

/// Every function that stands in the filter of scans, or is LEAKPROOF, with every argument, from the
/// SELECT list and as a condition below a policy and a barrier.
#[test]
fn functions_of_the_filter_raise_no_error() {
    let database = hostile::armed_database(server());
    let mut victim = secret(&database);
    let names = of_reason("in the filter").join("', '");
    let functions = database.connect().rows(&format!(
        "SELECT schema || '.' || proname, COALESCE((SELECT string_agg(format_type(t, NULL), ';' ORDER BY n)
                                     FROM unnest(proargtypes) WITH ORDINALITY AS a (t, n)), '')
           FROM ({FUNCTIONS}) AS f WHERE proname IN ('{names}') OR proleakproof"
    ));
    assert!(functions.len() >= 12, "{functions:?}");
    // Whoever waits for the table's lock fails.
    victim.run("BEGIN; LOCK TABLE parted IN ACCESS EXCLUSIVE MODE");
    let mut calls = 0;
    for user in ["attacker", "victim", "postgres"] {
        let mut session = database.connect_as(user);
        // In a transaction that has locked rows of a table with TTL, `ttl_internal.locked_here` reads the disk.
        session.run("SET lock_timeout = '1s'; BEGIN; SELECT FROM locked FOR UPDATE");
        for function in &functions {
            let types = function[1].split(';').filter(|of| !of.is_empty());
            let types: Vec<_> = types.collect();
            let names: Vec<_> = (1..=types.len()).map(|n| format!("x{n}.v")).collect();
            let call = format!("{}({})", function[0], names.join(", "));
            let values: Vec<_> = types
                .iter()
                .zip(1..)
                .map(|(of, n)| {
                    let cast = |value: &&str| format!("(({value})::{of})");
                    let values: Vec<_> = arguments(of).iter().map(cast).collect();
                    format!("(VALUES {}) AS x{n} (v)", values.join(", "))
                })
                .collect();
            let values = values.join(", ");
            let values = if values.is_empty() {
                "(VALUES (1)) AS x"
            } else {
                &values
            };
            for setting in ["on", "off"] {
                // The policy would be an error for others.
                let tables = match (setting, user) {
                    ("off", "attacker") => &["barrier"][..],
                    _ => &["sal", "barrier"],
                };
                session.run(&format!("SET row_security = {setting}"));
                let count =
                    session.value(&format!("SELECT count({call}) + count(*) FROM {values}"));
                calls += count.parse::<u32>().expect("a count");
                for table in tables {
                    session.run(&format!(
                        "SELECT count(*) FROM {table} AS s, {values}
                          WHERE {call} IS NOT NULL AND s.note IS NULL"
                    ));
                    session.run(&format!(
                        "SELECT count(*) FROM {table} AS s WHERE EXISTS (SELECT FROM {values}
                          WHERE CASE WHEN s.salary > 1 THEN {call} END IS NOT NULL)"
                    ));
                }
            }
        }
    }
    victim.run("COMMIT");
    assert!(calls > 1000, "{calls}");
}

/// A2. At 6f7aa56 the error of `ttl_internal.locked_here`, which was LEAKPROOF, told whether a hidden row
/// matches: the planner called it before the policy.
#[test]
fn a2_a_policy_hides_rows_from_every_function() {
    let database = hostile::armed_database(server());
    let _victim = secret(&database);
    let mut attacker = database.connect_as("attacker");
    let mut outcome = |table: &str, guess: u32| {
        let row = if table == "sal" { "ctid" } else { "p" };
        let result = attacker.try_run(&format!(
            "SELECT 1 FROM {table} WHERE ttl_internal.locked_here(CASE WHEN who = 'ceo' AND salary >= {guess} THEN 1::oid END, {row})"
        ));
        result
            .map(|messages| messages.len())
            .map_err(|error| ttl_ext_e2e::fields(&error))
    };
    for table in ["sal", "barrier"] {
        assert_eq!(outcome(table, 50_000), outcome(table, 90_000), "{table}");
    }
    // No function comes before the policy, with any column.
    let calls = [
        "ttl.live('now'::timestamptz + salary * interval '1 s', salary, 1)",
        "ttl.live_at('now'::timestamptz + salary * interval '1 s', 1)",
        "ttl_internal.evaluate_first(salary > 1)",
        "ttl.reads_physically(t)",
        "ttl.cutoff(salary) IS NULL",
        "ttl.is_override(salary)",
        "ttl.expiry_key('now', salary) > 0",
        "ttl_internal.locked_here(t, p)",
    ];
    for call in calls {
        let plan = attacker.column(&format!("EXPLAIN (COSTS OFF) SELECT FROM sal WHERE {call}"));
        let filter = plan
            .iter()
            .find(|line| line.contains("ttl"))
            .expect("a filter");
        let (policy, function) = (filter.find("CURRENT_USER"), filter.find("ttl"));
        // With an index for the policy, the function is in the filter alone.
        assert!(policy.is_none() || policy < function, "{filter}");
        assert!(
            plan.iter().any(|line| line.contains("CURRENT_USER")),
            "{plan:?}"
        );
    }
}

/// L3. Any user could lock any table by `ttl.inserted_here`, and have errors about files logged. Not
/// `ttl.expired`: PostgreSQL opens the table of a row type before it calls the function.
#[test]
fn l3_a_stranger_waits_for_no_lock() {
    let database = hostile::armed_database(server());
    let mut victim = secret(&database);
    victim.run(
        "SELECT ttl.enable('sal', 3600); REVOKE ALL ON sal FROM attacker; BEGIN; LOCK TABLE sal",
    );
    let mut attacker = database.connect_as("attacker");
    let functions = attacker.rows(&format!(
        "SELECT schema || '.' || proname, (SELECT string_agg(format_type(t, NULL), ';' ORDER BY n)
                            FROM unnest(proargtypes) WITH ORDINALITY AS a (t, n)
                           WHERE n <= (SELECT pronargs - pronargdefaults FROM pg_proc AS p WHERE p.oid = f.oid))
           FROM ({FUNCTIONS}) AS f
          WHERE is_public AND (SELECT bool_or(t IN ('oid'::regtype, 'regclass'::regtype, 'record'::regtype))
                                 FROM unnest(proargtypes) AS a (t))"
    ));
    assert!(functions.len() > 20, "{functions:?}");
    for function in functions {
        let value = |of: &str| match of {
            "oid" | "regclass" if function[0] == "ttl.expire_index" => "'sal_pkey'::regclass",
            "oid" | "regclass" => "'sal'::regclass",
            "record" => "NULL::sal",
            "tid" => "'(4294967294,1)'::tid",
            "boolean" => "false",
            "jsonb" => "'{\"salary\": 1}'::jsonb",
            "ttl.seconds" => "100",
            "name" => "'salary'",
            "text" => "'default'",
            other => panic!("no value of type {other}"),
        };
        let values: Vec<_> = function[1].split(';').map(value).collect();
        attacker.run("BEGIN; SET LOCAL lock_timeout = '500ms'");
        let call = format!("SELECT {}({})", function[0], values.join(", "));
        let result = attacker.try_run(&call);
        if let Err(error) = &result {
            let code = error.code().map(|code| code.code().to_owned());
            // Neither waits, nor is not called at all.
            for wrong in ["55P03", "42883"] {
                assert_ne!(code.as_deref(), Some(wrong), "{call}: {error}");
            }
            attacker.run("ROLLBACK");
            continue;
        }
        let locks = attacker.column(
            "SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'sal'::regclass",
        );
        assert_eq!(locks, [""; 0], "{call}");
        attacker.run("COMMIT");
    }
    victim.run("COMMIT");
    assert!(server().log_lines(&["could not open file"]).is_empty());
}

/// The filter comes before row-level security where it is added as a security condition: at
/// level 0, without being LEAKPROOF.
#[test]
fn a_policy_meets_no_expired_row() {
    let database = hostile::armed_database(server());
    let mut victim = database.connect_as("victim");
    victim.run(
        "CREATE FUNCTION judge(i int) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS
           $$BEGIN IF i = 1 THEN RAISE 'an expired row'; END IF; RETURN i < 9; END$$",
    );
    for table in ["one", "two"] {
        victim.run(&format!(
            "CREATE TABLE {table} (id int PRIMARY KEY); SELECT ttl.enable('{table}', 3600); GRANT SELECT ON {table} TO reader;
             INSERT INTO {table} VALUES (2), (9); ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
             CREATE POLICY p ON {table} USING (public.judge(id))"
        ));
        victim.insert_expired(table, 1, 1);
    }
    let mut reader = database.connect_as("reader");
    for query in [
        "SELECT id FROM one",
        "SELECT id FROM (SELECT id FROM one UNION ALL SELECT id FROM two WHERE id > 2) AS u WHERE id > 0",
        "SELECT id FROM (SELECT id FROM one UNION ALL SELECT 9) AS u WHERE id < 9",
    ] {
        assert_eq!(reader.column(query), ["2"], "{query}");
    }
}
