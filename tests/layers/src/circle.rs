//! Circles among files.

use crate::source::Source;
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use std::collections::BTreeSet;

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
        assert!(all(&Source::of(&files[2..])).is_empty());
    }
}
