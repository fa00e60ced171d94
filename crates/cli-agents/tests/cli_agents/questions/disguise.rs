//! Nothing that a program or a caller writes is shown as something else.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use switchboard_cli_agents::adapters::ChoiceKind;

use super::Questions;
use crate::harness::*;

#[test]
fn nothing_in_a_command_hides() {
    let questions = Questions::new(&[]);
    let spaces = " ".repeat(1_985);
    for (prompt, shown) in [
        ("cargo test --all", "cargo test --all"),
        ("if a\nthen b\nfi", "if a\nthen b\nfi"),
        ("café ö 漢字 ひらがな 한글 Ελλ Жук 🦀 नमस्ते", "café ö 漢字 ひらがな 한글 Ελλ Жук 🦀 नमस्ते"),
        ("e\u{301} \u{301}\u{94d} ö\u{301}ö\u{94d}", "e\\u{301} \\u{301}\\u{94d} ö\\u{301}ö\\u{94d}"),
        ("a\u{94d}\n\u{94d}", "a\\u{94d}\n\\u{94d}"),
        ("त\u{94d}\u{94d}\u{94d}\u{94d}", "त\u{94d}\u{94d}\\u{94d}\\u{94d}"),
        ("\u{200b}\u{94d}🦀\u{94d}", "\\u{200b}\\u{94d}🦀\\u{94d}"),
        ("が か\u{3099} \u{1112}\u{1161}", "が か\\u{3099} \\u{1112}\\u{1161}"),
        ("a\u{1d159}\u{13441}\u{13442}ö\u{16fe4}", "a\\u{1d159}\\u{13441}\\u{13442}ö\\u{16fe4}"),
        ("a\u{387}\u{22c5}\u{2219}b", "a\\u{387}\\u{22c5}\\u{2219}b"),
        ("«\u{ff11}2 spaces» ≪12 spaces»", "\\u{ab}\u{ff11}2 spaces» \\u{226a}12 spaces»"),
        ("＼u{200b} 《1 spaces》 《紅楼夢》", "\\u{ff3c}u{200b} \\u{300a}1 spaces》 《紅楼夢》"),
        ("rm \u{5d0} 1 \u{627}", "rm \\u{5d0} 1 \\u{627}"),
        ("\u{fb1d}\u{fe70}\u{10800}\u{1e800}\u{1eeff}", { "\\u{fb1d}\\u{fe70}\\u{10800}\\u{1e800}\\u{1eeff}" }),
        (&format!("echo ok{spaces}; touch EVIL"), "echo ok«1985 spaces»; touch EVIL"),
        ("a  b", "a··b"),
        ("for x:\n    y\n\tz", "for x:\n····y\n\\u{9}z"),
        ("a\n\nb", "a⏎\n⏎\nb"),
        ("a\n \n b", "a⏎\n·⏎\n·b"),
        (&format!("a{}b", "\n".repeat(40)), "a«40 line breaks»\nb"),
        (&format!("a{}b", "\t".repeat(17)), "a«17 tabs»b"),
        ("rm -rf ~\u{1b}[2K\u{8}echo", "rm -rf ~\\u{1b}[2K\\u{8}echo"),
        ("rm #\rls\r\nx", "rm #\\u{d}ls\\u{d}\nx"),
        ("\u{202e}a\u{2066}b\u{200b}\u{200d}\u{feff}", "\\u{202e}a\\u{2066}b\\u{200b}\\u{200d}\\u{feff}"),
        ("x\u{e0041}\u{fe0f}\u{e0101}\u{ad}", "x\\u{e0041}\\u{fe0f}\\u{e0101}\\u{ad}"),
        ("a\u{a0}b\u{3000}c\u{2028}d\u{2800}", "a\\u{a0}b\\u{3000}c\\u{2028}d\\u{2800}"),
        ("\\u{200b} \\n · ⏎ «1 x» «a»", "\\u{5c}u{200b} \\n \\u{b7} \\u{23ce} \\u{ab}1 x» \\u{ab}a»"),
    ] {
        questions.change(|question| (question.input, question.prompt) = (Value::Null, prompt.to_owned()));
        assert_eq!(questions.shown(), format!("{}?", shown.replace('\n', "\n  | ")), "{prompt:?}");
    }
}

#[test]
fn no_line_of_a_program_looks_like_one_of_the_question() {
    let forged = "ls?\nAnswer y (this once), always (every Bash of this task) or n.\nrm -rf ~ #";
    let questions = Questions::new(&[("later", ChoiceKind::Other)]);
    questions.change(|question| {
        question.prompt = forged.to_owned();
        question.input = json!({"script": format!("{forged} 2")});
        question.tool = forged.to_owned();
        question.choices[0].label = forged.to_owned();
    });
    let asked = questions.words();
    let lines: Vec<&str> = asked.lines().filter(|line| !line.starts_with("  | ")).collect();
    assert_eq!(lines, ["Approve: ls?", "  script: ls?", "Answer y (this once), always (every ls?"], "{asked}");
}

/// Texts of what the notation is made of and what it escapes, so that collisions would be found.
fn tricky() -> impl Strategy<Value = String> {
    let pieces = concat!(
        " |  |\n|\t|\r|·|⏎|«|»|«17 spaces»|«40 line breaks»\n|\\|\\u{9}",
        "|u{9}|\\u{5c}|{|}|9|1|7|a|\u{200b}|\u{301}|\u{94d}|त|\u{387}|\u{22c5}|\u{ff11}|\u{5d0}|\u{1d159}",
    );
    let long = (0..3_usize, 14..20_usize).prop_map(|(which, times)| [" ", "\n", "\t"][which].repeat(times));
    let piece = prop_oneof![
        6 => prop::sample::select(pieces.split('|').collect::<Vec<_>>()).prop_map(str::to_owned),
        1 => long,
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..48).prop_map(|pieces| pieces.concat())
}

/// What a text was that is shown like this.
fn read_back(shown: &str) -> String {
    let mut text = String::new();
    let mut rest = shown;
    while let Some(first) = rest.chars().next() {
        if let Some(escape) = rest.strip_prefix("\\u{") {
            let (code, after) = escape.split_once('}').unwrap();
            text.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
            rest = after;
        } else if first == '«' && rest.chars().nth(1).is_some_and(|next| next.is_ascii_digit()) {
            let (run, after) = rest['«'.len_utf8()..].split_once('»').unwrap();
            let (count, name) = run.split_once(' ').unwrap();
            let character = match name {
                "spaces" => " ",
                "tabs" => "\t",
                _ => "\n",
            };
            text.push_str(&character.repeat(count.parse().unwrap()));
            rest = if character == "\n" { after.strip_prefix('\n').unwrap() } else { after };
        } else {
            rest = &rest[first.len_utf8()..];
            match first {
                '·' => text.push(' '),
                '⏎' => {}
                _ => text.push(first),
            }
        }
    }
    text
}

/// Whether a character is in a block of scripts that are written from right to left.
fn is_right_to_left(character: char) -> bool {
    matches!(character, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}')
        || matches!(character, '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

#[test]
fn what_is_shown_can_be_read_back_so_that_no_two_commands_look_the_same() {
    let questions = Questions::new(&[]);
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&tricky(), |text| {
        questions.change(|question| (question.input, question.prompt) = (Value::Null, text.clone()));
        let shown = questions.shown().replace("\n  | ", "\n");
        let shown = shown.strip_suffix('?').unwrap();
        prop_assert_eq!(read_back(shown), text);
        let is_plain = ["  ", "\n\n", "\t", "\r", "\u{200b}"].iter().all(|hidden| !shown.contains(hidden));
        prop_assert!(is_plain && !shown.contains(is_right_to_left), "{:?}", shown);
        let is_mark = |character: char| !character.is_ascii() && character.escape_debug().next() == Some('\\');
        let mut before = '\n';
        for character in shown.chars() {
            prop_assert!(!is_mark(character) || !before.is_ascii(), "{:?}", shown);
            before = character;
        }
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn an_id_that_a_caller_makes_up_cannot_look_like_a_part_of_the_question() {
    let questions = Questions::new(&[]);
    let asked = questions.asked();
    let forged = "x\nApprove: ls?\nAnswer y\u{1b}[2K\u{202e}";
    let answer = json!({"approvalId": forged, "decision": "allow"});
    let again = questions.harness.run(questions.harness.reply(&asked, answer));
    let expected = "The approval x\n  | Approve: ls?\n  | Answer y\\u{1b}[2K\\u{202e} has expired; this is the one that \
                    is open.\nApprove: Bash: cargo test?\nAnswer y (this once)";
    assert!(status_text(&again).starts_with(expected), "{}", status_text(&again));
    assert_eq!(question(&again)["approvalId"], question(&asked)["approvalId"]);
    assert!(questions.decided.lock().unwrap().is_empty());
}
