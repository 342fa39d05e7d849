//! The pages of `docs/tools` show the very code that `make test-ecosystem` runs.

use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Fenced blocks, each with the line that leads to it.
fn blocks(text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    let mut before = "";
    for line in text.lines() {
        match &mut block {
            None if line.starts_with("```") => block = Some(String::new()),
            None if line.is_empty() => {}
            None => before = line,
            Some(code) if line == "```" => {
                found.push((before, std::mem::take(code)));
                block = None;
            }
            Some(code) => {
                code.push_str(line);
                code.push('\n');
            }
        }
    }
    assert!(block.is_none(), "a block without an end");
    found
}

/// The file that a line names last: `… tests/ecosystem/NAME`, in backticks.
fn named_last(line: &str) -> Option<&str> {
    let mut names = line.rsplit('`').skip(1).step_by(2);
    names.find(|name| name.starts_with("tests/ecosystem/"))
}

#[test]
fn pages_of_tools_show_what_is_run() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for entry in std::fs::read_dir(root().join("docs/tools")).expect("docs/tools") {
        let page = entry.expect("a page").path();
        let text = std::fs::read_to_string(&page).expect("a page");
        for (before, code) in blocks(&text) {
            let shown = named_last(before)
                .and_then(|name| std::fs::read_to_string(root().join(name)).ok())
                .is_some_and(|file| file.contains(&code));
            if shown {
                compared += 1;
            } else {
                wrong.push(format!("{}, after {before:?}:\n{code}", page.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "not in the file named:\n{}",
        wrong.join("\n")
    );
    assert!(compared > 10, "{compared} blocks");
}
