//! Numbers as the tables show them.

/// Thousands separated, no decimals: 69,865.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The middle value; of an even count the mean of the middle two. None of an empty list.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len().is_multiple_of(2) { Some((values.get(middle - 1)? + upper) / 2.0) } else { Some(upper) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        let shown: Vec<String> = [0.0, 999.4, 1000.0, 69_865.2, 1_234_567.0].map(grouped).into();
        assert_eq!(shown, ["0", "999", "1,000", "69,865", "1,234,567"]);
    }

    #[test]
    fn the_median_ignores_the_outlier() {
        assert_eq!(median(vec![3.0, 1.0, 1000.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 2.0]), Some(3.0));
        assert_eq!(median(Vec::new()), None);
    }
}
