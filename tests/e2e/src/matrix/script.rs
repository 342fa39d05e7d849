//! The SQL of one case, which a superuser can run in psql.

use super::attempts::Attempt;
use super::carriers::Carrier;
use super::visitors::{Kind, Visitor, Who};

/// The names in a case.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) attacker: String,
    pub(super) victim: String,
    pub(super) database: String,
    pub(super) schema: String,
}

impl Names {
    /// Those of the scripts that are printed.
    pub(super) fn to_print() -> Names {
        Names {
            attacker: "attacker".to_owned(),
            victim: "victim".to_owned(),
            database: "test".to_owned(),
            schema: "s".to_owned(),
        }
    }

    pub(super) fn put_into(&self, sql: &str) -> String {
        sql.replace("{a}", &self.attacker)
            .replace("{v}", &self.victim)
            .replace("{database}", &self.database)
            .replace("{s}", &self.schema)
    }
}

/// Roles of a lane, once a server.
pub(super) const ROLES: &str = "CREATE ROLE {a} LOGIN; CREATE ROLE {v} LOGIN;";

/// What a database has before all cases; by the superuser, then by the attacker.
pub(super) fn preface() -> String {
    format!(
        "-- No code does anything in the session that makes the cases.\nSET application_name = 'builder';\n{}SET SESSION AUTHORIZATION {{a}};\nBEGIN;\n{}COMMIT;\nRESET SESSION AUTHORIZATION;\n",
        include_str!("roles.sql"),
        include_str!("arms.sql")
    )
}

/// A table whose rows expire beside the attacker's, to see whether they wait; its trigger looks into
/// the session in which they are deleted.
pub(super) const BYSTANDER: &str = "SET SESSION AUTHORIZATION {v};
CREATE TABLE home.bystander (id integer PRIMARY KEY);
CREATE TABLE home.pids (pid integer);
CREATE TABLE home.found (what text);
CREATE FUNCTION home.look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO home.pids VALUES (pg_catalog.pg_backend_pid());
    INSERT INTO home.found
    SELECT 'a cursor' FROM pg_catalog.pg_cursors WHERE name = 'evil'
    UNION ALL SELECT 'a prepared statement' FROM pg_catalog.pg_prepared_statements WHERE name = 'evil'
    UNION ALL SELECT 'a LISTEN' FROM pg_catalog.pg_listening_channels()
    UNION ALL SELECT 'an advisory lock' FROM pg_catalog.pg_locks
        WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid()
    UNION ALL SELECT 'a temporary object' FROM pg_catalog.pg_class
        WHERE relnamespace = pg_catalog.pg_my_temp_schema() AND relname = 'evil'
    UNION ALL SELECT 'a temporary function' FROM pg_catalog.pg_proc
        WHERE pronamespace = pg_catalog.pg_my_temp_schema()
    UNION ALL SELECT 'the search_path' WHERE pg_catalog.current_setting('search_path') LIKE '%arms%'
    UNION ALL SELECT 'the setting evil.mark' WHERE pg_catalog.current_setting('evil.mark', true) = 'here'
    UNION ALL SELECT 'the attacker''s name' WHERE '{a}' IN (current_user, session_user)
    UNION ALL SELECT 'foretold random numbers' FROM arms.foretold WHERE number = random();
    RETURN OLD;
END $$;
CREATE TRIGGER look BEFORE DELETE ON home.bystander FOR EACH ROW EXECUTE FUNCTION home.look();
SELECT ttl.enable('home.bystander', 3600);
RESET SESSION AUTHORIZATION;
GRANT SET ON PARAMETER ttl.show_expired TO {a};";

const COLUMNS: &str =
    "n integer DEFAULT 0, e timestamptz DEFAULT now(), d timestamptz DEFAULT now(),
    _ts timestamptz NOT NULL DEFAULT now(), ttl integer";

/// The tables of a case, with its code armed and its rows expired.
pub(super) fn setup(carrier: &Carrier, visitor: &Visitor, attempt: &Attempt, ttl: bool) -> String {
    let owner = if carrier.stranger { "{v}" } else { "{a}" };
    let partitions = visitor.kind == Kind::Partition;
    let target = if partitions { "{s}.t1" } else { "{s}.t" };
    let dead = ttl || visitor.dead;
    let mut script = if visitor.who == Who::Worker {
        let login = if visitor.login { "LOGIN" } else { "NOLOGIN" };
        format!("ALTER ROLE {{a}} {login};\n")
    } else {
        String::new()
    };
    script += &part(
        "{a}",
        "CREATE SCHEMA {s};\nGRANT ALL ON SCHEMA {s} TO {v};\n\
         SELECT setval('arms.ran_self', 1, false), setval('arms.ran_victim', 1, false), setval('arms.ran_super', 1, false);",
    );
    script += &part(
        "{v}",
        "CREATE TABLE {s}.p (id integer PRIMARY KEY);\nINSERT INTO {s}.p VALUES (1), (2), (3);\n\
         GRANT SELECT, REFERENCES ON {s}.p TO {a};",
    );
    let mut table = tables(carrier, visitor);
    table += &rows(partitions, dead);
    let builds = visitor.kind == Kind::Build;
    if ttl && !partitions && !builds {
        table += "SELECT ttl.enable('{s}.t', 3600);\nSELECT ttl.expire_index('{s}.t_d', 3600);\n";
        table += visitor.before;
    }
    let archive = carrier.archive.or(visitor.archives.then_some(""));
    if let Some(ends) = archive {
        table += &format!("CREATE TABLE {{s}}.gone (LIKE {{s}}.t){ends};\n");
        if ttl && !builds && !partitions {
            table += ARCHIVE;
        }
    }
    script += &part(owner, &table);
    if !visitor.beside.is_empty() {
        script += &part("{v}", visitor.beside);
    }
    let after = carrier.after.replace("{t}", target);
    let always = if visitor.who == Who::Apply {
        super::apply::always(&after)
    } else {
        String::new()
    };
    script += &part("{a}", &format!("{after}\n{always}{}", attempt.arm()));
    let mut last = expire(partitions, ttl, dead);
    if ttl && builds {
        // What the row's UPDATE has deferred is over.
        script += &part(owner, &last);
        last = "SELECT ttl.enable('{s}.t', 3600, index => 'btree', concurrently => true, confirm => true);\n"
            .to_owned();
        if archive.is_some() {
            last += ARCHIVE;
        }
    }
    script += &part(owner, &last);
    script
}

/// As the owner, where the table has TTL.
const ARCHIVE: &str = "SELECT ttl.archive_to('{s}.t', '{s}.gone');\n";

fn part(role: &str, sql: &str) -> String {
    format!(
        "SET SESSION AUTHORIZATION {role};\nBEGIN;\n{}\nCOMMIT;\n",
        sql.trim_end()
    ) + "RESET SESSION AUTHORIZATION;\n"
}

fn tables(carrier: &Carrier, visitor: &Visitor) -> String {
    let further = if carrier.columns.is_empty() {
        String::new()
    } else {
        format!(", {}", carrier.columns)
    };
    let action = visitor.action;
    let table = |id: &str, k: &str| {
        format!(
            "CREATE TABLE {{s}}.t (id integer{id}, k integer{k},\n    \
             pid integer REFERENCES {{s}}.p ON DELETE {action}, {COLUMNS}{further})"
        )
    };
    let unique = "ADD PRIMARY KEY (id), ADD UNIQUE (k)";
    let mut sql = if visitor.kind == Kind::Partition {
        table("", "")
            + " PARTITION BY RANGE (_ts);\nCREATE TABLE {s}.t1 PARTITION OF {s}.t FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');\n"
            + &format!("ALTER TABLE {{s}}.t1 {unique};\n")
    } else if let Some(key) = carrier.key {
        table("", "")
            + &format!(
                " PARTITION BY {key};\nCREATE TABLE {{s}}.t1 PARTITION OF {{s}}.t DEFAULT;\nALTER TABLE {{s}}.t1 {unique};\n"
            )
    } else {
        table(" PRIMARY KEY", " UNIQUE") + ";\n"
    };
    sql += "CREATE INDEX t_d ON {s}.t (d);\n";
    sql += "GRANT SELECT, INSERT, UPDATE, DELETE, REFERENCES ON {s}.t TO {v};\nGRANT SELECT, REFERENCES ON {s}.t TO {a};\n";
    if visitor.kind == Kind::Partition {
        sql += "GRANT SELECT, REFERENCES ON {s}.t1 TO {a};\n";
    }
    sql
}

fn rows(partitions: bool, dead: bool) -> String {
    let ids = if dead { "1, 3" } else { "3, 3" };
    if partitions {
        return "INSERT INTO {s}.t1 (id, k, pid, _ts) VALUES (1, 1, 1, '2020-06-01');\n".to_owned();
    }
    format!("INSERT INTO {{s}}.t (id, k, pid) SELECT n, n, n FROM generate_series({ids}) AS n;\n")
}

/// The last step, after which a worker may come at once.
fn expire(partitions: bool, ttl: bool, dead: bool) -> String {
    if partitions {
        return "SELECT ttl.enable('{s}.t', 60, drop_partitions => true);".to_owned();
    }
    let mut sql = String::new();
    if ttl {
        sql += "SET LOCAL ttl.preserve_ts = on;\n";
    }
    if dead {
        sql += "UPDATE {s}.t SET _ts = now() - interval '1 day' WHERE id = 1;\n\
                UPDATE {s}.t SET d = now() - interval '1 day' WHERE id = 2;\n";
    }
    sql
}

/// What the visitor does, for a reader.
pub(super) fn visit(visitor: &Visitor, attempt: &Attempt) -> String {
    use super::attempts::Trace;
    let who = match visitor.who {
        Who::Super => "-- a superuser, in a new session",
        Who::Victim => "-- {v}, in a new session",
        Who::Worker => return "-- and a worker comes by\n".to_owned(),
        Who::Apply => {
            return "-- and a row (11, 1) arrives by a superuser's subscription\n".to_owned();
        }
        Who::Dump => return "-- pg_dump -t {s}.t, as superuser\n".to_owned(),
    };
    let sql = visitor.sql;
    match attempt.trace {
        Trace::Transaction => format!("{who}\nBEGIN;\n{sql};\n-- look here\nCOMMIT;\n"),
        Trace::Time => format!("{who}\nSET statement_timeout = 500;\n{sql};\n"),
        Trace::Database | Trace::Session | Trace::Process => format!("{who}\n{sql};\n"),
    }
}
