//! The override inside a JSON document (D1-D3).

/// Reads the text of a JSON number as a row's TTL.
///
/// D2: it counts when it is a number without a fraction that fits an int32,
/// however it is written (`20`, `20.0`, `2e1`; jsonb stores the last as `20`).
/// D3: anything else, 0 and negatives other than -1 included, is ignored:
/// `None`, the row inherits.
pub(crate) fn ttl_of_number_text(number: &str) -> Option<i32> {
    int32_of_number_text(number).filter(|&ttl| ttl == -1 || ttl > 0)
}

/// Reads a JSON number that has no fraction and fits an int32, however it is written. Exact: a
/// double would round 20.00000000000000001 to 20.
pub(crate) fn int32_of_number_text(number: &str) -> Option<i32> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty()
        || !whole
            .chars()
            .chain(fraction.chars())
            .all(|c| c.is_ascii_digit())
    {
        return None;
    }
    // The value is `digits * 10^scale`, without zeros at either end.
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let dropped = i32::try_from(digits.len() - significant.len()).ok()?;
    let scale = exponent
        .checked_sub(i32::try_from(fraction.len()).ok()?)?
        .checked_add(dropped)?;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    // A negative scale is a fraction; an int32 has at most 10 digits.
    if !(0..=9).contains(&scale) || significant.len() > 10 {
        return None;
    }
    let value = significant
        .parse::<i64>()
        .ok()?
        .checked_mul(10_i64.pow(scale.unsigned_abs()))?;
    i32::try_from(if negative { -value } else { value }).ok()
}

#[cfg(test)]
mod tests {
    use super::ttl_of_number_text;
    use proptest::prelude::*;

    /// D2: numbers without a fraction that fit an int32.
    #[test]
    fn d2_counts() {
        for (text, ttl) in [
            ("20", 20),
            ("20.0", 20),
            ("2e1", 20),
            ("2E+1", 20),
            ("200e-1", 20),
            ("0.2e2", 20),
            ("-1", -1),
            ("-1.000", -1),
            ("1", 1),
            ("2147483647", i32::MAX),
            ("2147483647.00", i32::MAX),
        ] {
            assert_eq!(ttl_of_number_text(text), Some(ttl), "{text}");
        }
    }

    /// D3: accepted in the document and ignored.
    #[test]
    fn d3_is_ignored() {
        for text in [
            "20.5",
            "2147483648",
            "2147483649",
            "-2",
            "-2147483648",
            "0",
            "0.0",
            "-0",
            "1e10",
            "1e400",
            "2e-1",
            "1e99999999999",
            "",
            "-",
            "NaN",
            "Infinity",
            "20x",
            ".5",
            "1_0",
        ] {
            assert_eq!(ttl_of_number_text(text), None, "{text}");
        }
    }

    proptest! {
        /// Every way of writing a valid TTL is read as that TTL.
        #[test]
        fn d2_any_notation(ttl in 1i32.., zeros in 0usize..20) {
            prop_assert_eq!(ttl_of_number_text(&ttl.to_string()), Some(ttl));
            prop_assert_eq!(ttl_of_number_text(&format!("{ttl}.{}", "0".repeat(zeros))), Some(ttl));
            prop_assert_eq!(ttl_of_number_text(&format!("{ttl}{}e-{zeros}", "0".repeat(zeros))), Some(ttl));
            let with_fraction = format!("{ttl}.{}5", "0".repeat(zeros));
            prop_assert_eq!(ttl_of_number_text(&with_fraction), None);
        }

        /// No text makes it fail.
        #[test]
        fn d3_any_text(text in ".{0,40}") {
            let _ = ttl_of_number_text(&text);
        }
    }
}
