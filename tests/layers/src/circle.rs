//! Circles among files.

use crate::source::Source;
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use std::collections::BTreeSet;

/// A circle that is meant: the structure in shared memory has a field for the files that work with its parts
/// (docs/decisions/0030-rooms-in-a-stack.md).
const MEANT: &str = "worker/shared/";

/// The circles that are not meant, in words.
pub(crate) fn faults(circles: &[Circle]) -> Vec<String> {
    let is_meant = |circle: &&Circle| circle.files.iter().all(|file| file.starts_with(MEANT));
    let others = circles.iter().filter(|circle| !is_meant(circle));
    others
        .map(|circle| {
            format!(
                "files use each other in a circle: {}",
                circle.files.join(", ")
            )
        })
        .collect()
}

/// The files of each circle, sorted, and the uses within it; the largest circle first.
pub(crate) fn all(source: &Source) -> Vec<Circle> {
    let uses = source.between_files();
    let graph = DiGraph::<(), (), usize>::from_edges(&uses);
    let path = |file: usize| source.files[file].path.clone();
    let mut circles: Vec<Circle> = tarjan_scc(&graph)
        .into_iter()
        .filter(|circle| circle.len() > 1)
        .map(|circle| {
            let members: BTreeSet<usize> = circle.iter().map(|node| node.index()).collect();
            let within = uses
                .iter()
                .filter(|(from, to)| members.contains(from) && members.contains(to));
            let mut files: Vec<String> = members.iter().map(|&file| path(file)).collect();
            files.sort();
            Circle {
                files,
                uses: within.map(|&(from, to)| (path(from), path(to))).collect(),
            }
        })
        .collect();
    circles.sort_by(|a, b| {
        b.files
            .len()
            .cmp(&a.files.len())
            .then(a.files.cmp(&b.files))
    });
    circles
}

/// Files each of which uses, over others of them, all others.
pub(crate) struct Circle {
    pub(crate) files: Vec<String>,
    pub(crate) uses: Vec<(String, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::g;"),
            ("b.rs", "use super::a::f;"),
            ("c.rs", "use crate::{a, b};"),
        ];
        let [circle] = &all(&Source::of(&files))[..] else {
            panic!("one circle");
        };
        assert_eq!(circle.files, ["a.rs", "b.rs"]);
        assert_eq!(circle.uses.len(), 2);
        assert_eq!(faults(&all(&Source::of(&files))).len(), 1);
        let meant = [
            (
                "worker/shared/mod.rs",
                "mod part; use crate::worker::shared::part::Part;",
            ),
            (
                "worker/shared/part.rs",
                "use crate::worker::shared::control;",
            ),
        ];
        let meant = all(&Source::of(&meant));
        assert_eq!(meant.len(), 1);
        assert!(faults(&meant).is_empty());
        assert!(all(&Source::of(&files[2..])).is_empty());
    }
}
