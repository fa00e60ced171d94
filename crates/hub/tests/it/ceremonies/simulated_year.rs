//! A year of schedules in five zones, in steps of five minutes: what a clock on the wall would do, written as plainly as can be, is
//! what schedules do.

use std::sync::LazyLock;

use jiff::ToSpan;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use switchboard_a2a::Timestamp;
use switchboard_hub::ceremonies::schedule::Schedule;

/// Clocks change by an hour and by half an hour, at midnight too, and in both halves of the globe.
const ZONES: [&str; 5] =
    ["Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "America/Santiago"];
/// A year with a 29th of February.
const BEGIN: &str = "2028-01-01T00:00:00Z";
const STEPS: i64 = 366 * 24 * 12;
/// Clocks change on such minutes, and only such minutes are scheduled here.
const STEP: i64 = 5;

/// The wall clock of each zone in each step of the year.
static WALL_CLOCKS: LazyLock<Vec<Vec<DateTime>>> = LazyLock::new(|| {
    let begin: jiff::Timestamp = BEGIN.parse().unwrap();
    let clock = |zone: &str| {
        let zone = TimeZone::get(zone).unwrap();
        (0..STEPS).map(|step| zone.to_datetime(begin + (step * STEP).minutes())).collect()
    };
    ZONES.iter().map(|zone| clock(zone)).collect()
});

/// The values of a field as they are written, and one by one.
#[derive(Clone, Debug)]
struct Field {
    text: String,
    values: Vec<i8>,
}

#[derive(Clone, Debug)]
struct Expression {
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
}

impl Expression {
    fn text(&self) -> String {
        [&self.minute, &self.hour, &self.day, &self.month, &self.weekday].map(|field| field.text.as_str()).join(" ")
    }

    fn means(&self, at: DateTime) -> bool {
        let day = self.day.values.contains(&at.day());
        let weekday = self.weekday.values.contains(&at.weekday().to_sunday_zero_offset());
        let is_starred = self.day.text.starts_with('*') || self.weekday.text.starts_with('*');
        let fits = if is_starred { day && weekday } else { day || weekday };
        fits && self.month.values.contains(&at.month())
            && self.hour.values.contains(&at.hour())
            && self.minute.values.contains(&at.minute())
    }

    /// The steps of the year in which it is due.
    fn due(&self, clock: &[DateTime]) -> Vec<i64> {
        let mut due = Vec::new();
        let mut latest = clock[0].checked_sub(STEP.minutes()).unwrap();
        for (step, now) in (0..).zip(clock) {
            let is_due = if self.hour.values.len() == 24 {
                self.means(*now)
            } else {
                // The hands go on by one step, leave some out, or show again what they have shown.
                let next = |at: DateTime| at.checked_add(STEP.minutes()).ok();
                let shown = std::iter::successors(next(latest), |at| next(*at));
                shown.take_while(|at| at <= now).any(|at| self.means(at))
            };
            latest = latest.max(*now);
            if is_due {
                due.push(step);
            }
        }
        due
    }
}

/// A field with `*`, a step, a range or a list.
fn field(first: i8, last: i8) -> impl Strategy<Value = Field> {
    let star = Just(Field { text: "*".to_owned(), values: (first..=last).collect() });
    let step = (2..=last.min(20)).prop_map(move |step| Field {
        text: format!("*/{step}"),
        values: (first..=last).step_by(usize::try_from(step).unwrap()).collect(),
    });
    let range = (first..=last, first..=last).prop_map(|(one, other)| {
        let (from, to) = (one.min(other), one.max(other));
        Field { text: format!("{from}-{to}"), values: (from..=to).collect() }
    });
    let list = prop::collection::vec(first..=last, 1..4).prop_map(|values| Field {
        text: values.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        values,
    });
    prop_oneof![3 => star, 1 => step, 1 => range, 3 => list]
}

fn expression() -> impl Strategy<Value = Expression> {
    // Most clocks change in these hours.
    let early = prop::collection::vec(0_i8..4, 1..3).prop_map(|values| Field {
        text: values.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        values,
    });
    let hour = prop_oneof![field(0, 23), early];
    let minute = prop::collection::vec((0_i8..12).prop_map(|step| step * 5), 1..4).prop_map(|values| Field {
        text: values.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        values,
    });
    let parts = (minute, hour, field(1, 31), field(1, 12), field(0, 6));
    parts.prop_map(|(minute, hour, day, month, weekday)| Expression { minute, hour, day, month, weekday })
}

fn check(expression: &Expression) -> Result<(), TestCaseError> {
    let begin = Timestamp::parse(BEGIN).unwrap();
    for (zone, clock) in ZONES.iter().zip(WALL_CLOCKS.iter()) {
        let schedule = match Schedule::cron(&expression.text(), zone) {
            Ok(schedule) => schedule,
            Err(error) => {
                // Only a date that no year has.
                prop_assert!(error.to_string().contains("never comes"), "{error}");
                prop_assert_eq!(expression.due(clock), Vec::<i64>::new());
                continue;
            }
        };
        let times = std::iter::successors(schedule.next_after(Timestamp(begin.0 - 1)), |at| schedule.next_after(*at));
        let steps = times.map(|at| (at.0 - begin.0) / (STEP * 60_000)).take_while(|step| *step < STEPS);
        prop_assert_eq!(steps.collect::<Vec<_>>(), expression.due(clock), "{} in {}", expression.text(), zone);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_year_of_schedules_is_what_a_clock_on_the_wall_shows(expression in expression()) {
        check(&expression)?;
    }
}

#[test]
fn the_clock_changes_of_a_year_are_what_a_clock_on_the_wall_shows() {
    let star = |last: i8| Field { text: "*".to_owned(), values: (0..=last).collect() };
    let list = |values: &[i8]| Field {
        text: values.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        values: values.to_vec(),
    };
    let (day, month, weekday) = (star(31), star(12), star(6));
    let expression = |minute: Field, hour: Field| Expression {
        minute,
        hour,
        day: day.clone(),
        month: month.clone(),
        weekday: weekday.clone(),
    };
    let minutes = || list(&[0, 15, 30, 45]);
    let hours = [list(&[0]), list(&[1]), list(&[2]), list(&[3]), list(&[0, 1, 2, 3, 23]), star(23)];
    for hour in hours {
        check(&expression(minutes(), hour)).unwrap();
    }
}
