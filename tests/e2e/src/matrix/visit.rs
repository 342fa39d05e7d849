//! One visit: the statement, how long it takes, how it ends, what it leaves.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::attempts::{Attempt, Trace};
use super::judge::{self, CRASH, Effects, FAILED, HELD};
use super::script::Names;
use super::statements;
use super::visitors::Visitor;
use crate::{Server, Session, is_disconnect};

/// What a visitor gives a statement when code loops, in ms, and otherwise.
const SHORT: u64 = 500;
const LONG: u64 = 60_000;
/// How much later a statement may end on a busy machine.
const GRACE: Duration = Duration::from_millis(1_500);
/// How long `pg_dump` may take.
const DUMP: Duration = Duration::from_secs(20);

/// After how long a visit is ended by force.
pub(super) fn most(attempt: &Attempt) -> Duration {
    let limit = if attempt.trace == Trace::Time {
        SHORT
    } else {
        LONG
    };
    Duration::from_millis(limit) + 4 * GRACE
}

/// The visit, in this session of this user.
pub(super) fn visit(
    session: &mut Session,
    user: &str,
    visitor: &Visitor,
    attempt: &Attempt,
    names: &Names,
) -> Result<Effects, postgres::Error> {
    let limit = if attempt.trace == Trace::Time {
        SHORT
    } else {
        LONG
    };
    let within = attempt.trace == Trace::Transaction;
    let sql = names.put_into(visitor.sql);
    let mut effects = Effects::new();
    session.try_run(&format!("SET statement_timeout = {limit}"))?;
    if within {
        session.try_run("BEGIN")?;
    }
    let begin = Instant::now();
    let result = if sql.starts_with("COPY") {
        session.copy_in(&sql, statements::COPIED).map(|_| ())
    } else {
        session.try_run(&sql).map(|_| ())
    };
    if begin.elapsed() > Duration::from_millis(limit) + GRACE {
        effects.insert(HELD.to_owned());
    }
    if let Err(error) = &result {
        if is_disconnect(error) {
            effects.insert(CRASH.to_owned());
            return Ok(effects);
        }
        let code = error.code().map_or("", |code| code.code());
        effects.insert(format!("{FAILED}{code}"));
    }
    if within {
        if result.is_ok() {
            effects.extend(judge::session(session, user)?);
        }
        if let Err(error) = session.try_run("COMMIT") {
            let code = error.code().map_or("", |code| code.code());
            effects.insert(format!("{FAILED}{code}"));
        }
    }
    session.try_run("SET statement_timeout = 0")?;
    effects.extend(judge::session(session, user)?);
    Ok(effects)
}

/// A dump of the case's table.
pub(super) fn dump(server: &Server, names: &Names) -> Effects {
    let mut command = server.tool("pg_dump", &names.database);
    command
        .args(["-f", "/dev/null", "-t"])
        .arg(format!("{}.t*", names.schema));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("cannot run pg_dump");
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("the end of pg_dump") {
            let failed = (!status.success()).then(|| format!("{FAILED}pg_dump"));
            return failed.into_iter().collect();
        }
        if begin.elapsed() > DUMP {
            // It is our own child process, and nobody waits for it.
            let _ = child.kill();
            let _ = child.wait();
            return [HELD.to_owned()].into();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
