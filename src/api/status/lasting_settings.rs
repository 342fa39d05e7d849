//! `ttl.check`: settings for a back-fill, or for reading expired rows, that ALTER DATABASE or ALTER ROLE has set for all sessions.

use crate::api::policy::problem::Problem;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::{encoding, values};

/// The settings, the value that is not to last, and what it does.
const LASTING: [(&str, bool, &str); 3] = [
    (
        "ttl.show_expired",
        true,
        "sessions see expired rows that are not deleted yet",
    ),
    (
        "ttl.preserve_ts",
        true,
        "statements do not set the time of last modification, so rows expire although they are written",
    ),
    (
        "row_security",
        false,
        "tables' owners and superusers see expired rows, and what they insert with a time of its own makes deletion wait",
    ),
];

/// Those of this database, of all, of single roles, and of the configuration. For a single role all but `ttl.show_expired`
/// are a choice: that of a role that imports.
pub(super) fn problems() -> Vec<Problem> {
    // A name is quoted; none stands for all. Of the configuration there is no more than what the session has of it.
    let query = "SELECT CASE WHEN s.setrole OPERATOR(pg_catalog.=) 0::pg_catalog.oid THEN 'ALL' \
                             ELSE pg_catalog.quote_ident(r.rolname::pg_catalog.text) END, \
                        COALESCE(pg_catalog.quote_ident(d.datname::pg_catalog.text), ''), \
                        pg_catalog.split_part(c.setting, '=', 1), pg_catalog.split_part(c.setting, '=', 2) \
                   FROM pg_catalog.pg_db_role_setting AS s CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS c (setting) \
                   LEFT JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) s.setrole \
                   LEFT JOIN pg_catalog.pg_database AS d ON d.oid OPERATOR(pg_catalog.=) s.setdatabase \
                  WHERE s.setdatabase OPERATOR(pg_catalog.=) 0::pg_catalog.oid \
                     OR d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() \
                 UNION ALL SELECT '', source, name, setting FROM pg_catalog.pg_settings \
                  WHERE source OPERATOR(pg_catalog.=) ANY ('{configuration file,command line,environment variable}') ORDER BY 3, 1, 2";
    let found = or_raise(values::texts::<4>(query)).into_iter();
    let found = found.filter_map(|[role, database, name, value]| {
        let (name, bad, effect) = LASTING.into_iter().find(|(lasting, ..)| *lasting == name)?;
        let is_choice = name != "ttl.show_expired" && !["", "ALL"].contains(&role.as_str());
        (is_on(&value) == Some(bad) && !is_choice).then(|| {
            let (of, reset) = scope(&role, &database, name, word(!bad));
            let text = format!("{name} is {} for {of}: {effect}", word(bad));
            Problem::new(text).with_statements(reset)
        })
    });
    found.collect()
}

fn is_on(value: &str) -> Option<bool> {
    values::boolean(&encoding::query(value))
}

fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Whom the setting is for, and what resets it, to this value in the configuration. Without a role, `database` is where the server
/// has it from; no statement changes how it was started.
fn scope(role: &str, database: &str, name: &str, good: &str) -> (String, Option<String>) {
    let (of, reset) = match (role, database) {
        ("", "configuration file") => (
            "all sessions, by the configuration".to_owned(),
            format!("ALTER SYSTEM SET {name} = {good}; SELECT pg_reload_conf();"),
        ),
        ("", source) => return (format!("all sessions, by the server's {source}"), None),
        ("ALL", "") => (
            "all roles".to_owned(),
            format!("ALTER ROLE ALL RESET {name};"),
        ),
        ("ALL", database) => (
            format!("database {database}"),
            format!("ALTER DATABASE {database} RESET {name};"),
        ),
        (role, "") => (
            format!("role {role}"),
            format!("ALTER ROLE {role} RESET {name};"),
        ),
        (role, database) => (
            format!("role {role} in database {database}"),
            format!("ALTER ROLE {role} IN DATABASE {database} RESET {name};"),
        ),
    };
    (of, Some(reset))
}
