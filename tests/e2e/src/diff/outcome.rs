//! The answer of a script, in a form that can be compared.

use postgres::SimpleQueryMessage;

use super::script::{Script, Way};
use crate::session::{describe, row_text};
use crate::{Session, SqlState};

/// The answer to a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The rows of all statements as text, with the statement's number, and the row counts; sorted,
    /// as the order is not compared.
    Rows(Vec<String>),
    /// The SQLSTATE of the statement that failed.
    Failed(String),
    /// Cut off by `statement_timeout`.
    TimedOut,
}

impl Outcome {
    /// Run a script. An error's message goes to `message`.
    pub fn of(session: &mut Session, script: &Script, message: &mut String) -> Outcome {
        let answer = match script.way {
            Way::Copy => copy(session, &script.sql()),
            // The plan decides which rows a FETCH returns, so all FETCHes are compared as one.
            Way::Cursor => session.try_run(&script.sql()).map(|m| lines(&m, 0)),
            _ => session.try_run(&script.sql()).map(|m| lines(&m, 1)),
        };
        match answer {
            Ok(mut lines) => {
                lines.sort_unstable();
                Outcome::Rows(lines)
            }
            Err(error) => {
                *message = describe(&error);
                let clean = session.try_run("ROLLBACK; DEALLOCATE ALL");
                assert!(
                    clean.is_ok(),
                    "the session is lost\n{message}\n{}",
                    script.sql()
                );
                match error.code() {
                    Some(code) if *code == SqlState::QUERY_CANCELED => Outcome::TimedOut,
                    Some(code) => Outcome::Failed(code.code().to_owned()),
                    None => Outcome::Failed(message.clone()),
                }
            }
        }
    }

    /// Does it hold a row of a query?
    pub fn has_rows(&self) -> bool {
        matches!(self, Outcome::Rows(lines) if lines.iter().any(|line| !line.starts_with('#')))
    }

    /// Lines that only one answer has, at most this many of each side.
    pub fn difference(&self, other: &Outcome, most: usize) -> String {
        let (Outcome::Rows(one), Outcome::Rows(two)) = (self, other) else {
            return format!("  {}\n  {}", self.short(), other.short());
        };
        let only = |one: &[String], two: &[String], sign: char| {
            let mut rest = two.to_vec();
            let mut lines = Vec::new();
            for line in one {
                match rest.binary_search(line) {
                    Ok(at) => drop(rest.remove(at)),
                    Err(_) => lines.push(format!("  {sign} {line}")),
                }
            }
            let all = lines.len();
            lines.truncate(most);
            format!("{all} lines only here:\n{}", lines.join("\n"))
        };
        format!(
            "first: {}\nsecond: {}",
            only(one, two, '<'),
            only(two, one, '>')
        )
    }

    fn short(&self) -> String {
        match self {
            Outcome::Rows(lines) => format!("{} lines", lines.len()),
            other => format!("{other:?}"),
        }
    }
}

fn lines(messages: &[SimpleQueryMessage], step: u32) -> Vec<String> {
    let mut statement = 0;
    let mut lines = Vec::new();
    for message in messages {
        if let Some(row) = row_text(message) {
            lines.push(format!("{statement}: {}", row.join(" | ")));
        } else if let SimpleQueryMessage::CommandComplete(count) = message {
            lines.push(format!("# statement {statement}: {count}"));
            statement += step;
        }
    }
    lines
}

fn copy(session: &mut Session, sql: &str) -> Result<Vec<String>, postgres::Error> {
    use std::io::Read;
    let mut text = String::new();
    if let Err(error) = session.client.copy_out(sql)?.read_to_string(&mut text) {
        return match error
            .into_inner()
            .map(|inner| inner.downcast::<postgres::Error>())
        {
            Some(Ok(error)) => Err(*error),
            other => panic!("COPY was cut off: {other:?}\n{sql}"),
        };
    }
    Ok(text.lines().map(|line| format!("0: {line}")).collect())
}
