//! Circles among files.

use crate::source::Source;
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;

/// The files of the largest circle; none if there is no circle.
pub(crate) fn largest(source: &Source) -> Vec<String> {
    let graph = DiGraph::<(), (), usize>::from_edges(source.between_files());
    let circles = tarjan_scc(&graph)
        .into_iter()
        .filter(|circle| circle.len() > 1);
    let largest = circles.max_by_key(Vec::len).unwrap_or_default();
    let mut paths: Vec<String> = largest
        .into_iter()
        .map(|node| source.files[node.index()].path.clone())
        .collect();
    paths.sort();
    paths
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
        assert_eq!(largest(&Source::of(&files)), ["a.rs", "b.rs"]);
        assert!(largest(&Source::of(&files[2..])).is_empty());
    }
}
