//! The outcome of a visit: a set of effects, each a few words.

use std::collections::BTreeSet;

use super::script::Names;
use crate::Session;

/// What happened.
pub(super) type Effects = BTreeSet<String>;

/// Code of the attacker ran, as the attacker.
pub(super) const RAN: &str = "code ran";
/// The visit took longer than its statement_timeout allows.
pub(super) const HELD: &str = "the visitor was held up";
/// The visit ended with an error; the SQLSTATE follows.
pub(super) const FAILED: &str = "failed: ";
/// A row of another owner had to wait for its deletion.
pub(super) const OTHERS: &str = "others' rows waited";
/// A process ran code of the attacker's and of the bystander's.
pub(super) const SHARED: &str = "two owners shared a process";
/// The connection broke.
pub(super) const CRASH: &str = "the session ended";

/// Rights and traces in the database; asked by a superuser, for whom none of the tables that are
/// read here runs code.
const DATABASE: &str = "
SELECT 'code ran' WHERE (SELECT is_called FROM arms.ran_self)
UNION ALL SELECT 'code ran as another user' WHERE (SELECT is_called FROM arms.ran_victim)
UNION ALL SELECT 'code ran as superuser' WHERE (SELECT is_called FROM arms.ran_super)
UNION ALL SELECT 'became superuser' FROM pg_catalog.pg_roles WHERE rolname = '{a}' AND rolsuper
UNION ALL SELECT 'became a member of another role' FROM pg_catalog.pg_auth_members
    WHERE member = '{a}'::pg_catalog.regrole
UNION ALL SELECT 'was granted ' || relname FROM pg_catalog.pg_class, pg_catalog.aclexplode(relacl)
    WHERE relnamespace = 'home'::pg_catalog.regnamespace AND grantee = '{a}'::pg_catalog.regrole
UNION ALL SELECT 'made a table in a schema of ' || pg_catalog.split_part(relname, '_', 2)
    FROM pg_catalog.pg_class WHERE relname IN ('evil_victim', 'evil_super')
UNION ALL SELECT 'read a secret ' || what FROM arms.loot";

const FORGET: &str = "ALTER ROLE {a} NOSUPERUSER; REVOKE {v} FROM {a};
REVOKE ALL ON home.of_victim, home.of_super FROM {a};
DROP TABLE IF EXISTS home.evil_victim, home_super.evil_super; DELETE FROM arms.loot;";

/// What is left in a visitor's session.
const SESSION: &str = "
SELECT 'left a cursor' FROM pg_catalog.pg_cursors WHERE name = 'evil'
UNION ALL SELECT 'left a prepared statement' FROM pg_catalog.pg_prepared_statements WHERE name = 'evil'
UNION ALL SELECT 'left a LISTEN' FROM pg_catalog.pg_listening_channels()
UNION ALL SELECT 'left an advisory lock' FROM pg_catalog.pg_locks
    WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid()
UNION ALL SELECT 'left a temporary table' FROM pg_catalog.pg_class
    WHERE relnamespace = pg_catalog.pg_my_temp_schema() AND relname = 'evil'
UNION ALL SELECT 'left a temporary function' FROM pg_catalog.pg_proc
    WHERE pronamespace = pg_catalog.pg_my_temp_schema()
UNION ALL SELECT 'left the setting ' || name FROM pg_catalog.pg_settings
    WHERE source = 'session' AND name <> 'statement_timeout'
UNION ALL SELECT 'left the setting evil.mark' WHERE pg_catalog.current_setting('evil.mark', true) = 'here'
UNION ALL SELECT 'left the role' WHERE current_user <> '{who}' AND session_user = '{who}'
UNION ALL SELECT 'left the user of the session' WHERE session_user <> '{who}'";

/// What the bystander's trigger has found where its row was deleted.
const FOUND: &str = "SELECT 'left for the next owner ' || what FROM home.found
UNION ALL SELECT 'two owners shared a process' WHERE EXISTS (SELECT FROM arms.pids JOIN home.pids USING (pid))";

/// Before each case.
const CLEAR: &str = "DELETE FROM home.found; DELETE FROM home.pids; DELETE FROM arms.pids";

/// An advisory lock that no client holds.
const WORKERS: &str = "SELECT 'left an advisory lock' FROM pg_catalog.pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = '{database}')";

/// What is in the database; everything gained is taken away again.
pub(super) fn database(builder: &mut Session, names: &Names) -> Result<Effects, postgres::Error> {
    let effects = ask(builder, &names.put_into(DATABASE))?;
    if effects.iter().any(|effect| !effect.starts_with(RAN)) {
        // A REVOKE of what is not granted is only a warning.
        builder.try_run(&names.put_into(FORGET))?;
    }
    Ok(effects)
}

/// What is left in the session of this user.
pub(super) fn session(session: &mut Session, who: &str) -> Result<Effects, postgres::Error> {
    ask(session, &SESSION.replace("{who}", who))
}

/// What a worker has left where others can see it.
pub(super) fn workers(builder: &mut Session, names: &Names) -> Result<Effects, postgres::Error> {
    ask(builder, &names.put_into(WORKERS))
}

/// What the next owner has found in a worker.
pub(super) fn next_owner(builder: &mut Session) -> Result<Effects, postgres::Error> {
    ask(builder, FOUND)
}

/// Nothing has been found yet.
pub(super) fn clear(builder: &mut Session) -> Result<(), postgres::Error> {
    builder.try_run(CLEAR).map(|_| ())
}

fn ask(session: &mut Session, sql: &str) -> Result<Effects, postgres::Error> {
    let messages = session.try_run(sql)?;
    let rows = messages.iter().filter_map(crate::session::row_text);
    Ok(rows.map(|row| row.join(" ")).collect())
}
