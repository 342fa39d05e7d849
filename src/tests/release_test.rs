//! What a release consists of besides the source: PGXN's metadata by its specification 1.0.0, and
//! files that name the versions which the documents promise.

use std::path::Path;

use serde_json::{Map, Value};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// As `scripts/dist.sh` makes it.
fn meta() -> Map<String, Value> {
    let text = read("META.json.in").replace("@CARGO_VERSION@", env!("CARGO_PKG_VERSION"));
    serde_json::from_str(&text).expect("META.json.in is a JSON object")
}

fn object<'a>(of: &'a Map<String, Value>, key: &str) -> &'a Map<String, Value> {
    of.get(key)
        .and_then(Value::as_object)
        .unwrap_or_else(|| panic!("{key} is an object"))
}

fn text<'a>(of: &'a Map<String, Value>, key: &str) -> &'a str {
    let text = of.get(key).and_then(Value::as_str);
    let text = text.unwrap_or_else(|| panic!("{key} is a string"));
    assert!(!text.is_empty(), "{key} is empty");
    text
}

/// X.Y.Z, of numbers without leading zeros, and what a pre-release may append.
fn is_semantic_version(version: &str) -> bool {
    let (numbers, _) = version.split_once(['-', '+']).unwrap_or((version, ""));
    let numbers: Vec<&str> = numbers.split('.').collect();
    let is_number = |n: &&str| n.parse::<u32>().is_ok_and(|value| value.to_string() == **n);
    numbers.len() == 3 && numbers.iter().all(is_number)
}

#[test]
fn pgxn_metadata_have_what_is_required() {
    let meta = meta();
    for key in ["name", "abstract", "maintainer", "license", "version"] {
        text(&meta, key);
    }
    // A term: two characters or more, none of them a blank, a slash or a control.
    let name = text(&meta, "name");
    assert!(name.len() > 1 && !name.contains(|c: char| c.is_whitespace() || "/\\".contains(c)));
    assert_eq!(text(&meta, "license"), "postgresql");
    assert_eq!(text(&meta, "version"), env!("CARGO_PKG_VERSION"));
    assert!(is_semantic_version(text(&meta, "version")));
    let spec = object(&meta, "meta-spec");
    assert_eq!(text(spec, "version"), "1.0.0");
    assert_eq!(text(spec, "url"), "https://pgxn.org/meta/spec.txt");
}

#[test]
fn pgxn_metadata_have_no_other_keys() {
    const OPTIONAL: &[&str] = &[
        "description",
        "release_status",
        "prereqs",
        "tags",
        "provides",
    ];
    const REQUIRED: &[&str] = &[
        "name",
        "abstract",
        "maintainer",
        "license",
        "version",
        "meta-spec",
    ];
    for key in meta().keys().map(String::as_str) {
        let known = OPTIONAL.contains(&key) || REQUIRED.contains(&key);
        assert!(known, "{key} is no key of the specification");
    }
    let status = meta();
    assert!(["stable", "testing", "unstable"].contains(&text(&status, "release_status")));
}

#[test]
fn pgxn_metadata_name_files_that_are_there() {
    let meta = meta();
    let provides = object(&meta, "provides");
    assert_eq!(provides.keys().collect::<Vec<_>>(), ["ttl_ext"]);
    for name in provides.keys() {
        let extension = object(provides, name);
        assert_eq!(text(extension, "version"), env!("CARGO_PKG_VERSION"));
        for file in ["file", "docfile"] {
            read(text(extension, file));
        }
    }
    let requires = object(object(object(&meta, "prereqs"), "runtime"), "requires");
    assert_eq!(text(requires, "PostgreSQL"), "15.0.0");
}

/// Rust 1.96 is what the README asks for, and what images and public CI have.
#[test]
fn one_version_of_rust() {
    let readme = read("README.md");
    let (_, version) = readme.split_once("Rust ").expect("the README names it");
    let version = version.split_whitespace().next().expect("a version");
    let version = version.trim_end_matches([':', ',', '.']);
    for file in ["packaging/docker/Dockerfile", ".github/workflows/ci.yml"] {
        let image = format!("rust:{version}-");
        assert!(read(file).contains(&image), "{file} has no {image}");
    }
}

#[test]
fn the_image_copies_files_that_are_there() {
    let dockerfile = read("packaging/docker/Dockerfile");
    let copies = dockerfile
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "));
    let ours = copies.filter(|copy| !copy.starts_with("--from=") && !copy.starts_with(". "));
    let ours: Vec<&str> = ours.filter_map(|copy| copy.split(' ').next()).collect();
    assert_eq!(ours.len(), 1, "{ours:?}");
    for file in ours {
        read(file);
    }
}

/// An action is what its hash says, not what its author moves a tag to.
#[test]
fn actions_are_pinned() {
    let workflow = read(".github/workflows/ci.yml");
    let mut actions = 0;
    for line in workflow.lines().filter(|line| line.contains("uses:")) {
        let (_, action) = line.split_once("uses:").expect("it has");
        let action = action.split('#').next().unwrap_or_default().trim();
        let (_, commit) = action.split_once('@').unwrap_or_default();
        let is_hash = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
        assert!(is_hash, "{action} is not pinned");
        actions += 1;
    }
    assert!(actions > 0);
    assert!(workflow.contains("run: .ci/run"));
}
