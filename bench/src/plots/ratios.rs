//! All comparisons that have a target, in one plot: ratio, spread and target. But for one
//! that asks for another order of magnitude, which would leave no room for the others.

use std::path::Path;

use plotters::prelude::*;

use super::COLOURS;
use crate::numbers::{median, quantile};
use crate::results::{Results, Row as Comparison, Target};

const LINE: usize = 26;

/// Ratios are of very different sizes: so the axis is logarithmic.
pub fn draw(results: &Results, path: &Path) {
    let rows: Vec<(String, &Comparison)> = results
        .benchmarks
        .iter()
        .flat_map(|benchmark| benchmark.rows.iter().map(|row| (benchmark.id.clone(), row)))
        .filter(|(_, row)| !row.ratios().is_empty() && limit(row).is_some_and(|at| at > 0.1))
        .collect();
    if rows.is_empty() {
        return;
    }
    let height = (rows.len() * LINE + 90) as u32;
    let area = SVGBackend::new(path, (1100, height)).into_drawing_area();
    area.fill(&WHITE).expect("an SVG file");
    let ratios = rows.iter().flat_map(|(_, row)| row.ratios());
    let limits = rows.iter().filter_map(|(_, row)| limit(row));
    let (least, most) = ratios
        .chain(limits)
        .fold((0.5_f64, 2.0_f64), |(least, most), v| {
            (least.min(v), most.max(v))
        });
    let count = rows.len() as i32;
    let mut chart = ChartBuilder::on(&area)
        .caption(
            "ttl_ext : baseline (dot: median, bar: least to greatest, green: target)",
            ("sans-serif", 16),
        )
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(560)
        .build_cartesian_2d((least * 0.9..most * 1.1).log_scale(), -1..count)
        .expect("axes");
    let label = |n: &i32| {
        let row = usize::try_from(count - 1 - *n)
            .ok()
            .and_then(|n| rows.get(n));
        row.map_or_else(String::new, |(id, row)| {
            format!("{id} {} / {}", row.what, row.baseline_name)
        })
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(rows.len() + 2)
        .y_label_formatter(&label)
        .y_label_style(("sans-serif", 11))
        .x_label_formatter(&|v| format!("{v:.2}"))
        .draw()
        .expect("a mesh");
    for (n, (_, row)) in rows.iter().enumerate() {
        let y = count - 1 - n as i32;
        let ratios = row.ratios();
        let colour = if row.met() == Some(true) {
            COLOURS[0]
        } else {
            COLOURS[1]
        };
        let bar = [(quantile(&ratios, 0.0), y), (quantile(&ratios, 1.0), y)];
        let dot = Circle::new((median(&ratios), y), 4, colour.filled());
        let wanted = limit(row).map(|at| TriangleMarker::new((at, y), 6, COLOURS[2].filled()));
        chart
            .draw_series([PathElement::new(bar, colour.stroke_width(2))])
            .expect("a bar");
        chart.draw_series([dot]).expect("a dot");
        chart.draw_series(wanted).expect("a target");
    }
    area.present().expect("an SVG file");
}

fn limit(row: &Comparison) -> Option<f64> {
    match row.target? {
        Target::AtMost(limit) | Target::AtLeast(limit) | Target::Above(limit) => Some(limit),
        Target::ValueAtMost(_) => None,
    }
}
