//! What a cron expression may say, and what is said of one that is wrong.

use jiff::civil::DateTime;
use switchboard_hub::ceremonies::cron::Cron;

/// The times after a given one.
fn next(expression: &str, after: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let after: DateTime = after.parse().unwrap();
    let times = std::iter::successors(cron.next(after), |at| cron.next(*at));
    times.take(count).map(|at| at.to_string()).collect()
}

#[test]
fn fields_are_lists_ranges_steps_and_names() {
    let monday = "2026-11-16T00:00:00";
    assert_eq!(next("30 9 * * MON-FRI", "2026-11-20T09:30:00", 1), ["2026-11-23T09:30:00"]);
    assert_eq!(next("0 9 * * 5-7", monday, 3), ["2026-11-20T09:00:00", "2026-11-21T09:00:00", "2026-11-22T09:00:00"]);
    assert_eq!(next("0 9 * * fri-sun", monday, 3), next("0 9 * * 5-7", monday, 3));
    assert_eq!(next("0 9 * * 0", monday, 2), next("0 9 * * 7", monday, 2));
    assert_eq!(next("*/20 8,10 * * *", monday, 4).last().unwrap(), "2026-11-16T10:00:00");
    assert_eq!(next("10-40/15 0 * * *", monday, 3).last().unwrap(), "2026-11-16T00:40:00");
    assert_eq!(next("50/5 0 * * *", monday, 3).last().unwrap(), "2026-11-17T00:50:00");
    assert_eq!(next("0 0 1 jan,JUL *", monday, 2), ["2027-01-01T00:00:00", "2027-07-01T00:00:00"]);
    assert_eq!(next("5,35 0 12 * * *", monday, 2), ["2026-11-16T12:00:05", "2026-11-16T12:00:35"]);
    assert_eq!(next("@daily", monday, 1), ["2026-11-17T00:00:00"]);
    assert_eq!(next("@hourly", monday, 1), ["2026-11-16T01:00:00"]);
    assert_eq!(next(" 0  0\t29 2 * ", monday, 2), ["2028-02-29T00:00:00", "2032-02-29T00:00:00"]);
}

#[test]
fn a_day_fits_one_of_both_fields_unless_one_begins_with_a_star() {
    let monday = "2026-11-16T00:00:00";
    assert_eq!(next("0 9 17 * FRI", monday, 2), ["2026-11-17T09:00:00", "2026-11-20T09:00:00"]);
    assert_eq!(next("0 9 */2 * FRI", monday, 1), ["2026-11-27T09:00:00"], "an odd day that is a Friday");
    // A day of February that is a Sunday comes once in 28 years or less often.
    assert_eq!(next("0 0 29 2 */7", monday, 2), ["2032-02-29T00:00:00", "2060-02-29T00:00:00"]);
}

#[test]
fn what_never_comes_or_cannot_be_read_is_refused() {
    let refused = |expression: &str, said: &str| {
        let error = Cron::parse(expression).expect_err(expression).to_string();
        assert!(error.contains(said), "{expression}: {error}");
    };
    refused("0 0 31 2 *", "never comes");
    refused("0 0 31 4,6,9,11 *", "never comes");
    refused("0 0 30 2 */7", "never comes");
    refused("61 * * * *", "minute: 61 is not between 0 and 59");
    refused("0 24 * * *", "hour: 24 is not between 0 and 23");
    refused("60 0 9 * * *", "second: 60");
    refused("0 0 0 * *", "day: 0 is not between 1 and 31");
    refused("0 0 * 13 *", "month: 13");
    refused("0 0 * * 8", "day of the week: 8");
    refused("0 0 * * MOON", "day of the week: \"MOON\" is neither a number from 0 to 6 nor a name from SUN to SAT");
    refused("0 17-9 * * *", "hour: 17-9 ends before it begins");
    refused("*/0 * * * *", "minute: \"0\" is not a step");
    refused("*/61 * * * *", "minute: \"61\" is not a step");
    refused("1,,2 * * * *", "minute: \"\"");
    refused("+1 * * * *", "minute: \"+1\"");
    refused("0 0 L * *", "day: \"L\"");
    refused("* * * *", "has 4 fields");
    refused("* * * * * * *", "has 7 fields");
    refused("", "has 0 fields");
    refused("@reboot", "@reboot is none of");
}
