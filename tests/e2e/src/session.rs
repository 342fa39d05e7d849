//! A client's session, with short ways to say what a test expects of it.

use std::path::PathBuf;

use postgres::error::{DbError, SqlState};
use postgres::{Client, SimpleQueryMessage};

use crate::tools::tail;

/// One session. Its methods panic with the statement, the error and the end of
/// the server's log if a statement ends otherwise than they expect.
pub struct Session {
    /// The client itself, for the extended protocol and COPY.
    pub client: Client,
    log: PathBuf,
}

impl Session {
    pub(crate) fn new(client: Client, log: PathBuf) -> Session {
        Session { client, log }
    }

    /// Run statements by the simple protocol; the messages, or the error.
    pub fn try_run(&mut self, sql: &str) -> Result<Vec<SimpleQueryMessage>, postgres::Error> {
        self.client.simple_query(sql)
    }

    /// Run statements that must succeed.
    #[track_caller]
    pub fn run(&mut self, sql: &str) -> Vec<SimpleQueryMessage> {
        match self.try_run(sql) {
            Ok(messages) => messages,
            Err(error) => self.fail(sql, &describe(&error)),
        }
    }

    /// The rows of all statements, as text; a null is `∅`.
    #[track_caller]
    pub fn rows(&mut self, sql: &str) -> Vec<Vec<String>> {
        self.run(sql).iter().filter_map(row_text).collect()
    }

    /// The only column of the rows.
    #[track_caller]
    pub fn column(&mut self, sql: &str) -> Vec<String> {
        let rows = self.rows(sql);
        rows.into_iter().map(|row| row.join("|")).collect()
    }

    /// The only value of the only row.
    #[track_caller]
    pub fn value(&mut self, sql: &str) -> String {
        let mut column = self.column(sql);
        match column.len() {
            1 => column.remove(0),
            n => self.fail(sql, &format!("{n} rows where one was expected")),
        }
    }

    /// Statements that must fail: the error.
    #[track_caller]
    pub fn error(&mut self, sql: &str) -> DbError {
        match self.try_run(sql) {
            Ok(messages) => self.fail(sql, &format!("succeeded: {messages:?}")),
            Err(error) => match error.as_db_error() {
                Some(error) => error.clone(),
                None => self.fail(sql, &describe(&error)),
            },
        }
    }

    /// What COPY ... TO STDOUT sends, line by line.
    #[track_caller]
    pub fn copy_out(&mut self, sql: &str) -> Vec<String> {
        use std::io::Read;
        let mut text = String::new();
        let done = self
            .client
            .copy_out(sql)
            .map_err(|error| describe(&error))
            .and_then(|mut reader| {
                reader
                    .read_to_string(&mut text)
                    .map_err(|error| error.to_string())
            });
        if let Err(error) = done {
            self.fail(sql, &error);
        }
        text.lines().map(str::to_owned).collect()
    }

    /// COPY ... FROM STDIN of this text.
    ///
    /// Not for what fails between the server's readiness for data and the first
    /// row, such as COPY to a view: the client may lose that error.
    pub fn copy_in(&mut self, sql: &str, text: &str) -> Result<u64, postgres::Error> {
        use std::io::Write;
        let mut writer = self.client.copy_in(sql)?;
        // A failure to write shows in `finish` as well.
        let _ = writer.write_all(text.as_bytes());
        writer.finish()
    }

    #[track_caller]
    pub(crate) fn fail(&self, sql: &str, what: &str) -> ! {
        // A whole script may have failed; its beginning is enough to find it.
        let sql: String = sql.chars().take(1500).collect();
        panic!("{what}\n--- statement\n{sql}\n{}", tail(&self.log))
    }
}

/// The text of a row's columns; `None` for other messages.
pub fn row_text(message: &SimpleQueryMessage) -> Option<Vec<String>> {
    let SimpleQueryMessage::Row(row) = message else {
        return None;
    };
    let text = |n| row.get(n).unwrap_or("∅").to_owned();
    Some((0..row.len()).map(text).collect())
}

/// All fields of an error from the server, one a line, for comparisons.
///
/// # Panics
/// If the error is not the server's.
pub fn fields(error: &postgres::Error) -> Vec<String> {
    let db = error
        .as_db_error()
        .unwrap_or_else(|| panic!("not an error of the server: {error}"));
    let mut fields = vec![
        format!("severity {} {:?}", db.severity(), db.parsed_severity()),
        format!("sqlstate {}", db.code().code()),
        format!("message {}", db.message()),
        format!("position {:?}", db.position()),
        format!("line {:?}", db.line()),
    ];
    let others = [
        ("detail", db.detail()),
        ("hint", db.hint()),
        ("context", db.where_()),
        ("schema", db.schema()),
        ("table", db.table()),
        ("column", db.column()),
        ("datatype", db.datatype()),
        ("constraint", db.constraint()),
        ("file", db.file()),
        ("routine", db.routine()),
    ];
    fields.extend(others.map(|(name, value)| format!("{name} {value:?}")));
    fields
}

/// Whether an error is the end of the connection, or the refusal of one, because
/// the server is ending or starting; and not one of a statement's own.
pub fn is_disconnect(error: &postgres::Error) -> bool {
    match error.as_db_error() {
        Some(db) => [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
        ]
        .contains(db.code()),
        None => true,
    }
}

/// An error with what the server says of it.
pub fn describe(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!(
            "{} {}: {}{}{}",
            db.severity(),
            db.code().code(),
            db.message(),
            db.detail()
                .map(|d| format!("\nDETAIL: {d}"))
                .unwrap_or_default(),
            db.where_()
                .map(|w| format!("\nCONTEXT: {w}"))
                .unwrap_or_default(),
        ),
        None => error.to_string(),
    }
}
