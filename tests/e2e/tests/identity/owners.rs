//! Deletion is done as the table's owner, whatever sessions of that owner meet: an owner that
//! cannot log in, or that has settings of its own, in each kind of table.

use std::time::{Duration, Instant};

use ttl_ext_e2e::{Database, PATIENCE, Server, Session, hostile, until};

use crate::owner_kinds::{self, KINDS, Outcome, Owner, SETTINGS};

/// Every owner's rows are gone, or have a problem, after this time at the latest.
const WAIT: Duration = Duration::from_secs(PATIENCE * 2);

fn put(owner: &str, sql: &str) -> String {
    sql.replace("{o}", owner)
}

/// The roles and their tables, in this database; nothing is expired yet.
fn build(boss: &mut Session, owners: &[Owner]) {
    boss.run(
        "CREATE TABLE public.log (o text, t text, id int, cu text, su text);
         GRANT INSERT ON public.log TO PUBLIC; SET client_min_messages = error",
    );
    for owner in owners {
        let name = owner.name;
        boss.run(&format!(
            "CREATE ROLE {name} {}; CREATE SCHEMA {name} AUTHORIZATION {name}; SET ROLE {name}",
            owner.role
        ));
        boss.run(&put(name, owner_kinds::TABLES));
        boss.run("RESET ROLE");
        boss.run(&put(name, owner_kinds::ROWS));
        boss.run(&put(name, owner.condition));
    }
}

/// Rows expire; what has become of them is compared with what each owner expects.
fn judge(boss: &mut Session, owners: &[Owner], except: impl Fn(&Owner, &str) -> Outcome) {
    for owner in owners {
        boss.run(&put(owner.name, owner_kinds::EXPIRE));
    }
    boss.run("SET ttl.show_expired = on");
    let begin = Instant::now();
    let mut waiting: Vec<(&Owner, _)> = owners
        .iter()
        .flat_map(|owner| KINDS.iter().map(move |kind| (owner, kind)))
        .collect();
    let count = waiting.len();
    let mut faults = Vec::new();
    let mut told = Vec::new();
    loop {
        waiting.retain(|(owner, (kind, query, left, notes))| {
            let outcome = except(owner, kind);
            let is_gone = boss.value(&put(owner.name, query)) == *left;
            let problems = boss.value(&format!(
                "SELECT coalesce(array_to_string(problems, '; '), '') FROM ttl.tables
                  WHERE relation = '{}.{kind}'::regclass",
                owner.name
            ));
            let settled = match outcome {
                Outcome::Gone => is_gone,
                Outcome::Either => is_gone || !problems.is_empty(),
            };
            if !settled {
                return true;
            }
            if !is_gone {
                told.push(format!("{}.{kind}: {problems}", owner.name));
            }
            if is_gone {
                let as_owner = boss.value(&format!(
                    "SELECT count(*) FROM public.log WHERE o = '{0}' AND t = '{1}' AND cu = '{0}' AND su = '{0}'",
                    owner.name,
                    owner_kinds::noted(kind)
                ));
                if as_owner != notes.to_string() {
                    let fired = boss.column(&format!(
                        "SELECT cu, su, count(*) FROM public.log WHERE o = '{}' AND t = '{}' GROUP BY cu, su",
                        owner.name,
                        owner_kinds::noted(kind)
                    ));
                    faults.push(format!(
                        "{}.{kind}: {as_owner} of {notes} triggers have fired as the owner: {fired:?}",
                        owner.name
                    ));
                }
            }
            false
        });
        if waiting.is_empty() || begin.elapsed() > WAIT {
            break;
        }
        // How often it is looked whether they are gone.
        std::thread::sleep(Duration::from_millis(100));
    }
    for (owner, (kind, query, left, _)) in &waiting {
        let there = boss.value(&put(owner.name, query));
        let why = boss.rows(&format!(
            "SELECT problems, last_error FROM ttl.tables LEFT JOIN ttl.stats USING (relation)
              WHERE relation = '{}.{kind}'::regclass",
            owner.name
        ));
        faults.push(format!(
            "{}.{kind}: {there} is there, not {left}, {:?}: {why:?}",
            owner.name,
            except(owner, kind)
        ));
    }
    println!("{count} pairs of owner and table; problems that are told:");
    for line in &told {
        println!("  {line}");
    }
    assert!(
        faults.is_empty(),
        "{} of {count}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// What is due on this version.
fn expected(server: &Server, owner: &Owner, kind: &str) -> Outcome {
    // No process can be connected as it before 17, and CREATE INDEX CONCURRENTLY is no work for
    // one that is restricted.
    if owner.role == "NOLOGIN" && kind == "build" && server.major() < 17 {
        return Outcome::Either;
    }
    // What PostgreSQL itself does by name: foreign keys, INSERT, DROP, CREATE INDEX.
    if owner.name == "no_usage" && ["parent", "archived", "dropped", "build"].contains(&kind) {
        return Outcome::Either;
    }
    // The statements of foreign keys, and that which fills an archive.
    if owner.name == "may_not_delete" && ["parent", "archived"].contains(&kind) {
        return Outcome::Either;
    }
    owner.outcome
}

fn start() -> Server {
    hostile::start(&[("max_worker_processes", "24")])
}

#[test]
fn whatever_the_owner_is() {
    let server = start();
    let database = server.database("owners");
    let mut boss = database.connect();
    let mut owners = owner_kinds::owners();
    owners.retain(|owner| owner.since <= server.major());
    build(&mut boss, &owners);
    judge(&mut boss, &owners, |owner, kind| {
        expected(&server, owner, kind)
    });
}

/// From 19 on, strings are standard.
fn settings(server: &Server) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_19 = server.major() >= 19;
    let all = SETTINGS.into_iter();
    all.filter(move |(name, _)| !(is_19 && *name == "strings"))
}

#[test]
fn whatever_settings_the_owner_has() {
    let server = start();
    let database = server.database("settings");
    let mut boss = database.connect();
    let owners: Vec<Owner> = settings(&server)
        .map(|(name, setting)| Owner {
            name: leak(format!("o_{name}")),
            role: "LOGIN",
            condition: leak(format!("ALTER ROLE {{o}} SET {setting}")),
            since: 15,
            outcome: Outcome::Gone,
        })
        .collect();
    build(&mut boss, &owners);
    judge(&mut boss, &owners, |owner, _| owner.outcome);
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

fn one(name: &'static str, role: &'static str) -> [Owner; 1] {
    [Owner {
        name,
        role,
        condition: "",
        since: 15,
        outcome: Outcome::Gone,
    }]
}

/// The same settings, of the database.
#[test]
fn whatever_settings_the_database_has() {
    let server = start();
    let database = server.database("settings");
    let mut boss = database.connect();
    let owners = one("usual", "LOGIN");
    build(&mut boss, &owners);
    let mut admin = server.connect("postgres", "postgres");
    for (_, setting) in settings(&server) {
        admin.run(&format!("ALTER DATABASE settings SET {setting}"));
    }
    admin.run("ALTER DATABASE settings RESET ttl.show_expired");
    judge(&mut boss, &owners, |owner, _| owner.outcome);
}

/// What PostgreSQL would refuse to the owner: no CONNECT; no connection left for the database.
#[test]
fn whoever_may_connect() {
    let server = start();
    for (name, refuse) in [
        ("revoked", "REVOKE CONNECT ON DATABASE revoked FROM PUBLIC"),
        ("filled", "ALTER DATABASE filled CONNECTION LIMIT 0"),
    ] {
        let database = server.database(name);
        let mut boss = database.connect();
        let owners = one(leak(format!("owner_of_{name}")), "LOGIN");
        build(&mut boss, &owners);
        boss.run(refuse);
        judge(&mut boss, &owners, |_, _| Outcome::Either);
        // What cannot be done here delays nobody elsewhere.
        let other = hostile::two_schemas(&server, &format!("other_{name}"));
        hostile::assert_served(&other);
    }
}

/// No process enters such a database; when it is opened again, deletion goes on.
#[test]
fn a_database_that_is_closed() {
    let server = start();
    let database = server.database("closed");
    let mut boss = database.connect();
    let owners = one("usual", "LOGIN");
    build(&mut boss, &owners);
    let mut admin = server.connect("postgres", "postgres");
    admin.run("ALTER DATABASE closed ALLOW_CONNECTIONS false");
    let other = hostile::two_schemas(&server, "other");
    hostile::assert_served(&other);
    admin.run("ALTER DATABASE closed ALLOW_CONNECTIONS true");
    judge(&mut boss, &owners, |owner, _| owner.outcome);
}

/// A table whose rows take long, with the processes that delete them, as its owner sees them.
fn slow(database: &Database<'_>) -> (Session, i32) {
    let mut victim = hostile::owner(database, "victim");
    victim.run(
        "CREATE TABLE slow (id integer PRIMARY KEY); SELECT ttl.enable('slow', 3600);
         CREATE TABLE pace (s double precision); INSERT INTO pace VALUES (30);
         CREATE FUNCTION doze() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN
           PERFORM pg_sleep(s) FROM pace; RETURN OLD; END$$;
         CREATE TRIGGER t BEFORE DELETE ON slow FOR EACH ROW EXECUTE FUNCTION doze()",
    );
    victim.insert_expired("slow", 1, 3);
    let pid = until("a process of the victim's that sleeps", PATIENCE, || {
        let pids = victim.column(
            "SELECT pid FROM pg_stat_activity
              WHERE usename = 'victim' AND backend_type LIKE 'ttl_ext%' AND wait_event = 'PgSleep'",
        );
        pids.first().map(|pid| pid.parse().expect("a process id"))
    });
    (victim, pid)
}

/// `pg_stat_activity` shows the owner's name, and the owner may end the process, which does no harm.
#[test]
fn the_owner_may_end_it() {
    let server = start();
    let database = hostile::armed_database(&server);
    let (mut victim, pid) = slow(&database);
    let began = database
        .connect()
        .value("SELECT pg_postmaster_start_time()");
    let mut other = database.connect_as("reader");
    let refused = other.error(&format!("SELECT pg_terminate_backend({pid})"));
    assert_eq!(
        refused.code(),
        &ttl_ext_e2e::SqlState::INSUFFICIENT_PRIVILEGE
    );
    let mut ended = pid;
    for _ in 0..3 {
        assert_eq!(
            victim.value(&format!("SELECT pg_terminate_backend({ended}, 30000)")),
            "t"
        );
        // It is tried again, by another process.
        let again = format!(
            "SELECT pid FROM pg_stat_activity WHERE usename = 'victim' AND pid <> {ended}
                AND backend_type LIKE 'ttl_ext%' AND wait_event = 'PgSleep'"
        );
        ended = until("another process", PATIENCE, || {
            let pids = victim.column(&again);
            pids.first().map(|pid| pid.parse().expect("a process id"))
        });
    }
    victim.run("UPDATE pace SET s = 0");
    victim.run(&format!("SELECT pg_terminate_backend({ended}, 30000)"));
    victim.wait_for_none("slow");
    let mut boss = database.connect();
    assert_eq!(boss.value("SELECT pg_postmaster_start_time()"), began);
}
