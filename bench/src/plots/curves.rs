//! A plot of lines.

use std::path::Path;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use super::COLOURS;
use crate::results::Curve;

/// Draws it, from zero upwards.
pub fn draw(curve: &Curve, path: &Path) {
    let points = curve.lines.iter().flat_map(|(_, points)| points);
    let (mut least, mut most, mut top) = (f64::INFINITY, f64::NEG_INFINITY, 0.0_f64);
    for (x, y) in points {
        least = least.min(*x);
        most = most.max(*x);
        top = top.max(*y);
    }
    if least > most {
        return;
    }
    let area = SVGBackend::new(path, (900, 480)).into_drawing_area();
    area.fill(&WHITE).expect("an SVG file");
    let top = if top > 0.0 { top * 1.05 } else { 1.0 };
    if curve.x_log {
        lines(&area, curve, (least * 0.8..most * 1.25).log_scale(), top);
    } else {
        let room = if most > least { most } else { least + 1.0 };
        lines(&area, curve, least.min(0.0)..room, top);
    }
    area.present().expect("an SVG file");
}

fn lines<X>(area: &DrawingArea<SVGBackend, Shift>, curve: &Curve, x: X, top: f64)
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .caption(&curve.title, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(x, 0.0..top)
        .expect("axes");
    chart
        .configure_mesh()
        .max_light_lines(1)
        .x_desc(&curve.x)
        .y_desc(&curve.y)
        .draw()
        .expect("a mesh");
    for (n, (name, points)) in curve.lines.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        chart
            .draw_series(LineSeries::new(
                points.iter().copied(),
                colour.stroke_width(2),
            ))
            .expect("a line")
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
        // A line of few points shows which they are.
        if points.len() <= 20 {
            let dots = points.iter().map(|at| Circle::new(*at, 3, colour.filled()));
            chart.draw_series(dots).expect("dots");
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
        .expect("a legend");
}
