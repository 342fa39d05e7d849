//! The answer of a statement.

use postgres::SimpleQueryMessage;

use crate::session::row_text;

/// An answer in a form that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The rows that were returned, in the order of their text, and the counts.
    Done(Vec<String>),
    Failed(Failure),
    /// It has no place in the transaction's state.
    LeftOut,
}

/// An error, without the schema's name and the rows' times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) detail: String,
    pub(super) table: String,
    pub(super) constraint: String,
}

impl Answer {
    pub(super) fn of(result: Result<Vec<SimpleQueryMessage>, postgres::Error>) -> Answer {
        let messages = match result {
            Ok(messages) => messages,
            Err(error) => return Answer::Failed(Failure::of(&error)),
        };
        let mut lines: Vec<String> = Vec::new();
        for message in &messages {
            if let Some(row) = row_text(message) {
                lines.push(row.join(" "));
            } else if let SimpleQueryMessage::CommandComplete(count) = message {
                lines.push(format!("# {count}"));
            }
        }
        lines.sort_unstable();
        Answer::Done(lines)
    }

    pub(super) fn count(result: Result<u64, postgres::Error>) -> Answer {
        match result {
            Ok(count) => Answer::Done(vec![format!("# {count}")]),
            Err(error) => Answer::Failed(Failure::of(&error)),
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Answer::Done(lines) => lines.join(", "),
            Answer::Failed(f) => format!("{} {} {}", f.code, f.message, f.detail),
            Answer::LeftOut => "left out".to_owned(),
        }
    }
}

impl Failure {
    fn of(error: &postgres::Error) -> Failure {
        let Some(db) = error.as_db_error() else {
            return Failure {
                code: "none".to_owned(),
                message: error.to_string(),
                detail: String::new(),
                table: String::new(),
                constraint: String::new(),
            };
        };
        let text = |part: Option<&str>| part.unwrap_or_default().to_owned();
        let detail = text(db.detail());
        // The whole row, with its times; or the first that was found of several
        // rows in the way.
        let depends = detail.starts_with("Failing row") || db.code().code() == "23P01";
        Failure {
            code: db.code().code().to_owned(),
            message: db.message().to_owned(),
            detail: if depends { String::new() } else { detail },
            table: text(db.table()),
            constraint: text(db.constraint()),
        }
    }

    /// The part of the DETAIL between `Key (` and `)=(`, and that after it.
    pub(super) fn key(&self) -> Option<(&str, &str)> {
        let (columns, rest) = self.detail.strip_prefix("Key (")?.split_once(")=(")?;
        let (values, _) = rest.split_once(") ")?;
        Some((columns, values))
    }
}
