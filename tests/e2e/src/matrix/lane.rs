//! A database with an attacker and a victim, in which cases run one after another. Lanes of the
//! same server have their own roles, so that what one attacker gains does not count for another.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::apply::{ARRIVAL, Publisher};
use super::attempts::{ATTEMPTS, Attempt, Trace};
use super::carriers::Carrier;
use super::judge::{self, CRASH, Effects, HELD, OTHERS};
use super::script::{self, Names};
use super::visit;
use super::visitors::{Kind, Visitor, Who};
use crate::{Server, Session, describe, is_disconnect};

/// How long a worker may take for a row of the bystander's: the promise of `docs/security.md`.
const BYSTANDER: Duration = Duration::from_secs(5);
/// How long to wait, after that, for rows that may never go.
const ROWS: Duration = Duration::from_secs(2);
/// The same where an index is built before.
const BUILD: Duration = Duration::from_secs(6);
/// How long a server may take to come back.
const RESTART: Duration = Duration::from_secs(60);

/// One lane of one server.
pub(super) struct Lane<'a> {
    server: &'a Server,
    /// Whether it has the extension.
    ttl: bool,
    /// Whether it has workers.
    sweeping: bool,
    pub(super) names: Names,
    builder: Session,
    sessions: [Option<Session>; 2],
    /// Where rows come from; made when the first is wanted.
    source: &'a Server,
    publisher: Option<Publisher<'a>>,
    next: u32,
    bystanders: u32,
}

impl<'a> Lane<'a> {
    /// Make the database and its roles.
    pub(super) fn open(
        server: &'a Server,
        source: &'a Server,
        number: usize,
        ttl: bool,
        sweeping: bool,
    ) -> Lane<'a> {
        let names = Names {
            attacker: format!("a{number}"),
            victim: format!("v{number}"),
            database: format!("m{number}"),
            schema: String::new(),
        };
        if ttl {
            server.database(&names.database);
        } else {
            server.plain_database(&names.database);
        }
        let mut builder = connect(server, &names);
        builder.run(&names.put_into(script::ROLES));
        builder.run(&names.put_into(&script::preface()));
        if sweeping {
            // GRANT on a parameter, which is the whole server's: PostgreSQL has no lock for that.
            static ONE_BY_ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
            let _turn = ONE_BY_ONE
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            builder.run(&names.put_into(script::BYSTANDER));
        }
        Lane {
            server,
            ttl,
            sweeping,
            names,
            builder,
            sessions: [None, None],
            source,
            publisher: None,
            next: 0,
            bystanders: 0,
        }
    }

    /// Run one case; what came of it, or why it cannot be made.
    pub(super) fn observe(
        &mut self,
        carrier: &Carrier,
        visitor: &Visitor,
        attempt: usize,
    ) -> Result<Effects, String> {
        let attempt = &ATTEMPTS[attempt];
        self.next += 1;
        self.names.schema = format!("s{}", self.next);
        let setup = self
            .names
            .put_into(&script::setup(carrier, visitor, attempt, self.ttl));
        if self.sweeping && judge::clear(&mut self.builder).is_err() {
            self.reconnect();
        }
        if let Err(error) = self.build(&setup) {
            self.clean();
            return Err(describe(&error));
        }
        let effects = match visitor.who {
            Who::Worker if !self.ttl => Ok(Effects::new()),
            Who::Worker => self.wait_for_worker(visitor, attempt),
            Who::Apply => self.wait_for_apply(),
            Who::Dump => Ok(visit::dump(self.server, &self.names)),
            Who::Super | Who::Victim => self.receive(visitor, attempt),
        };
        let all = effects.and_then(|mut effects| {
            effects.extend(judge::database(&mut self.builder, &self.names)?);
            Ok(effects)
        });
        self.clean();
        Ok(all.unwrap_or_else(|error| self.broken(&error)))
    }

    /// The setup; a server that has just crashed in another lane is waited for.
    fn build(&mut self, setup: &str) -> Result<(), postgres::Error> {
        let first = self.builder.try_run(setup).map(|_| ());
        match first {
            Err(error) if is_disconnect(&error) => {
                self.reconnect();
                self.clean();
                self.builder.try_run(setup).map(|_| ())
            }
            other => other,
        }
    }

    fn receive(
        &mut self,
        visitor: &Visitor,
        attempt: &Attempt,
    ) -> Result<Effects, postgres::Error> {
        let place = usize::from(visitor.who == Who::Victim);
        let user = if place == 0 {
            "postgres"
        } else {
            &self.names.victim
        };
        let mut session = match self.sessions[place].take() {
            Some(session) => session,
            None => self.server.try_connect(&self.names.database, user, "")?,
        };
        let pid = session.try_run("SELECT pg_backend_pid()")?;
        let pid = pid.iter().find_map(crate::session::row_text);
        let (done, waits) = mpsc::channel::<()>();
        let (server, names) = (self.server, &self.names);
        let (effects, ended) = std::thread::scope(|scope| {
            // What hears no statement_timeout would hold up the test as well.
            let guard = scope.spawn(move || {
                let late =
                    waits.recv_timeout(visit::most(attempt)) == Err(RecvTimeoutError::Timeout);
                let end = format!(
                    "SELECT pg_terminate_backend({})",
                    pid.unwrap_or_default().join("")
                );
                late && server
                    .try_connect(&names.database, "postgres", "")
                    .and_then(|mut session| session.try_run(&end))
                    .is_ok()
            });
            let effects = visit::visit(&mut session, user, visitor, attempt, names);
            drop(done);
            (effects, guard.join().expect("the guard does not panic"))
        });
        if ended {
            // The session may be broken; that is the harness's doing.
            return Ok([HELD.to_owned()].into());
        }
        let effects = effects?;
        // Reuse only a session in which nothing was left.
        let stained = effects
            .iter()
            .any(|effect| effect.starts_with("left") || effect == CRASH);
        if !stained && session.try_run("DISCARD ALL").is_ok() {
            self.sessions[place] = Some(session);
        }
        Ok(effects)
    }

    /// Wait until a worker has visited the table: a bystander's row is deleted meanwhile, and one
    /// more after that, whatever the table does.
    fn wait_for_worker(
        &mut self,
        visitor: &Visitor,
        attempt: &Attempt,
    ) -> Result<Effects, postgres::Error> {
        let mut effects = self.wait_for_bystander()?;
        // As the attacker, in whose session no code does anything.
        let rows = if visitor.kind == Kind::Partition {
            "SELECT count(to_regclass('{s}.t1'))"
        } else {
            "SET SESSION AUTHORIZATION {a}; SET ttl.show_expired = on; SELECT count(*) FROM {s}.t WHERE id < {below}"
        };
        // The TTL index comes later than a table that is built concurrently.
        let below = if visitor.kind == Kind::Build {
            "2"
        } else {
            "3"
        };
        let rows = &rows.replace("{below}", below);
        let rows = self.names.put_into(rows);
        let most = if visitor.kind == Kind::Build {
            BUILD
        } else {
            ROWS
        };
        self.until("0", &rows, most)?;
        self.builder.try_run("RESET SESSION AUTHORIZATION")?;
        // What the worker has in its session ends with the batch, but not at the same moment.
        let begin = Instant::now();
        let mut left = judge::workers(&mut self.builder, &self.names)?;
        while !left.is_empty() && begin.elapsed() < ROWS {
            std::thread::sleep(Duration::from_millis(30));
            left = judge::workers(&mut self.builder, &self.names)?;
        }
        effects.extend(left);
        if matches!(attempt.trace, Trace::Session | Trace::Process) {
            effects.extend(self.wait_for_bystander()?);
        }
        effects.extend(judge::next_owner(&mut self.builder)?);
        Ok(effects)
    }

    fn wait_for_bystander(&mut self) -> Result<Effects, postgres::Error> {
        self.bystanders += 1;
        let bystander = format!(
            "SET SESSION AUTHORIZATION {{v}}; BEGIN; SET LOCAL ttl.preserve_ts = on;
             INSERT INTO home.bystander (id, _ts) VALUES ({}, now() - interval '1 day'); COMMIT; RESET SESSION AUTHORIZATION",
            self.bystanders
        );
        self.builder.try_run(&self.names.put_into(&bystander))?;
        let waits = "SET ttl.show_expired = on; SELECT count(*) FROM home.bystander";
        let is_gone = self.until("0", waits, BYSTANDER)?;
        Ok((!is_gone).then(|| OTHERS.to_owned()).into_iter().collect())
    }

    /// Let a row arrive, and wait for it, for a time in which it would.
    fn wait_for_apply(&mut self) -> Result<Effects, postgres::Error> {
        let slot = format!(
            "{}_{}",
            self.names.database,
            if self.ttl { "ttl" } else { "plain" }
        );
        let mut publisher = match self.publisher.take() {
            Some(publisher) => publisher,
            None => Publisher::open(self.source, &slot),
        };
        publisher.send(&mut self.builder, &self.names)?;
        let arrived = "SET SESSION AUTHORIZATION {a}; SELECT count(*) FROM {s}.t WHERE id = 11";
        let arrived = self.names.put_into(arrived);
        self.until("1", &arrived, ARRIVAL)?;
        self.builder.try_run("RESET SESSION AUTHORIZATION")?;
        publisher.end(&mut self.builder, &self.names)?;
        self.publisher = Some(publisher);
        Ok(Effects::new())
    }

    fn until(&mut self, value: &str, sql: &str, most: Duration) -> Result<bool, postgres::Error> {
        let begin = Instant::now();
        loop {
            let messages = self.builder.try_run(sql)?;
            let mut rows = messages.iter().filter_map(crate::session::row_text);
            if rows.next().is_some_and(|row| row[0] == value) {
                return Ok(true);
            }
            if begin.elapsed() > most {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Remove the case's tables: as the attacker, so that the code in them does nothing.
    fn clean(&mut self) {
        let sql = "ROLLBACK; RESET SESSION AUTHORIZATION; SET SESSION AUTHORIZATION {a};
                   DROP SCHEMA IF EXISTS {s} CASCADE; RESET SESSION AUTHORIZATION; RESET ALL";
        let sql = self.names.put_into(sql);
        if let Err(error) = self.builder.try_run(&sql) {
            if !is_disconnect(&error) {
                panic!("cannot clean up: {}", describe(&error));
            }
            self.reconnect();
            let _ = self.builder.try_run(&sql);
        }
    }

    fn broken(&mut self, error: &postgres::Error) -> Effects {
        assert!(is_disconnect(error), "{}", describe(error));
        self.reconnect();
        [CRASH.to_owned()].into()
    }

    fn reconnect(&mut self) {
        let begin = Instant::now();
        self.sessions = [None, None];
        loop {
            let session = self
                .server
                .try_connect(&self.names.database, "postgres", QUIET);
            match session {
                Ok(session) => break self.builder = session,
                Err(error) => assert!(begin.elapsed() < RESTART, "{}", describe(&error)),
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

const QUIET: &str = "-c client_min_messages=error -c application_name=builder";

fn connect(server: &Server, names: &Names) -> Session {
    server.connect_with(&names.database, "postgres", QUIET)
}
