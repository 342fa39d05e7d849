//! The files of a crate, and which of them each one uses.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The rooms whose folders are rooms; `house` is that of a test.
const DIVIDED: &[&str] = &["api", "worker", "pg", "house"];

/// A file, its path relative to `src/`.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) room: String,
    pub(crate) text: String,
    /// The path of its module, from the crate's root.
    module: Vec<String>,
    /// Line, and what is named there, from the crate's root.
    names: Vec<(usize, Vec<String>)>,
}

/// A use of one room by another.
pub(crate) struct Use<'a> {
    pub(crate) path: &'a str,
    pub(crate) line: usize,
    pub(crate) room: &'a str,
    pub(crate) to_room: &'a str,
    pub(crate) name: String,
}

pub(crate) struct Source {
    pub(crate) files: Vec<File>,
}

impl Source {
    /// All files below `root`; an error that names the one that cannot be read.
    pub(crate) fn read(root: &Path) -> Result<Source, String> {
        let mut found = Vec::new();
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
            for entry in std::fs::read_dir(&folder).map_err(fault)? {
                let path = entry.map_err(fault)?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ext| ext == "rs") {
                    let text = std::fs::read_to_string(&path).map_err(fault)?;
                    let name = path.strip_prefix(root).unwrap_or(&path);
                    found.push((name.to_string_lossy().into_owned(), text));
                }
            }
        }
        found.sort();
        let files = found
            .into_iter()
            .map(|(path, text)| File::parse(&path, text));
        Ok(Source {
            files: files.collect::<Result<_, _>>()?,
        })
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Source {
        let files = files
            .iter()
            .map(|(path, text)| File::parse(path, text.to_string()));
        Source {
            files: files.collect::<Result<_, _>>().expect("Rust"),
        }
    }

    /// Each use of one room by another, once a line.
    pub(crate) fn between_rooms(&self) -> Vec<Use<'_>> {
        let rooms: BTreeSet<&str> = self.files.iter().map(|file| file.room.as_str()).collect();
        let mut uses = Vec::new();
        for file in &self.files {
            let mut seen = BTreeSet::new();
            for (line, name) in &file.names {
                // `pub(in crate::room)` uses nothing.
                if matches!(name.as_slice(), [room] if DIVIDED.contains(&room.as_str())) {
                    continue;
                }
                let within = name.iter().take(2).map(String::as_str).collect::<Vec<_>>();
                let to_room = rooms
                    .get(within.join("/").as_str())
                    .or_else(|| rooms.get(*within.first()?));
                let Some(to_room) = to_room else { continue };
                if *to_room != file.room && seen.insert((line, to_room)) {
                    uses.push(Use {
                        path: &file.path,
                        line: *line,
                        room: &file.room,
                        to_room,
                        name: name.join("::"),
                    });
                }
            }
        }
        uses
    }

    /// The files that each file uses, by their numbers; tests left out.
    pub(crate) fn between_files(&self) -> Vec<(usize, usize)> {
        let numbers: BTreeMap<&[String], usize> = self
            .files
            .iter()
            .enumerate()
            .map(|(number, file)| (file.module.as_slice(), number))
            .collect();
        let mut uses = BTreeSet::new();
        for (from, file) in self.files.iter().enumerate() {
            if file.room == "tests" {
                continue;
            }
            for (_, name) in &file.names {
                // The longest part of it that is a file, if it is more than the root.
                let to = (1..=name.len()).rev().find_map(|n| numbers.get(&name[..n]));
                if let Some(&to) = to
                    && to != from
                    && self.files[to].room != "tests"
                {
                    uses.insert((from, to));
                }
            }
        }
        uses.into_iter().collect()
    }
}

impl File {
    fn parse(path: &str, text: String) -> Result<File, String> {
        let mut module: Vec<String> = path
            .trim_end_matches(".rs")
            .split('/')
            .map(String::from)
            .collect();
        let is_test = module
            .iter()
            .any(|part| part == "tests" || part.ends_with("_test"));
        if module
            .last()
            .is_some_and(|last| last == "mod" || last == "lib")
        {
            module.pop();
        }
        let is_of_a_folder = path.matches('/').count() > 1;
        let room = match module.as_slice() {
            _ if is_test => "tests".to_owned(),
            [] => "lib".to_owned(),
            [room, inner, ..] if is_of_a_folder && DIVIDED.contains(&room.as_str()) => {
                format!("{room}/{inner}")
            }
            [room, ..] => room.clone(),
        };
        let tokens: TokenStream = text.parse().map_err(|error| format!("{path}: {error}"))?;
        let mut names = Vec::new();
        collect(tokens, &module, &mut names);
        Ok(File {
            path: path.to_string(),
            room,
            text,
            module,
            names,
        })
    }
}

/// Everything in `tokens` that is named by a path from `crate`, `self` or `super`.
fn collect(tokens: TokenStream, module: &[String], names: &mut Vec<(usize, Vec<String>)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => {
                // `mod tests { … }` for tests is a test.
                match inline_module(&tokens[..at]) {
                    Some(name) if group.delimiter() == Delimiter::Brace => {
                        if name != "tests" {
                            let inner = [module, &[name]].concat();
                            collect(group.stream(), &inner, names);
                        }
                    }
                    _ => collect(group.stream(), module, names),
                }
                at += 1;
            }
            TokenTree::Ident(ident) if follows_colons(&tokens[..at]) || !is_path(&tokens[at..]) => {
                let _ = ident;
                at += 1;
            }
            TokenTree::Ident(ident) => {
                let start = match ident.to_string().as_str() {
                    "crate" => Some(Vec::new()),
                    "self" => Some(module.to_vec()),
                    "super" => Some(module[..module.len().saturating_sub(1)].to_vec()),
                    _ => None,
                };
                at += 1;
                if let Some(start) = start {
                    at = path(&tokens, at, start, names);
                }
            }
            _ => at += 1,
        }
    }
}

/// What comes after the beginning of a path, from its `::`; where it ends.
fn path(
    tokens: &[TokenTree],
    mut at: usize,
    mut name: Vec<String>,
    names: &mut Vec<(usize, Vec<String>)>,
) -> usize {
    let mut line = 0;
    while is_colons(&tokens[at..]) {
        match tokens.get(at + 2) {
            Some(TokenTree::Ident(ident)) => {
                line = ident.span().start().line;
                step(&mut name, &ident.to_string());
                at += 3;
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                tree(group.stream(), &name, names);
                return at + 3;
            }
            _ => {
                at += 2;
                break;
            }
        }
    }
    names.push((line, name));
    at
}

/// The names in `{a, b::c, d::{e}}`, which all begin with `name`.
fn tree(tokens: TokenStream, name: &[String], names: &mut Vec<(usize, Vec<String>)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        if let TokenTree::Ident(ident) = &tokens[at] {
            let mut whole = name.to_vec();
            step(&mut whole, &ident.to_string());
            let line = ident.span().start().line;
            at += 1;
            if is_colons(&tokens[at..]) {
                at = path(&tokens, at, whole, names);
            } else {
                names.push((line, whole));
            }
        }
        // On to the next, past `as other`.
        while at < tokens.len() && !is_punct(&tokens[at], ',') {
            at += 1;
        }
        at += 1;
    }
}

fn step(name: &mut Vec<String>, part: &str) {
    match part {
        "self" => {}
        "super" => {
            name.pop();
        }
        _ => name.push(part.to_string()),
    }
}

fn inline_module(before: &[TokenTree]) -> Option<String> {
    match before {
        [.., TokenTree::Ident(keyword), TokenTree::Ident(name)] if keyword == "mod" => {
            Some(name.to_string())
        }
        _ => None,
    }
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [a, b, ..] if is_punct(a, ':') && is_punct(b, ':'))
}

fn follows_colons(before: &[TokenTree]) -> bool {
    matches!(before, [.., a, b] if is_punct(a, ':') && is_punct(b, ':'))
}

fn is_path(tokens: &[TokenTree]) -> bool {
    tokens.len() > 1 && is_colons(&tokens[1..])
}
