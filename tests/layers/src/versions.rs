//! Conditions on PostgreSQL's version.

use crate::source::Source;

/// Each condition on the feature of one version. It says nothing about the version that comes next; `build.rs`
/// gives the conditions `since16`, `since17` and so on.
pub(crate) fn faults(source: &Source) -> Vec<String> {
    let mut faults = Vec::new();
    for file in &source.files {
        for (number, line) in file.text.lines().enumerate() {
            if line.contains("feature = \"pg1") {
                let (path, number) = (&file.path, number + 1);
                faults.push(format!(
                    "{path}:{number}: a condition on one version: write cfg(sinceNN) or cfg(not(sinceNN))"
                ));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version() {
        for text in [
            "#[cfg(feature = \"pg18\")]\nfn f() {}",
            "#[cfg(any(not(feature = \"pg19\"), test))]\nfn f() {}",
            "fn f() -> bool { cfg!(feature = \"pg17\") }",
        ] {
            assert_eq!(faults(&Source::of(&[("a.rs", text)])).len(), 1, "{text}");
        }
    }

    #[test]
    fn since() {
        let text = "#[cfg(since18)]\nfn f() -> bool { cfg!(not(since19)) }\n#[cfg(feature = \"pg_test\")]\nmod a {}";
        assert!(faults(&Source::of(&[("a.rs", text)])).is_empty());
    }
}
