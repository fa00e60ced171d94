//! One field of a cron expression: lists, ranges and steps of numbers or names.

use super::CronError;

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// What a field is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    /// From Sunday on, which is 0 and 7.
    Weekday,
}

/// The values that a field allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldSet {
    /// A bit for each.
    bits: u64,
    /// Whether it was written with `*`.
    starred: bool,
}

impl FieldSet {
    pub(super) fn has(self, value: u8) -> bool {
        1_u64.checked_shl(u32::from(value)).is_some_and(|bit| self.bits & bit != 0)
    }

    /// The first allowed value that is not before another one.
    pub(super) fn at_or_after(self, value: u8) -> Option<u8> {
        let rest = self.bits & u64::MAX.checked_shl(u32::from(value))?;
        (rest != 0).then(|| u8::try_from(rest.trailing_zeros()).ok()).flatten()
    }

    pub(super) fn is_starred(self) -> bool {
        self.starred
    }

    /// Whether every value is allowed.
    pub(super) fn is_full(self, kind: FieldKind) -> bool {
        let (first, last) = kind.range();
        (first..=last).all(|value| self.has(value))
    }
}

impl FieldKind {
    fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
            Self::Weekday => "day of the week",
        }
    }

    /// The first and the last number.
    fn range(self) -> (u8, u8) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 6),
        }
    }

    /// Names of its numbers, from the first one on.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::Weekday => &WEEKDAYS,
            _ => &[],
        }
    }

    pub(super) fn parse(self, text: &str) -> Result<FieldSet, CronError> {
        let mut bits = 0;
        for item in text.split(',') {
            bits |= self.item(item).map_err(|problem| CronError::Field { field: self.name(), problem })?;
        }
        Ok(FieldSet { bits, starred: text.starts_with('*') })
    }

    /// One item of a list: a value, a range or `*`, each with a step perhaps.
    fn item(self, item: &str) -> Result<u64, String> {
        let (values, step) = match item.split_once('/') {
            Some((values, step)) => (values, Some(self.step(step)?)),
            None => (item, None),
        };
        let (first, last) = self.range();
        let (from, to) = match (values, values.split_once('-')) {
            ("*", _) => (first, last),
            (_, Some((from, to))) => (self.value(from)?, self.end(to)?),
            // A step without a range goes on to the end.
            (one, None) => match (self.value(one)?, step) {
                (from, Some(_)) => (from, last),
                (from, None) => (from, from),
            },
        };
        if from > to {
            return Err(format!("{values} ends before it begins"));
        }
        let bit = |value: u8| 1_u64 << (if self == Self::Weekday { value % 7 } else { value });
        Ok((from..=to).step_by(step.unwrap_or(1)).map(bit).fold(0, |bits, bit| bits | bit))
    }

    fn step(self, text: &str) -> Result<usize, String> {
        let (first, last) = self.range();
        let count = last - first + 1;
        let step = text.parse::<u8>().ok().filter(|step| (1..=count).contains(step));
        step.map(usize::from).ok_or_else(|| format!("{} is not a step from 1 to {count}", quoted(text)))
    }

    /// The end of a range, which may be Sunday as the last day of a week.
    fn end(self, text: &str) -> Result<u8, String> {
        let is_sunday = self == Self::Weekday && (text == "7" || text.eq_ignore_ascii_case("SUN"));
        if is_sunday { Ok(7) } else { self.value(text) }
    }

    fn value(self, text: &str) -> Result<u8, String> {
        let (first, last) = self.range();
        if let Some(index) = self.names().iter().position(|name| text.eq_ignore_ascii_case(name)) {
            return Ok(first.saturating_add(u8::try_from(index).unwrap_or_default()));
        }
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse::<u8>().ok().filter(|_| is_number);
        match number {
            Some(7) if self == Self::Weekday => Ok(0),
            Some(number) if (first..=last).contains(&number) => Ok(number),
            Some(_) => Err(format!("{text} is not between {first} and {last}")),
            None => Err(format!("{} is {}", quoted(text), self.wanted())),
        }
    }

    fn wanted(self) -> String {
        let (first, last) = self.range();
        match self.names() {
            [first_name, .., last_name] => {
                format!("neither a number from {first} to {last} nor a name from {first_name} to {last_name}")
            }
            _ => format!("no number from {first} to {last}"),
        }
    }
}

fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(40).collect::<String>())
}
