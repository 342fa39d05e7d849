//! Medians and spreads.

/// A quantile by the nearest rank's neighbours, interpolated: 0.5 is the median.
///
/// # Panics
/// Without values.
pub fn quantile(values: &[f64], at: f64) -> f64 {
    assert!(!values.is_empty(), "no values");
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = at * (sorted.len() - 1) as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    below + (above - below) * place.fract()
}

/// The median.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// A number for people: three to four digits that count, thousands apart.
pub fn show(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    let start = whole.starts_with('-').into();
    for (n, c) in whole.char_indices() {
        if n > start && (whole.len() - n).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(c);
    }
    if fraction.is_empty() {
        grouped
    } else {
        format!("{grouped}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.25), 2.0);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(show(1_234_567.8), "1,234,568");
        assert_eq!(show(-1_234.5), "-1,234");
        assert_eq!(show(999.4), "999");
        assert_eq!(show(12.34), "12.3");
        assert_eq!(show(0.0456), "0.046");
    }
}
