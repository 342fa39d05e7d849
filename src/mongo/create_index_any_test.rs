//! M1, M7, M12: `ttl.create_index` with any numbers, names and texts.

use super::create_index_command_test::seconds;
use super::*;
use proptest::prelude::*;

proptest! {
    /// M1: every value of the range, in any notation.
    #[test]
    fn m1_any_notation(value in 0i32.., zeros in 0usize..20) {
        let zeros_text = "0".repeat(zeros);
        for text in [
            value.to_string(),
            format!("{value}.0{zeros_text}"),
            format!("{value}{zeros_text}e-{zeros}"),
        ] {
            prop_assert_eq!(seconds(&text).unwrap().for_index(), Ok(value));
        }
        let fraction = seconds(&format!("{value}.{zeros_text}5"));
        prop_assert_eq!(fraction.unwrap_err().field, "options.expireAfterSeconds");
    }

    /// M12: nothing beyond the range is taken, and nothing is taken for another value.
    #[test]
    fn m12_any_number(value in any::<f64>().prop_filter("JSON has these only", |f| f.is_finite())) {
        match seconds(&value.to_string()) {
            Ok(seconds) => prop_assert_eq!(f64::from(seconds.for_default().unwrap_or(0)), value),
            Err(error) => prop_assert_eq!(error.field, "options.expireAfterSeconds"),
        }
    }

    /// M7: names come through as they are, whatever they contain.
    #[test]
    fn m7_any_name(column in "[^\u{0}]{1,15}", name in "[^\u{0}]{1,15}") {
        let keys = serde_json::json!({column.as_str(): 1}).to_string();
        let options = serde_json::json!({"expireAfterSeconds": 1, "name": name}).to_string();
        let index = CreateIndex::parse(&keys, &options).unwrap();
        prop_assert_eq!((index.column, index.name), (column, Some(name)));
    }

    /// M7: every field but those that are known is refused by its name.
    #[test]
    fn m7_any_unknown_option(name in "[a-zA-Z$_]{1,20}") {
        const KNOWN: [&str; 9] = [
            "expireAfterSeconds", "name", "partialFilterExpression", "unique", "key", "v", "background", "ns", "sparse",
        ];
        prop_assume!(!KNOWN.contains(&name.as_str()));
        let options = serde_json::json!({"expireAfterSeconds": 1, name.as_str(): 1}).to_string();
        let error = CreateIndex::parse(r#"{"a": 1}"#, &options).unwrap_err();
        prop_assert_eq!(error.field, format!("options.{name}"));
    }

    /// No text makes it fail otherwise than by an error.
    #[test]
    fn m12_any_text(keys in ".{0,40}", options in ".{0,40}") {
        let _ = CreateIndex::parse(&keys, &options);
        let _ = CreateIndex::parse(r#"{"a": 1}"#, &options);
    }
}
