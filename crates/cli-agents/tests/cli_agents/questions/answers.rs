//! Which messages answer a question, and what they decide.

use serde_json::{Value, json};
use switchboard_a2a::{Json, Message, Part, PartContent, Role};
use switchboard_cli_agents::adapters::ChoiceKind;
use switchboard_engine::Agent as _;

use super::{PROMPT_CHARACTERS, Questions};
use crate::harness::*;

const NEITHER: &str = "That was neither a yes nor a no.";
const DIVIDED: &str = "That said several things that do not agree.";
const MORE: &str = "That was more than an answer, which is words alone, or data with approvalId, decision and reason.";
const NO_YES: &str = "A plain yes is not taken here.";
const NOT_WHOLE: &str = "The command is not shown whole, so a plain yes is not taken.";

fn data(value: Value) -> Part {
    Part::data(Json::from_serialize(&value).unwrap())
}

fn text(text: &str) -> Part {
    Part::text(text)
}

#[test]
fn plain_words_decide_and_only_a_no_can_be_explained() {
    let questions = Questions::new(&[]);
    for (words, expected) in [
        ("y", "allow"),
        (" Yes.\n", "allow"),
        ("OK", "allow"),
        ("always", "allow, allow"),
        ("n", "deny"),
        ("no, use rg instead", "deny: use rg instead"),
        ("deny: too risky", "deny: too risky"),
        ("yes, but not in /etc", NEITHER),
        ("nothing", NEITHER),
        ("please also fix the readme", NEITHER),
    ] {
        assert_eq!(questions.answer(vec![text(words)]), expected, "{words:?}");
    }
}

#[test]
fn data_is_bound_to_its_question_and_what_does_not_agree_decides_nothing() {
    let questions = Questions::new(&[]);
    let old = "The approval old has expired; this is the one that is open.";
    let named = |decision: &str| data(json!({"approvalId": "$id", "decision": decision}));
    let unnamed = |decision: &str| data(json!({"decision": decision}));
    let other = || data(json!({"approvalId": "old", "decision": "deny"}));
    for (parts, expected) in [
        (vec![named("allow")], "allow"),
        (vec![unnamed("always")], "allow, allow"),
        (vec![data(json!({"approvalId": "$id", "decision": "deny", "reason": "no"}))], "deny: no"),
        (vec![data(json!({"approvalId": "old", "decision": "allow"}))], old),
        (vec![named("perhaps")], NEITHER),
        (vec![data(json!({"approvalId": "$id"}))], NEITHER),
        (vec![data(json!({"approvalId": 7, "decision": "allow"}))], MORE),
        (vec![data(json!({"approvalId": "$id", "decision": "allow", "comment": "fine"}))], MORE),
        (vec![data(json!({"decision": "allow", "option": "deny"}))], MORE),
        (vec![data(json!(["$id", "allow", "because"]))], MORE),
        (vec![data(json!({"reason": "because"}))], MORE),
        (vec![text("y"), named("allow")], "allow"),
        (vec![unnamed("always"), named("always"), text(" ")], "allow, allow"),
        (vec![named("deny"), text("no, use rg")], "deny: use rg"),
        (vec![text("n"), named("allow")], DIVIDED),
        (vec![text("y"), named("deny")], DIVIDED),
        (vec![unnamed("deny"), unnamed("allow")], DIVIDED),
        (vec![named("allow"), text("always")], DIVIDED),
        (vec![text("n"), text("y")], DIVIDED),
        (vec![text("no, yes")], DIVIDED),
        (vec![unnamed("allow"), other()], old),
        (vec![other(), named("deny")], old),
        (vec![named("deny"), other()], old),
        (vec![text("Write this decision down"), named("allow")], NEITHER),
        (vec![text("yes, but not in /etc"), named("allow")], NEITHER),
        (vec![text("always"), Part::new(PartContent::Raw(b"x".to_vec()))], MORE),
        (vec![text("y"), data(json!({"title": "use SQLite"}))], MORE),
    ] {
        assert_eq!(questions.answer(parts.clone()), expected, "{parts:?}");
    }
}

#[test]
fn a_programs_own_choices_are_answers_too_and_our_words_mean_what_they_mean() {
    let questions = Questions::new(&[
        ("proceed_always", ChoiceKind::AllowAlways),
        ("proceed_once", ChoiceKind::AllowOnce),
        ("edit_first", ChoiceKind::Other),
    ]);
    assert!(questions.words().contains("It also takes edit_first."));
    for (words, expected) in
        [("proceed_always", "allow, allow"), ("proceed_once", "allow"), ("edit_first", "choose: edit_first")]
    {
        assert_eq!(questions.answer(vec![text(words)]), expected);
    }
    let questions = Questions::new(&[
        ("deny", ChoiceKind::Other),
        ("option-deny", ChoiceKind::Other),
        ("deny", ChoiceKind::Other),
        ("No, thanks", ChoiceKind::Other),
        ("n", ChoiceKind::AllowOnce),
        ("y", ChoiceKind::RejectOnce),
        ("always", ChoiceKind::RejectAlways),
        ("no way", ChoiceKind::AllowAlways),
    ]);
    let asked = questions.asked();
    let own = |id: &str, label: &str| json!({"id": id, "label": label});
    assert_eq!(
        question(&asked)["options"].as_array().unwrap()[3..],
        [own("option-option-deny", "deny"), own("option-deny", "option-deny"), own("option-No, thanks", "No, thanks")]
    );
    let expected = "It also takes option-option-deny (deny), option-deny, option-No, thanks (No, thanks).";
    assert!(status_text(&asked).ends_with(expected), "{}", status_text(&asked));
    for (word, expected) in [
        ("deny", "deny"),
        ("n", "deny"),
        ("y", "allow"),
        ("always", "allow, allow"),
        ("option-option-deny", "choose: deny"),
        ("option-deny", "choose: option-deny"),
        ("option-No, thanks", "choose: No, thanks"),
    ] {
        assert_eq!(questions.answer(vec![text(word)]), expected, "{word}");
        assert_eq!(questions.answer(vec![data(json!({"decision": word}))]), expected, "{word} as data");
    }
    assert_eq!(questions.answer(vec![text("No, thanks")]), "deny: thanks");
    assert_eq!(questions.answer(vec![text("no way")]), "deny: way");
    assert_eq!(questions.answer(vec![data(json!({"decision": "No, thanks"}))]), NEITHER);
}

#[test]
fn an_option_is_answered_with_what_is_shown_even_if_its_id_hides_one_of_our_words() {
    let ids = [
        " y",
        "later",
        "y\u{a0}",
        "\u{202e}y",
        "y\u{200b}",
        "a\nb",
        "",
        "n\n",
        "always incomplete",
        "a  b",
        "option-1",
    ];
    let offered = [
        "option-option-1",
        "later",
        "option-3",
        "option-4",
        "option-5",
        "option-6",
        "option-7",
        "option-8",
        "option-always incomplete",
        "option-10",
        "option-1",
    ];
    let questions = Questions::new(&ids.map(|id| (id, ChoiceKind::Other)));
    let asked = questions.asked();
    let options = question(&asked)["options"].clone();
    let shown: Vec<&str> =
        options.as_array().unwrap()[3..].iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(shown, offered);
    let words = status_text(&asked);
    assert!(
        words.contains(r"It also takes option-option-1 ( y), later, option-3 (y\u{a0}), option-4 (\u{202e}y), "),
        "{words}"
    );
    for (id, offered) in ids.into_iter().zip(offered) {
        let expected = format!("choose: {id}");
        assert_eq!(questions.answer(vec![text(offered)]), expected, "{offered}");
        assert_eq!(questions.answer(vec![data(json!({"decision": offered}))]), expected, "{offered} as data");
    }
    for (word, expected) in [(" y", "allow"), ("y\u{a0}", "allow"), ("n\n", "deny"), ("always incomplete", NEITHER)] {
        assert_eq!(questions.answer(vec![text(word)]), expected, "{word:?}");
    }
}

#[test]
fn a_yes_or_a_reason_that_cannot_be_given_is_not_asked_for() {
    let questions = Questions::new(&[("aa", ChoiceKind::Other), ("ro", ChoiceKind::RejectOnce)]);
    questions.change(|question| {
        question.no_plain_yes = true;
        "Always\u{1b}[0m".clone_into(&mut question.choices[0].label);
    });
    let asked = questions.asked();
    let expected = "Answer n, with a reason if you like; a plain yes is not taken here. \
                    It also takes aa (Always\\u{1b}[0m).";
    assert_eq!(status_text(&asked).lines().last(), Some(expected));
    let options = question(&asked)["options"].clone();
    let ids: Vec<&str> = options.as_array().unwrap().iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["deny", "aa"]);
    for yes in ["y", "always", "allow"] {
        assert_eq!(questions.answer(vec![text(yes)]), NO_YES, "{yes}");
        assert_eq!(questions.answer(vec![data(json!({"decision": yes}))]), NO_YES, "{yes}");
    }
    for (words, expected) in [("aa", "choose: aa"), ("ro", "deny"), ("no, not for ever", "deny: not for ever")] {
        assert_eq!(questions.answer(vec![text(words)]), expected);
    }
    questions.change(|question| {
        question.choices.clear();
        question.takes_reason = false;
    });
    assert_eq!(questions.words().lines().last(), Some("Answer n; a plain yes is not taken here."));
    questions.change(|question| question.no_plain_yes = false);
    let expected = "Answer y (this once), always (every Bash of this task) or n.";
    assert_eq!(questions.words().lines().last(), Some(expected));
}

#[test]
fn a_command_that_is_not_shown_whole_takes_no_plain_yes() {
    let questions = Questions::new(&[("edit_first", ChoiceKind::Other), ("once", ChoiceKind::AllowOnce)]);
    questions.change(|question| {
        question.input = Value::Null;
        question.prompt = "x".repeat(PROMPT_CHARACTERS + 1);
    });
    for (words, expected) in [
        ("y", NOT_WHOLE),
        ("allow", NOT_WHOLE),
        ("always", NOT_WHOLE),
        ("once", NOT_WHOLE),
        ("edit_first", NOT_WHOLE),
        ("incomplete", NEITHER),
        ("allow incomplete", "allow"),
        ("Yes  Incomplete", "allow"),
        ("once incomplete", "allow"),
        ("always incomplete", "allow, allow"),
        ("edit_first incomplete", "choose: edit_first"),
        ("n", "deny"),
        ("deny", "deny"),
    ] {
        assert_eq!(questions.answer(vec![text(words)]), expected, "{words}");
        assert_eq!(questions.answer(vec![data(json!({"decision": words}))]), expected, "{words} as data");
    }
    assert_eq!(questions.answer(vec![text("no, that is incomplete")]), "deny: that is incomplete");
    questions.change(|question| question.prompt.truncate(PROMPT_CHARACTERS));
    assert_eq!(questions.answer(vec![text("y")]), "allow");
    assert_eq!(questions.answer(vec![text("allow incomplete")]), NEITHER);
}

#[test]
fn what_is_surely_an_answer() {
    let questions = Questions::new(&[]);
    let id = "699543ce-b046-4ec7-96a5-dca4bff40eb5";
    let message = |parts: Vec<Part>| Message { parts, ..Message::text(Role::User, "") };
    let both = |words: &str, value: Value| message(vec![text(words), data(value)]);
    let words = |words: &str| message(vec![text(words)]);
    let named = || json!({"approvalId": id, "decision": "later"});
    for answer in
        [words("y"), words("Always"), words("n"), words("allow incomplete"), both("", named()), both("ok", named())]
    {
        assert!(questions.harness.agent.is_answer(&answer), "{answer:?}");
    }
    for other in [
        words("no, use rg instead"),
        words("fix the bug"),
        words(""),
        both("fix the bug", named()),
        both("y", json!({"approvalId": "PO-1234", "decision": "approve"})),
        both("y", json!({"approvalId": id, "decision": "allow", "title": "use SQLite"})),
        both("ok", json!({"decision": "deploy"})),
        both("do what it says", json!({"decision": "allow"})),
        message(vec![text("ok"), Part::new(PartContent::Raw(b"x".to_vec()))]),
        // Too little for a question that is not named by its task.
        both("", json!({"decision": "later"})),
        both("y", json!({"decision": "allow"})),
        both(" ", json!({"approvalId": "PO-1234"})),
        both(" ", json!({"optionId": "later", "title": "use SQLite"})),
    ] {
        assert!(!questions.harness.agent.is_answer(&other), "{other:?}");
    }
}
