//! Between the database's encoding and Rust's strings, which are UTF-8.
//!
//! All text to and from PostgreSQL passes here: names, labels, queries, results. In a UTF-8
//! database, and for ASCII text, nothing is converted. Nothing here raises an error, but [`query`] and [`given`].
//!
//! In SQL_ASCII PostgreSQL takes bytes as they are; here they are read as LATIN1, so that every
//! name keeps its bytes.

use crate::error::Error;
use pgrx::pg_sys::{self, pg_enc};
use pgrx::{PgSqlErrorCode, Spi, spi};
use std::ffi::{CStr, CString};

fn database() -> pg_enc::Type {
    // SAFETY: reads a variable that only this process writes.
    unsafe { pg_sys::GetDatabaseEncoding() }.cast_unsigned()
}

/// Text from PostgreSQL. A character without an equivalent is replaced by one that no name in
/// such a database has.
pub(crate) fn from_server(text: &CStr) -> String {
    let bytes = text.to_bytes();
    match database() {
        pg_enc::PG_UTF8 => String::from_utf8_lossy(bytes).into_owned(),
        _ if bytes.is_ascii() => String::from_utf8_lossy(bytes).into_owned(),
        pg_enc::PG_SQL_ASCII | pg_enc::PG_LATIN1 => bytes.iter().copied().map(char::from).collect(),
        encoding => decoded(bytes, encoding),
    }
}

/// As [`from_server`].
///
/// # Safety
/// A C string.
pub(crate) unsafe fn from_pointer(text: *const core::ffi::c_char) -> String {
    // SAFETY: as required of the caller.
    from_server(unsafe { CStr::from_ptr(text) })
}

/// As [`from_server`]; `None` for null.
///
/// # Safety
/// A C string or null.
pub(crate) unsafe fn from_nullable(text: *const core::ffi::c_char) -> Option<String> {
    // SAFETY: as required of the caller.
    (!text.is_null()).then(|| unsafe { from_pointer(text) })
}

/// As [`from_server`], of bytes without a 0.
pub(crate) fn from_bytes(bytes: Vec<u8>) -> String {
    CString::new(bytes).map_or(String::new(), |text| from_server(&text))
}

/// The longest text, in bytes, that is taken from a user's statement: far longer than any that is written by hand.
const LONGEST: usize = 1024 * 1024;

/// As [`from_server`], of what a user's statement gives. Raises 54000 for a text that is longer than
/// [`LONGEST`], before anything of it is copied: memory that Rust cannot get ends the process, and with it
/// all sessions.
pub(crate) fn given(text: &CStr) -> String {
    check_length(text.count_bytes());
    from_server(text)
}

/// Raises the same error for a value of a type of variable length.
///
/// # Safety
/// A varlena.
pub(crate) unsafe fn check_given(value: pg_sys::Datum) {
    // SAFETY: as required of the caller; reads the header, and counts its four bytes.
    check_length(unsafe { pg_sys::toast_raw_datum_size(value) }.saturating_sub(4));
}

fn check_length(bytes: usize) {
    if bytes > LONGEST {
        Error::new(
            PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            "text is too long",
        )
        .detail(format!(
            "It has {bytes} bytes; it may have {LONGEST} at most."
        ))
        .raise()
    }
}

/// PostgreSQL's hash of bytes in the database's encoding.
pub(crate) fn hash(bytes: &[u8]) -> u32 {
    let count = i32::try_from(bytes.len()).unwrap_or(0);
    // SAFETY: the slice has `count` bytes, and none is read if that is 0.
    unsafe { super::externs::hash_bytes(bytes.as_ptr(), count) }
}

/// How many of the bytes, up to a limit, are whole characters of the database's encoding.
pub(crate) fn clip(bytes: &[u8], limit: usize) -> usize {
    let number = |count| i32::try_from(count).unwrap_or(0);
    // SAFETY: the slice has that number of bytes, which the function does not change.
    let clipped =
        unsafe { pg_sys::pg_mbcliplen(bytes.as_ptr().cast(), number(bytes.len()), number(limit)) };
    usize::try_from(clipped).unwrap_or(0)
}

/// As [`from_server`], of a value of type text.
///
/// # Safety
/// A varlena of a text type.
pub(crate) unsafe fn from_datum(text: pg_sys::Datum) -> String {
    // SAFETY: as required of the caller; what was allocated is freed.
    unsafe {
        let copy = pg_sys::text_to_cstring(text.cast_mut_ptr());
        let text = from_pointer(copy);
        pg_sys::pfree(copy.cast());
        text
    }
}

/// Text for PostgreSQL; `None` if the database's encoding lacks one of its characters, so that
/// nothing in the database can have that name.
pub(crate) fn to_server(text: &str) -> Option<CString> {
    let encoding = database();
    if encoding == pg_enc::PG_UTF8 || text.is_ascii() {
        return CString::new(text).ok();
    }
    let bytes = match encoding {
        pg_enc::PG_SQL_ASCII | pg_enc::PG_LATIN1 => {
            let byte = |letter| u8::try_from(u32::from(letter)).ok();
            text.chars().map(byte).collect::<Option<Vec<u8>>>()?
        }
        encoding => convert(text.as_bytes(), pg_enc::PG_UTF8, encoding)
            .filter(|(_, done)| *done == text.len())
            .map(|(bytes, _)| bytes)?,
    };
    CString::new(bytes).ok()
}

/// The text of a query. Raises 22P05 if the database's encoding lacks one of its characters: a
/// replacement might name another object.
pub(crate) fn query(text: &str) -> CString {
    to_server(text).unwrap_or_else(|| {
        Error::new(
            PgSqlErrorCode::ERRCODE_UNTRANSLATABLE_CHARACTER,
            "a name has a character that the encoding of the database lacks",
        )
        .detail(format!("The statement is: {text}."))
        .hint("Name objects of this database as it can hold their names.")
        .raise()
    })
}

/// Runs a statement of the extension.
pub(crate) fn run(text: &str) -> Result<(), spi::Error> {
    Spi::connect_mut(|client| client.update(&query(text), None, &[]).map(|_| ()))
}

/// Runs a query by SPI that returns one truth value.
pub(crate) fn first_bool(text: &str) -> Result<Option<bool>, spi::Error> {
    Spi::connect_mut(|client| {
        let text = query(text);
        client
            .update(&text, Some(1), &[])?
            .first()
            .get_one::<bool>()
    })
}

/// Text for display: a question mark replaces what the database's encoding lacks.
pub(crate) fn shown(text: &str) -> CString {
    to_server(text).unwrap_or_else(|| {
        let bytes = text.chars().flat_map(|letter| {
            let known = to_server(letter.encode_utf8(&mut [0; 4])).map(CString::into_bytes);
            known.unwrap_or_else(|| vec![b'?'])
        });
        CString::new(bytes.collect::<Vec<u8>>()).unwrap_or_default()
    })
}

/// Text for an error message, which pgrx passes in UTF-8 always. Where that would be misread,
/// characters other than ASCII are written as numbers.
pub(crate) fn for_message(text: String) -> String {
    if text.is_ascii() || database() == pg_enc::PG_UTF8 {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_ascii() {
            plain.push(letter);
        } else {
            plain.push_str(&format!("\\u{:04x}", u32::from(letter)));
        }
    }
    plain
}

/// Decodes text from an encoding by a conversion function.
fn decoded(bytes: &[u8], encoding: pg_enc::Type) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some((converted, done)) = convert(rest, encoding, pg_enc::PG_UTF8) else {
            return bytes.iter().map(|_| char::REPLACEMENT_CHARACTER).collect();
        };
        text.push_str(&String::from_utf8_lossy(&converted));
        rest = rest.get(done..).unwrap_or_default();
        if !rest.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &rest[1..];
        }
    }
    text
}

/// The bytes in the other encoding, as far as they can be converted, and how many were. `None`
/// if no conversion function exists, or none can be called.
fn convert(bytes: &[u8], from: pg_enc::Type, to: pg_enc::Type) -> Option<(Vec<u8>, usize)> {
    let (from, to) = (from.cast_signed(), to.cast_signed());
    // SAFETY: reads a variable that only this process writes.
    if !unsafe { pg_sys::IsTransactionState() } {
        return None;
    }
    // A UTF-8 character has at most four bytes, as in other encodings; the last byte ends the
    // text.
    let mut converted = vec![0_u8; bytes.len() * 4 + 1];
    let (length, room) = (
        i32::try_from(bytes.len()).ok()?,
        i32::try_from(converted.len()).ok()?,
    );
    // SAFETY: within a transaction; the function writes within `room`, and only reads the
    // text; it raises no error for what it cannot convert.
    let done = unsafe {
        let function = pg_sys::FindDefaultConversionProc(from, to);
        if function == pg_sys::InvalidOid {
            return None;
        }
        pg_sys::pg_do_encoding_conversion_buf(
            function,
            from,
            to,
            bytes.as_ptr().cast_mut(),
            length,
            converted.as_mut_ptr(),
            room,
            true,
        )
    };
    let end = converted.iter().position(|&byte| byte == 0)?;
    converted.truncate(end);
    Some((converted, usize::try_from(done).ok()?.min(bytes.len())))
}
