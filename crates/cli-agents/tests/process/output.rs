//! Whatever a child writes is harmless.

use std::time::{Duration, Instant};

use switchboard_cli_agents::process::{Output, OutputLimits};

use crate::fixture::{Fixture, LIMITS, LONGEST, all, line};

#[tokio::test]
async fn lines_come_one_by_one_and_the_last_needs_no_end() {
    let fixture = Fixture::new();
    let mut child = fixture.sh(r#"printf 'one\r\n\n{"half":\nlast'; printf 'trouble\n' >&2; exit 3"#).await;
    let said = all(&mut child).await;
    let [one, empty, half, last, Output::Ended(exit)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!([one, empty, half, last], [&line("one"), &line(""), &line("{\"half\":"), &line("last")]);
    assert_eq!((exit.code, exit.signal, exit.stderr.as_str()), (Some(3), None, "trouble"));
    assert_eq!(child.next().await, Output::Ended(exit.clone()), "and so for ever");
}

#[tokio::test]
async fn a_line_of_megabytes_is_left_out_and_its_length_told() {
    let fixture = Fixture::new();
    let script = "echo before; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo after";
    let said = all(&mut fixture.sh(script).await).await;
    assert_eq!(said.get(..3).unwrap(), [line("before"), Output::TooLong { bytes: 3_000_000 }, line("after")]);
}

#[tokio::test]
async fn a_long_line_within_the_limit_is_whole_wherever_reads_cut_it() {
    let fixture = Fixture::new();
    let script = "i=0; while [ $i -lt 6000 ]; do printf 'ö🦀'; i=$((i+1)); done; echo";
    let said = all(&mut fixture.sh(script).await).await;
    assert_eq!(said.first(), Some(&line("ö🦀".repeat(6000))));
}

#[tokio::test]
async fn bytes_that_are_no_text_and_terminal_codes_are_survived() {
    let fixture = Fixture::new();
    let script = r"printf 'a\377b\n\033[31mred\033[0m\n\000\n'; printf '\033[1mbold\033[0m \377\007\n' >&2";
    let said = all(&mut fixture.sh(script).await).await;
    let [no_text, colour, zero, Output::Ended(exit)] = said.as_slice() else { panic!("{said:?}") };
    // What a line means is the adapter's business, so only what is no text at all is changed.
    assert_eq!([no_text, colour, zero], [&line("a\u{fffd}b"), &line("\u{1b}[31mred\u{1b}[0m"), &line("\0")]);
    assert_eq!(exit.stderr, "bold \u{fffd}");
}

#[tokio::test]
async fn a_flood_on_standard_error_stops_nothing_and_leaves_its_end() {
    let fixture = Fixture::new();
    let script = "i=0; while [ $i -lt 30 ]; do head -c 100000 /dev/zero | tr '\\0' y >&2; i=$((i+1)); done
                  printf '\\nthe end\\n' >&2; echo done";
    let said = all(&mut fixture.sh(script).await).await;
    let [done, Output::Ended(exit)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(done, &line("done"));
    assert!(exit.stderr.len() <= LIMITS.stderr && exit.stderr.ends_with("the end"), "{}", exit.stderr);
}

#[tokio::test]
async fn more_than_is_allowed_is_a_flood_on_either_way_out() {
    let fixture = Fixture::new();
    let limits = OutputLimits { output: 100_000, ..LIMITS };
    for (script, way) in [("yes", "standard output"), ("yes >&2", "standard error")] {
        let mut child = fixture.sh_with(script, limits).await;
        let mut bytes = 0;
        loop {
            match child.next().await {
                Output::Line(line) => bytes += line.len() + 1,
                Output::Flood => break,
                other => panic!("{way}: {other:?}"),
            }
        }
        assert!(bytes <= 200_000, "{way}: {bytes}");
        child.end().await;
        assert!(matches!(child.next().await, Output::Ended(_)), "{way}");
    }
}

#[tokio::test]
async fn a_child_that_writes_faster_than_it_is_read_waits() {
    let fixture = Fixture::new();
    // Long lines fill the pipe with few of them: each also writes a file, which a busy disk makes slow.
    let script =
        "long=$(printf '%01000d' 0); n=0; while [ $n -lt 5000 ]; do n=$((n + 1)); echo $n > sent; echo $long; done";
    let mut child = fixture.sh(script).await;
    assert_eq!(child.next().await, line("0".repeat(1000)));
    // It comes to rest when the pipe is full.
    let sent = || std::fs::read_to_string(fixture.folder.path().join("sent")).unwrap_or_default();
    let is_at_rest = |looks: &[String]| {
        looks.last_chunk::<20>().is_some_and(|last| !last[0].is_empty() && last.iter().all(|sent| *sent == last[0]))
    };
    let mut looks = vec![sent()];
    while !is_at_rest(&looks) {
        // Whatever reads in the background goes on meanwhile.
        tokio::time::sleep(Duration::from_millis(3)).await;
        looks.push(sent());
    }
    assert_ne!(sent(), "5000\n", "all of it is written although the test does not read");
    assert_eq!(all(&mut child).await.len(), 4_999 + 1, "and nothing is lost");
    assert_eq!(sent(), "5000\n");
}

#[tokio::test]
async fn a_prompt_without_a_line_end_is_told_once_and_comes_again_in_its_line() {
    let fixture = Fixture::new();
    let mut child =
        fixture.sh("echo first; printf 'Go on? '; read answer; printf '[y/n] '; read more; echo done").await;
    assert_eq!(child.next().await, line("first"));
    assert_eq!(child.next().await, Output::Pause("Go on? ".to_owned()));
    child.write("yes".to_owned()).unwrap();
    assert_eq!(child.next().await, Output::Pause("Go on? [y/n] ".to_owned()));
    child.write("yes".to_owned()).unwrap();
    assert_eq!(child.next().await, line("Go on? [y/n] done"));
    assert!(matches!(child.next().await, Output::Ended(_)));
}

#[tokio::test]
async fn waiting_can_be_given_up_and_taken_up_at_any_moment() {
    let fixture = Fixture::new();
    let mut child =
        fixture.sh("i=0; while [ $i -lt 300 ]; do printf 'a long enough '; echo line $i; i=$((i+1)); done").await;
    let mut lines = Vec::new();
    loop {
        let Ok(output) = tokio::time::timeout(Duration::from_micros(50), child.next()).await else { continue };
        match output {
            Output::Line(line) => lines.push(line),
            Output::Pause(_) => {}
            Output::Ended(exit) => break assert_eq!(exit.code, Some(0)),
            other => panic!("{other:?}"),
        }
    }
    let expected: Vec<String> = (0..300).map(|number| format!("a long enough line {number}")).collect();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_child_that_closes_its_output_early_is_waited_for() {
    let fixture = Fixture::new();
    let mut child = fixture.sh("echo said; exec >&- 2>&-; read go; exit 4").await;
    assert_eq!(child.next().await, line("said"));
    // Had its end been told with its output, it would have no code.
    child.close_input();
    let said = all(&mut child).await;
    let [Output::Ended(exit)] = said.as_slice() else { panic!("{said:?}") };
    assert_eq!(exit.code, Some(4));
}

#[tokio::test]
async fn what_was_said_before_the_end_is_read_though_another_process_holds_the_output_open() {
    let fixture = Fixture::new();
    let begun = Instant::now();
    // The sleeper has the output open and is not the child: a reader that waited for its end would wait for an hour.
    let mut child = fixture.sh("sleep 3600 & i=0; while [ $i -lt 500 ]; do echo $i; i=$((i+1)); done; exit 5").await;
    let said = all(&mut child).await;
    assert_eq!(said.len(), 501);
    let Some(Output::Ended(exit)) = said.last() else { panic!("{said:?}") };
    assert_eq!(exit.code, Some(5));
    assert!(begun.elapsed() < LONGEST);
}

#[tokio::test]
async fn the_limit_of_a_line_is_exact() {
    let fixture = Fixture::new();
    let limits = OutputLimits { line: 3, ..LIMITS };
    let said = all(&mut fixture.sh_with(r"printf 'abc\nabcd\nabc\r\nx'", limits).await).await;
    assert_eq!(said.get(..4).unwrap(), [line("abc"), Output::TooLong { bytes: 4 }, line("abc"), line("x")]);
}

#[tokio::test]
async fn half_a_character_at_the_end_of_what_is_unfinished_is_left_out() {
    let fixture = Fixture::new();
    let script = r"printf 'Go on? '; read a; printf '\360\237'; read b; printf '\246\200'; read c; echo";
    let mut child = fixture.sh(script).await;
    for shown in ["Go on? ", "Go on? ", "Go on? 🦀"] {
        assert_eq!(child.next().await, Output::Pause(shown.to_owned()));
        child.write("on".to_owned()).unwrap();
    }
    assert_eq!(child.next().await, line("Go on? 🦀"));
}

#[tokio::test]
async fn what_is_kept_of_standard_error_begins_with_a_whole_line() {
    let fixture = Fixture::new();
    let script = r"i=0; while [ $i -lt 3000 ]; do printf '\033[31mline %d\033[0m\r\n' $i >&2; i=$((i+1)); done";
    let said = all(&mut fixture.sh(script).await).await;
    let [Output::Ended(exit)] = said.as_slice() else { panic!("{said:?}") };
    assert!(exit.stderr.ends_with("line 2998\nline 2999"), "{}", exit.stderr);
    assert!(exit.stderr.len() <= LIMITS.stderr && exit.stderr.lines().all(|line| line.starts_with("line ")));
}

#[tokio::test]
async fn a_bare_carriage_return_ends_no_line_and_an_end_may_come_in_two_reads() {
    let fixture = Fixture::new();
    let mut child = fixture.sh(r"printf 'half\rway\none\r'; read go; printf '\n\360\237\230\n'").await;
    assert_eq!(child.next().await, line("half\rway"));
    let unfinished = child.next().await;
    assert!(matches!(unfinished, Output::Pause(_)), "{unfinished:?}");
    child.write("go".to_owned()).unwrap();
    assert_eq!(child.next().await, line("one"));
    assert_eq!(child.next().await, line("\u{fffd}"));
}
