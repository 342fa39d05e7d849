//! `ttl_schema LIBRARY CONTROL_FILE`: writes the extension's installation script to standard
//! output.
//!
//! pgrx's macros leave a description of each SQL object in a section of the library, from
//! which pgrx's own crate makes the script. `cargo pgrx schema` does the same, but is a part
//! of a program that takes longer to build than all the rest (decision 0057).

use object::{Object, ObjectSection};
use pgrx_sql_entity_graph::section::{ELF_SECTION_NAME, decode_entities};
use pgrx_sql_entity_graph::{ControlFile, PgrxSql, SqlGraphEntity};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [library, control] = arguments.as_slice() else {
        eprintln!("usage: ttl_schema LIBRARY CONTROL_FILE");
        return ExitCode::from(2);
    };
    let written = script(Path::new(library), Path::new(control)).and_then(|script| {
        let mut out = std::io::stdout().lock();
        out.write_all(script.as_bytes())
            .and_then(|()| out.flush())
            .map_err(|e| e.to_string())
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ttl_schema: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The script of the extension that the control file is named after.
fn script(library: &Path, control: &Path) -> Result<String, String> {
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let bytes = read(library)?;
    let text = String::from_utf8(read(control)?).map_err(|e| e.to_string())?;
    let name = control
        .file_stem()
        .and_then(|name| name.to_str())
        .ok_or("no control file")?;
    let control = ControlFile::from_str(&text).map_err(|e| e.to_string())?;
    // Without that, PostgreSQL looks for a library with the version in its name.
    let versioned = control.module_pathname.is_none();
    let mut entities = vec![SqlGraphEntity::ExtensionRoot(control)];
    entities.extend(decode_entities(section(&bytes)?).map_err(|e| format!("{e:#}"))?);
    PgrxSql::build(entities.into_iter(), name.to_owned(), versioned)
        .and_then(|sql| sql.to_sql())
        .map_err(|e| format!("{e:#}"))
}

/// What pgrx's macros have left in the library.
fn section(library: &[u8]) -> Result<&[u8], String> {
    let file = object::File::parse(library).map_err(|e| format!("not a library: {e}"))?;
    let section = file.section_by_name(ELF_SECTION_NAME).ok_or_else(|| {
        format!("the library has no section {ELF_SECTION_NAME}: was it stripped?")
    })?;
    section.data().map_err(|e| e.to_string())
}
