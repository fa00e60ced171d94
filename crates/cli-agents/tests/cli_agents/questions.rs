//! How questions read, and which messages answer them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use switchboard_a2a::{Json, Message, Part, PartContent, Role, Task, TaskState};
use switchboard_cli_agents::adapters::{
    About, Adapter, Approval, Choice, ChoiceKind, Decision, Dialogue, Event, Exit, FailureKind, Launch, Order,
    OrderError, Steps,
};
use switchboard_cli_agents::{Settings, Worker};
use switchboard_engine::Agent as _;

use crate::fixture::Fixture;
use crate::harness::*;

/// The longest prompt that is shown whole, and what is shown of each end of a longer one.
const PROMPT_CHARACTERS: usize = 16_000;
const EXCERPT_CHARACTERS: usize = 4_000;

const NEITHER: &str = "That was neither a yes nor a no.";
const DIVIDED: &str = "That said several things that do not agree.";
const MORE: &str = "That was more than an answer, which is words alone, or data with approvalId, decision and reason.";
const NO_YES: &str = "A plain yes is not taken here.";
const NOT_WHOLE: &str = "The command is not shown whole, so a plain yes is not taken.";

/// An adapter whose questions are a test's, whatever its program writes. Each is asked twice.
struct Asker {
    about: About,
    question: Arc<Mutex<Approval>>,
    decided: Arc<Mutex<Vec<Decision>>>,
}

struct Asking {
    waiting: VecDeque<Approval>,
    decided: Arc<Mutex<Vec<Decision>>>,
}

impl Adapter for Asker {
    fn about(&self) -> &About {
        &self.about
    }

    fn start(&self, _: &Order) -> Result<(Launch, Box<dyn Dialogue>), OrderError> {
        let question = self.question.lock().unwrap().clone();
        let again = Approval { request: "again".to_owned(), ..question.clone() };
        let dialogue = Asking { waiting: VecDeque::from([question, again]), decided: self.decided.clone() };
        Ok((Launch { input: true, ..Launch::default() }, Box::new(dialogue)))
    }
}

impl Dialogue for Asking {
    fn begin(&mut self, steps: &mut Steps) {
        match self.waiting.pop_front() {
            Some(approval) => steps.event(Event::ApprovalRequired(approval)),
            None => steps.done(None),
        }
    }

    fn line(&mut self, _: &str, _: &mut Steps) {}

    fn decide(&mut self, _: &str, decision: &Decision, steps: &mut Steps) {
        self.decided.lock().unwrap().push(decision.clone());
        self.begin(steps);
    }

    fn ended(&mut self, _: &Exit, steps: &mut Steps) {
        steps.fail(FailureKind::NoResult, "the program has ended");
    }
}

/// An agent whose questions are a test's.
struct Questions {
    harness: Harness,
    question: Arc<Mutex<Approval>>,
    decided: Arc<Mutex<Vec<Decision>>>,
    _fixture: Fixture,
}

impl Questions {
    fn new(choices: &[(&str, ChoiceKind)]) -> Self {
        let choice =
            |(id, kind): &(&str, ChoiceKind)| Choice { id: (*id).to_owned(), label: (*id).to_owned(), kind: *kind };
        let question = Arc::new(Mutex::new(Approval {
            request: "0".to_owned(),
            tool: "Bash".to_owned(),
            input: json!({"command": "cargo test"}),
            prompt: "Bash: cargo test".to_owned(),
            choices: choices.iter().map(choice).collect(),
            no_plain_yes: false,
            takes_reason: true,
        }));
        let fixture = Fixture::new();
        let (about, decided) = (fixture.asking("").about().clone(), Arc::default());
        let adapter = Asker { about, question: Arc::clone(&question), decided: Arc::clone(&decided) };
        let worker = Worker { program: Some("/bin/cat".into()), ..Worker::new(adapter) };
        let settings = Settings { repo_lock: false, ..Settings::new("coder", worker, fixture.work()) };
        Self { harness: Harness::open(&fixture, settings), question, decided, _fixture: fixture }
    }

    fn change(&self, change: impl FnOnce(&mut Approval)) {
        change(&mut self.question.lock().unwrap());
    }

    fn asked(&self) -> Task {
        self.harness.run(self.harness.send("go"))
    }

    /// Denies what a task asks until it ends: open questions hold permits.
    fn close(&self, mut task: Task) {
        while task.status.state == TaskState::InputRequired {
            task = self.harness.run(self.harness.reply(&task, "n"));
        }
    }

    /// The words of the question.
    fn words(&self) -> String {
        let asked = self.asked();
        let words = status_text(&asked);
        self.close(asked);
        words
    }

    /// What is shown of the call: the words before those about answers.
    fn shown(&self) -> String {
        let words = self.words();
        words.strip_prefix("Approve: ").unwrap().split("\nAnswer ").next().unwrap().to_owned()
    }

    fn is_incomplete(&self) -> bool {
        self.words().contains("\nThis is not all of it: ")
    }

    /// What comes of an answer: how the question was decided, twice if for the whole task, or why it was not.
    /// `$id` in data is the question's.
    fn answer(&self, parts: Vec<Part>) -> String {
        self.decided.lock().unwrap().clear();
        let asked = self.asked();
        let id = question(&asked)["approvalId"].as_str().unwrap().to_owned();
        let parts = parts.into_iter().map(|part| match part.content {
            PartContent::Data(json) => Part::data(Json::parse(&json.as_str().replace("$id", &id)).unwrap()),
            content => Part::new(content),
        });
        let message = Message { parts: parts.collect(), ..Message::text(Role::User, "") };
        let next = self.harness.run(self.harness.reply(&asked, Said(message)));
        let decision = |decision: &Decision| match decision {
            Decision::Allow => "allow".to_owned(),
            Decision::Deny { reason: None } => "deny".to_owned(),
            Decision::Deny { reason: Some(reason) } => format!("deny: {reason}"),
            Decision::Choose(choice) => format!("choose: {choice}"),
        };
        let decided: Vec<String> = self.decided.lock().unwrap().iter().map(decision).collect();
        let note = status_text(&next).lines().next().unwrap_or_default().to_owned();
        self.close(next);
        if decided.is_empty() { note } else { decided.join(", ") }
    }
}

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

#[test]
fn long_input_is_shown_in_part_and_of_a_long_command_both_ends() {
    let questions = Questions::new(&[("edit_first", ChoiceKind::Other)]);
    questions.change(|question| question.input = json!({"content": "ö".repeat(256 << 10)}));
    let data = question(&questions.asked());
    assert!(data.get("input").is_none());
    assert!(data["inputBeginning"].as_str().unwrap().ends_with("ö…"));

    let whole = format!("ö{}", "x".repeat(PROMPT_CHARACTERS - 1));
    questions.change(|question| (question.input, question.prompt) = (Value::Null, whole.clone()));
    let asked = questions.asked();
    assert!(status_text(&asked).starts_with(&format!("Approve: {whole}?\nAnswer y ")));
    assert!(question(&asked).get("omittedCharacters").is_none());

    let long = format!("begin{}; touch EVIL", "ö".repeat(PROMPT_CHARACTERS));
    let omitted = long.chars().count() - 2 * EXCERPT_CHARACTERS;
    questions.change(|question| question.prompt = long);
    let asked = questions.asked();
    let (begin, end) = ("ö".repeat(EXCERPT_CHARACTERS - 5), "ö".repeat(EXCERPT_CHARACTERS - 12));
    assert_eq!(
        status_text(&asked),
        format!(
            "Approve: begin{begin}\n  | «{omitted} characters left out»\n  | {end}; touch EVIL?\n\
             This is not all of it: {omitted} characters are left out, so a plain y is not taken. Answer allow \
             incomplete (this once), always incomplete (every Bash of this task) or n, with a reason if you like. It \
             also takes edit_first incomplete (edit_first)."
        )
    );
    let data = question(&asked);
    assert_eq!(data["omittedCharacters"], omitted);
    let ids: Vec<&str> =
        data["options"].as_array().unwrap().iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["allow incomplete", "always incomplete", "deny", "edit_first incomplete"]);
}

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
fn what_a_prompt_does_not_say_about_a_call_is_shown_with_it() {
    let questions = Questions::new(&[]);
    for (prompt, input, shown) in [
        ("Use Bash", json!({"command": "rm -rf ~"}), "Use Bash?\n  command: rm -rf ~"),
        ("mcp__x__y: harmless", json!({"query": "harmless", "script": "rm -rf ~"}), {
            "mcp__x__y: harmless?\n  script: rm -rf ~"
        }),
        ("Edit a.rs", json!({"file_path": "/p/a.rs", "old_string": "x", "new_string": "evil()\n}"}), {
            "Edit a.rs?\n  file_path: /p/a.rs\n  old_string: x\n  new_string: evil()\n  | }"
        }),
        ("Show files", json!({"command": "sh"}), "Show files?\n  command: sh"),
        ("Run ls (List)", json!({"command": "ls"}), "Run ls (List)?"),
        ("Run ls; rm x", json!({"command": "ls"}), "Run ls; rm x?\n  command: ls"),
        ("Please explain rm -rf ~", json!({"command": "rm -rf ~"}), {
            "Please explain rm -rf ~?\n  command: rm -rf ~"
        }),
        ("Which?\n- A: one\n- B", json!({"question": "Which?", "options": ["A", "B"]}), {
            "Which?\n  | - A: one\n  | - B?"
        }),
        ("Fix 2 files", json!({"files": 2}), "Fix 2 files?"),
        ("Is it true", json!({"force": true}), "Is it true?\n  force: true"),
        (r#"mcp__x__y: {"n":1}"#, json!({"n": 1}), r#"mcp__x__y: {"n":1}?"#),
        ("Go", json!({}), "Go?"),
        ("Go", json!(null), "Go?"),
        ("Go", json!("rm -rf ~"), "Go?\n  input: rm -rf ~"),
        ("Go", json!({"a": {"b": [1, {}]}, "c": "", "d": " x"}), {
            "Go?\n  a.b.0: 1\n  a.b.1: {}\n  c: \"\"\n  d: \" x\""
        }),
        ("Go", json!({"a: ls\nb": "\u{202e}"}), "Go?\n  \"a: ls\\nb\": \\u{202e}"),
    ] {
        questions.change(|question| {
            question.tool = prompt.split([':', ' ']).next().unwrap().to_owned();
            (question.prompt, question.input) = (prompt.to_owned(), input.clone());
        });
        assert_eq!(questions.shown(), shown, "{prompt} {input}");
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

#[test]
fn members_share_the_room_of_the_prompt_and_what_is_left_out_counts() {
    let questions = Questions::new(&[]);
    let long = "x".repeat(PROMPT_CHARACTERS);
    let input = |input: Value| questions.change(|question| question.input = input);
    questions.change(|question| question.prompt = "Edit".to_owned());
    input(json!({"old": long, "new": format!("{long}; touch EVIL"), "more": 7}));
    let asked = questions.words();
    assert!(asked.contains("\n  old: xx") && asked.contains("\n  new: xx"), "{asked}");
    assert!(asked.contains("x; touch EVIL\n  more: 7\nThis is not all of it: "), "{asked}");
    assert!(asked.chars().count() < PROMPT_CHARACTERS + 1_000);
    input(json!({"old": &long[..PROMPT_CHARACTERS - "Editold: ".len()]}));
    assert!(!questions.is_incomplete());
    input(json!({"old": &long[..PROMPT_CHARACTERS - "Editold:".len()]}));
    assert!(questions.is_incomplete());
    input(json!(vec![0; 10_000]));
    let asked = questions.asked();
    assert!(status_text(&asked).lines().count() <= 1_002);
    assert!(question(&asked)["omittedCharacters"].as_u64().unwrap() >= 9_000);

    // What is left out of a prompt says nothing about members.
    let filler = "x ".repeat(PROMPT_CHARACTERS);
    questions.change(|question| question.prompt = format!("{filler} rm -rf ~ {filler}"));
    input(json!({"command": "rm -rf ~"}));
    assert!(questions.words().contains("\n  command: rm -rf ~\n"));
}

#[test]
fn long_labels_are_shown_whole_or_take_no_plain_yes() {
    let questions = Questions::new(&[("later", ChoiceKind::Other)]);
    let label = format!("{}and delete everything", "Wait ".repeat(100));
    let labels = |label: &str, tool: &str| {
        questions.change(|question| {
            question.choices[0].label = label.to_owned();
            question.tool = tool.to_owned();
        });
    };
    labels(&label, &label);
    let asked = questions.words();
    assert!(asked.contains(&format!("later ({label})")), "{asked}");
    assert!(asked.contains(&format!("every {label} of this task")), "{asked}");
    assert!(!questions.is_incomplete());
    labels(&label.repeat(10), "Bash");
    assert!(questions.is_incomplete());
    labels("later", &label.repeat(10));
    assert!(questions.is_incomplete());
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
