//! Numbers of the hub's answers as people read them. What is not known is a dash.

use serde_json::Value;

const UNKNOWN: &str = "-";

/// A count.
pub(super) fn count(value: &Value) -> String {
    value.as_u64().map_or(UNKNOWN.to_owned(), |count| count.to_string())
}

/// A share from 0 to 1.
pub(super) fn percent(value: &Value) -> String {
    value.as_f64().map_or(UNKNOWN.to_owned(), |share| format!("{:.0}%", share * 100.0))
}

/// Milliseconds, in the unit that fits.
pub(super) fn duration(value: &Value) -> String {
    let Some(milliseconds) = value.as_f64() else { return UNKNOWN.to_owned() };
    match milliseconds {
        least if least < 1.0 => "<1ms".to_owned(),
        short if short < 1_000.0 => format!("{short:.0}ms"),
        seconds if seconds < 60_000.0 => format!("{:.1}s", seconds / 1_000.0),
        minutes => format!("{:.1}m", minutes / 60_000.0),
    }
}

/// US dollars: cents, or more digits where it is less than one.
pub(super) fn dollars(value: &Value) -> String {
    let Some(dollars) = value.as_f64() else { return UNKNOWN.to_owned() };
    match dollars {
        0.0 => "$0".to_owned(),
        small if small < 0.01 => format!("${small:.6}"),
        small if small < 1.0 => format!("${small:.4}"),
        other => format!("${other:.2}"),
    }
}

/// A text, or a dash if there is none.
pub(super) fn text(value: &Value) -> String {
    let text = super::sanitize::line(value.as_str().unwrap_or_default());
    if text.is_empty() { UNKNOWN.to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_have_the_unit_that_fits() {
        assert_eq!(
            [0.4, 999.0, 1_500.0, 90_000.0].map(|value| duration(&json!(value))),
            ["<1ms", "999ms", "1.5s", "1.5m"]
        );
        let costs = [0.0, 0.000_012, 0.25, 12.345].map(|value| dollars(&json!(value)));
        assert_eq!(costs, ["$0", "$0.000012", "$0.2500", "$12.35"]);
        assert_eq!((percent(&json!(0.915)), percent(&Value::Null)), ("92%".to_owned(), "-".to_owned()));
    }
}
