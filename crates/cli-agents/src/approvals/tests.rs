//! Answers to approvals, read from messages.

use serde_json::{Value, json};
use switchboard_a2a::{Json, Part, PartContent, Role};

use super::*;

pub(super) fn question(choices: &[(&str, ChoiceKind)]) -> PendingApproval {
    let choices = choices.iter().map(|(id, kind)| crate::adapters::Choice {
        id: (*id).to_owned(),
        label: (*id).to_owned(),
        kind: *kind,
    });
    let approval = Approval {
        request: "0".to_owned(),
        tool: "Bash".to_owned(),
        input: json!({"command": "cargo test"}),
        prompt: "Bash: cargo test".to_owned(),
        choices: choices.collect(),
        no_plain_yes: false,
        takes_reason: true,
    };
    PendingApproval::new(approval, Timestamp(1_700_000_000_000))
}

fn data(value: &Value) -> Part {
    Part::data(Json::from_serialize(value).unwrap())
}

fn message(parts: Vec<Part>) -> Message {
    Message { parts, ..Message::text(Role::User, "") }
}

fn options(question: &PendingApproval) -> Value {
    serde_json::to_value(question.message(None)).unwrap()["parts"][1]["data"]["options"].clone()
}

fn deny(reason: Option<&str>) -> Answer {
    Answer::Decided(Decision::Deny { reason: reason.map(str::to_owned) })
}

#[test]
fn plain_words_decide_and_only_a_no_can_be_explained() {
    let question = question(&[]);
    let read = |text: &str| question.read(&Message::text(Role::User, text));
    let allow = || Answer::Decided(Decision::Allow);
    for (text, answer) in [
        ("y", allow()),
        (" Yes.\n", allow()),
        ("OK", allow()),
        ("always", Answer::Always),
        ("n", deny(None)),
        ("no, use rg instead", deny(Some("use rg instead"))),
        ("deny: too risky", deny(Some("too risky"))),
        ("yes, but not in /etc", Answer::Unclear(NEITHER)),
        ("nothing", Answer::Unclear(NEITHER)),
        ("", Answer::Unclear(NEITHER)),
        ("please also fix the readme", Answer::Unclear(NEITHER)),
    ] {
        assert_eq!(read(text), answer, "{text:?}");
    }
}

#[test]
fn data_is_bound_to_its_question() {
    let question = question(&[]);
    let read = |value: Value| question.read(&message(vec![data(&value)]));
    let id = question.id.as_str();
    assert_eq!(read(json!({"approvalId": id, "decision": "allow"})), Answer::Decided(Decision::Allow));
    assert_eq!(read(json!({"decision": "always"})), Answer::Always);
    assert_eq!(read(json!({"approvalId": id, "decision": "deny", "reason": "no"})), deny(Some("no")));
    assert_eq!(read(json!({"approvalId": "old", "decision": "allow"})), Answer::Expired("old".to_owned()));
    assert_eq!(read(json!({"approvalId": id, "decision": "perhaps"})), Answer::Unclear(NEITHER));
    assert_eq!(read(json!({"approvalId": id})), Answer::Unclear(NEITHER));
    for other in [
        json!({"approvalId": 7, "decision": "allow"}),
        json!({"approvalId": id, "decision": "allow", "comment": "fine"}),
        json!({"decision": "allow", "option": "deny"}),
        json!([id, "allow", "because"]),
        json!({"reason": "because"}),
    ] {
        assert_eq!(read(other.clone()), Answer::Unclear(MORE), "{other}");
    }
}

#[test]
fn what_does_not_agree_decides_nothing() {
    let question = question(&[]);
    let id = question.id.as_str();
    let named = |decision: &str| data(&json!({"approvalId": id, "decision": decision}));
    let (text, unnamed) = (Part::text, |decision: &str| data(&json!({"decision": decision})));
    let read = |parts: Vec<Part>| question.read(&message(parts));
    assert_eq!(read(vec![text("y"), named("allow")]), Answer::Decided(Decision::Allow));
    assert_eq!(read(vec![unnamed("always"), named("always"), text(" ")]), Answer::Always);
    assert_eq!(read(vec![named("deny"), text("no, use rg")]), deny(Some("use rg")));
    for divided in [
        vec![text("n"), named("allow")],
        vec![text("y"), named("deny")],
        vec![unnamed("deny"), unnamed("allow")],
        vec![named("allow"), text("always")],
        vec![text("n"), text("y")],
        vec![text("no, yes")],
    ] {
        assert_eq!(read(divided.clone()), Answer::Unclear(DIVIDED), "{divided:?}");
    }
    let other = || data(&json!({"approvalId": "x", "decision": "deny"}));
    assert_eq!(read(vec![unnamed("allow"), other()]), Answer::Expired("x".to_owned()));
    assert_eq!(read(vec![other(), named("deny")]), Answer::Expired("x".to_owned()));
    assert_eq!(read(vec![named("deny"), other()]), Answer::Expired("x".to_owned()));
    for unclear in ["Write this decision down", "yes, but not in /etc"] {
        assert_eq!(read(vec![text(unclear), named("allow")]), Answer::Unclear(NEITHER), "{unclear}");
    }
    let file = Part::new(PartContent::Raw(b"x".to_vec()));
    assert_eq!(read(vec![text("always"), file]), Answer::Unclear(MORE));
    assert_eq!(read(vec![text("y"), data(&json!({"title": "use SQLite"}))]), Answer::Unclear(MORE));
}

#[test]
fn a_programs_own_choices_are_answers_too() {
    let question = question(&[
        ("proceed_always", ChoiceKind::AllowAlways),
        ("proceed_once", ChoiceKind::AllowOnce),
        ("edit_first", ChoiceKind::Other),
    ]);
    let read = |text: &str| question.read(&Message::text(Role::User, text));
    assert_eq!(read("proceed_always"), Answer::Always);
    assert_eq!(read("proceed_once"), Answer::Decided(Decision::Allow));
    assert_eq!(read("edit_first"), Answer::Decided(Decision::Choose("edit_first".to_owned())));
    assert!(question.message(None).joined_text().contains("It also takes edit_first."));
}

#[test]
fn our_words_mean_what_they_mean_whatever_a_program_calls_its_answers() {
    let question = question(&[
        ("deny", ChoiceKind::Other),
        ("option-deny", ChoiceKind::Other),
        ("deny", ChoiceKind::Other),
        ("No, thanks", ChoiceKind::Other),
        ("n", ChoiceKind::AllowOnce),
        ("y", ChoiceKind::RejectOnce),
        ("always", ChoiceKind::RejectAlways),
        ("no way", ChoiceKind::AllowAlways),
    ]);
    let options = options(&question);
    let offered = |id: &str, label: &str| json!({"id": id, "label": label});
    let own = [
        offered("option-option-deny", "deny"),
        offered("option-deny", "option-deny"),
        offered("option-No, thanks", "No, thanks"),
    ];
    assert_eq!(options.as_array().unwrap()[3..], own);
    let asked = question.message(None).joined_text();
    let expected = "It also takes option-option-deny (deny), option-deny, option-No, thanks (No, thanks).";
    assert!(asked.ends_with(expected), "{asked}");
    let text = |text: &str| question.read(&message(vec![Part::text(text)]));
    let data = |decision: &str| question.read(&message(vec![data(&json!({"decision": decision}))]));
    let chosen = |id: &str| Answer::Decided(Decision::Choose(id.to_owned()));
    for (word, answer) in [
        ("deny", deny(None)),
        ("n", deny(None)),
        ("y", Answer::Decided(Decision::Allow)),
        ("always", Answer::Always),
        ("option-option-deny", chosen("deny")),
        ("option-deny", chosen("option-deny")),
        ("option-No, thanks", chosen("No, thanks")),
    ] {
        assert_eq!(text(word), answer, "{word}");
        assert_eq!(data(word), answer, "{word} as data");
    }
    assert_eq!((text("No, thanks"), text("no way")), (deny(Some("thanks")), deny(Some("way"))));
    assert_eq!(data("No, thanks"), Answer::Unclear(NEITHER));
}

#[test]
fn a_yes_that_cannot_be_given_is_not_offered_and_decides_nothing() {
    let mut question = question(&[("aa", ChoiceKind::Other), ("ro", ChoiceKind::RejectOnce)]);
    question.approval.no_plain_yes = true;
    "Always\u{1b}[0m".clone_into(&mut question.approval.choices[0].label);
    let asked = question.message(None).joined_text();
    let expected = "Answer n, with a reason if you like; a plain yes is not taken here. \
                    It also takes aa (Always\\u{1b}[0m).";
    assert_eq!(asked.lines().last(), Some(expected));
    let options = options(&question);
    let ids: Vec<&str> = options.as_array().unwrap().iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["deny", "aa"]);
    let read = |text: &str| question.read(&message(vec![Part::text(text)]));
    for yes in ["y", "always", "allow"] {
        assert_eq!(read(yes), Answer::Unclear(NO_YES), "{yes}");
        assert_eq!(question.read(&message(vec![data(&json!({"decision": yes}))])), Answer::Unclear(NO_YES));
    }
    assert_eq!(read("aa"), Answer::Decided(Decision::Choose("aa".to_owned())));
    assert_eq!((read("ro"), read("no, not for ever")), (deny(None), deny(Some("not for ever"))));
}

#[test]
fn a_command_that_is_not_shown_whole_takes_no_plain_yes() {
    let mut question = question(&[("edit_first", ChoiceKind::Other), ("once", ChoiceKind::AllowOnce)]);
    question.approval.input = Value::Null;
    question.approval.prompt = "x".repeat(tool_call::PROMPT_CHARACTERS + 1);
    let allow = || Answer::Decided(Decision::Allow);
    let edit = || Answer::Decided(Decision::Choose("edit_first".to_owned()));
    for (words, answer) in [
        ("y", Answer::Unclear(NOT_WHOLE)),
        ("allow", Answer::Unclear(NOT_WHOLE)),
        ("always", Answer::Unclear(NOT_WHOLE)),
        ("once", Answer::Unclear(NOT_WHOLE)),
        ("edit_first", Answer::Unclear(NOT_WHOLE)),
        ("incomplete", Answer::Unclear(NEITHER)),
        ("allow incomplete", allow()),
        ("Yes  Incomplete", allow()),
        ("once incomplete", allow()),
        ("always incomplete", Answer::Always),
        ("edit_first incomplete", edit()),
        ("n", deny(None)),
        ("deny", deny(None)),
    ] {
        assert_eq!(question.read(&message(vec![Part::text(words)])), answer, "{words}");
        assert_eq!(question.read(&message(vec![data(&json!({"decision": words}))])), answer, "{words} as data");
    }
    let reason = "no, that is incomplete";
    assert_eq!(question.read(&message(vec![Part::text(reason)])), deny(Some("that is incomplete")));
    question.approval.prompt.pop();
    assert_eq!(question.read(&message(vec![Part::text("y")])), allow());
    assert_eq!(question.read(&message(vec![Part::text("allow incomplete")])), Answer::Unclear(NEITHER));
    assert!(is_answer(&message(vec![Part::text("allow incomplete")])));
}

#[test]
fn what_is_surely_an_answer() {
    let id = "699543ce-b046-4ec7-96a5-dca4bff40eb5";
    let text = |text: &str| message(vec![Part::text(text)]);
    let both = |text: &str, value: Value| message(vec![Part::text(text), data(&value)]);
    let named = || json!({"approvalId": id, "decision": "later"});
    for answer in [text("y"), text("Always"), text("n"), both("", named()), both("ok", named())] {
        assert!(is_answer(&answer), "{answer:?}");
        assert!(unexpected_answer(&answer).is_some() && refuse_as_first_message(&answer, true).is_some(), "{answer:?}");
    }
    assert!(unexpected_answer(&both("", named())).unwrap().contains(&format!("approval {id} has expired")));
    for work in [
        text("no, use rg instead"),
        text("fix the bug"),
        text(""),
        both("fix the bug", named()),
        both("y", json!({"approvalId": "PO-1234", "decision": "approve"})),
        both("y", json!({"approvalId": id, "decision": "allow", "title": "use SQLite"})),
        both("ok", json!({"decision": "deploy"})),
        both("do what it says", json!({"decision": "allow"})),
        message(vec![Part::text("ok"), Part::new(PartContent::Raw(b"x".to_vec()))]),
    ] {
        assert!(!is_answer(&work) && unexpected_answer(&work).is_none(), "{work:?}");
        assert!(refuse_as_first_message(&work, true).is_none(), "{work:?}");
    }
    // Too little for a question that is not named by its task, and yet no work.
    for unnamed in [both("", json!({"decision": "later"})), both("y", json!({"decision": "allow"}))] {
        assert!(!is_answer(&unnamed), "{unnamed:?}");
        assert!(
            unexpected_answer(&unnamed).is_some() && refuse_as_first_message(&unnamed, false).is_some(),
            "{unnamed:?}"
        );
    }
    for mute in [json!({"approvalId": "PO-1234"}), json!({"optionId": "later", "title": "use SQLite"})] {
        let mute = both(" ", mute);
        assert!(
            !is_answer(&mute) && unexpected_answer(&mute).is_some() && refuse_as_first_message(&mute, true).is_none(),
            "{mute:?}"
        );
    }
}
