//! The plots, from the results alone.

mod curves;
mod ratios;

use std::path::Path;

use crate::results::Results;

/// The colours of lines and bars: told apart by those who do not see all colours, too.
const COLOURS: [plotters::style::RGBColor; 5] = [
    plotters::style::RGBColor(0x00, 0x72, 0xb2),
    plotters::style::RGBColor(0xd5, 0x5e, 0x00),
    plotters::style::RGBColor(0x00, 0x9e, 0x73),
    plotters::style::RGBColor(0xcc, 0x79, 0xa7),
    plotters::style::RGBColor(0x66, 0x66, 0x66),
];

/// All of them, into `<name>-*.svg`.
pub fn draw(results: &Results, out: &Path, name: &str) {
    ratios::draw(results, &out.join(format!("{name}-ratios.svg")));
    for benchmark in &results.benchmarks {
        for curve in &benchmark.curves {
            curves::draw(curve, &out.join(format!("{name}-{}.svg", curve.plot)));
        }
    }
}
