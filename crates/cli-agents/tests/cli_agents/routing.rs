//! Which of an agent's programs does a task.

use serde_json::Value;
use switchboard_a2a::TaskState;
use switchboard_cli_agents::{ByDifficulty, Classifier, Difficulty, Settings, Worker, Workers};

use crate::fixture::Fixture;
use crate::harness::*;
use crate::resuming::Resuming;

fn settings(fixture: &Fixture) -> Settings {
    let program = r#"hear; tell "{\"kind\":\"init\",\"session\":\"s-$3\"}"; finish "$3 $1 $2""#;
    let worker =
        |name: &str| Worker { args: vec![name.to_owned()], ..Worker::new(Resuming::new(fixture.asking(program))) };
    let workers = ByDifficulty {
        complex: worker("thinker"),
        mid: worker("worker"),
        routine: worker("hand"),
        classifier: Classifier::default(),
    };
    let workers = Workers::ByDifficulty(Box::new(workers));
    Settings { workers, ..Settings::new("coder", worker("nobody"), fixture.work()) }
}

/// Who answered, and whether it took up a session.
fn who(task: &switchboard_a2a::Task) -> String {
    assert_eq!(task.status.state, TaskState::Completed, "{}", status_text(task));
    status_text(task).split(' ').take(2).collect::<Vec<&str>>().join(" ")
}

#[test]
fn the_text_decides_who_works_and_the_caller_can_say_so() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, settings(&fixture));
    harness.run(async {
        let task = harness.send("refactor the auth module").await;
        assert_eq!(who(&task), "thinker new");
        assert_eq!(data(&task, "agent-metadata")["profile"], "COMPLEX");
        assert_eq!(who(&harness.send("fix a typo").await), "hand new");
        assert_eq!(who(&harness.send("add tests").await), "worker new");
        let wished = |profile: &str| Said::from("fix a typo").with("profile", profile);
        assert_eq!(who(&harness.send(wished("COMPLEX")).await), "thinker new");
        assert_eq!(who(&harness.send(wished("mid")).await), "worker new");
        assert_eq!(who(&harness.send(wished("another agent's word")).await), "hand new");
    });
}

#[test]
fn the_operator_can_say_which_words_tell_a_hard_task() {
    let fixture = Fixture::new();
    let mut settings = settings(&fixture);
    if let Workers::ByDifficulty(workers) = &mut settings.workers {
        workers.classifier = Classifier::new(Some(&["schema".to_owned()]), Some(&["changelog".to_owned()]));
    }
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        for (text, answered) in [
            ("change the Schema", "thinker new"),
            ("mend the changelog of the schema", "thinker new"),
            ("mend the changelog", "hand new"),
            ("refactor it", "worker new"),
        ] {
            assert_eq!(who(&harness.send(text).await), answered, "{text}");
        }
    });
}

#[test]
fn a_conversation_stays_with_whom_it_began_unless_the_caller_says_otherwise() {
    let fixture = Fixture::new();
    let harness = Harness::open(&fixture, settings(&fixture));
    harness.run(async {
        assert_eq!(who(&harness.send(within("c", "refactor it")).await), "thinker new");
        assert_eq!(status_text(&harness.send(within("c", "fix a typo")).await), "thinker resume s-thinker");
    });
}

#[test]
fn a_request_chooses_among_the_models_of_the_program_that_works() {
    let fixture = Fixture::new();
    let mut settings = settings(&fixture);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    if let Workers::ByDifficulty(workers) = &mut settings.workers {
        (workers.complex.models, workers.complex.efforts) = (names(&["large", "huge"]), names(&["high"]));
        workers.mid.models = names(&["small"]);
    }
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let task = harness.send(Said::from("refactor it").with("model", "huge").with("effort", "high")).await;
        assert_eq!((who(&task).as_str(), &data(&task, "agent-metadata")["model"]), ("thinker new", &"huge".into()));
        for (text, key, wish, expected) in [
            (
                "refactor",
                "model",
                "small",
                "\"small\" is not one of large, huge, which profile COMPLEX of this agent takes",
            ),
            ("add tests", "model", "huge", "\"huge\" is not one of small, which profile MID of this agent takes"),
            (
                "fix a typo",
                "model",
                "small",
                "profile ROUTINE of this agent does not let requests choose the model; leave it out",
            ),
            (
                "add tests",
                "effort",
                "high",
                "profile MID of this agent does not let requests choose the effort; leave it out",
            ),
        ] {
            let task = harness.send(Said::from(text).with(key, wish)).await;
            assert_eq!(ending(&task), (TaskState::Rejected, format!("metadata.{key}: {expected}")));
        }
        // The conversation decides who works, and so what may be chosen.
        harness.send(within("c", "refactor it")).await;
        assert_eq!(who(&harness.send(within("c", "fix a typo").with("model", "large")).await), "thinker resume");
    });
}

#[test]
fn a_program_of_another_kind_knows_nothing_of_the_session() {
    let fixture = Fixture::new();
    let mut settings = settings(&fixture);
    let program = Resuming::new(fixture.asking("hear; finish \"other $1 $2\"")).named("other");
    if let Workers::ByDifficulty(workers) = &mut settings.workers {
        workers.routine = Worker::new(program);
    }
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        assert_eq!(who(&harness.send(within("c", "refactor it")).await), "thinker new");
        let task = harness.send(within("c", "fix a typo").with("profile", "ROUTINE")).await;
        assert_eq!(who(&task), "other new");
    });
}

#[test]
fn a_conversation_that_moves_to_another_program_is_remembered_there() {
    let fixture = Fixture::new();
    let mut settings = settings(&fixture);
    let other = r#"hear; [ -e "$NOTES/ready" ] || { tell '{"kind":"error","message":"no key","failure":"not_logged_in"}'; exit 1; }
        tell '{"kind":"init","session":"s-other"}'; finish "other $1 $2""#;
    let program = Resuming::new(fixture.asking(other)).named("other");
    let forgetful = fixture.asking("hear; finish forgetful");
    if let Workers::ByDifficulty(workers) = &mut settings.workers {
        workers.routine = Worker::new(program);
        workers.mid = Worker::new(forgetful);
    }
    let harness = Harness::open(&fixture, settings);
    let prompt = || {
        let heard: Value = serde_json::from_str(fixture.heard().last().unwrap()).unwrap();
        heard["text"].as_str().unwrap().to_owned()
    };
    harness.run(async {
        let send = |text: &str, profile: &str| harness.send(within("c", text).with("profile", profile));
        send("refactor the blue module", "COMPLEX").await;
        assert_eq!(prompt(), "refactor the blue module");
        assert_eq!(reason(&send("fix a typo", "ROUTINE").await), "agent_error/not_logged_in");
        fixture.allow("ready");
        let task = send("fix a typo now", "ROUTINE").await;
        assert_eq!(who(&task), "other new");
        let told = prompt();
        assert!(told.contains("User: refactor the blue module\n\nYou: thinker new"), "{told}");
        assert!(told.contains("User: fix a typo\n") && told.ends_with("The new message:\n\nfix a typo now"), "{told}");
        let notice = "WORKING: sh has no session of this conversation; one begins with its transcript.";
        let log = harness.told(&task.id).await;
        assert!(log.iter().any(|told| told == notice), "{log:?}");

        assert_eq!(status_text(&send("again", "ROUTINE").await), "other resume s-other");
        assert_eq!(prompt(), "again", "its own session knows the rest");
        send("and back", "COMPLEX").await;
        assert!(prompt().contains("You: other resume s-other") && prompt().ends_with("and back"), "{}", prompt());
        send("just this", "MID").await;
        assert_eq!(prompt(), "just this", "a program without sessions knows only its message anyway");
    });
}

#[test]
fn a_conversation_stays_in_its_repository_whichever_program_works() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.work().join("other")).unwrap();
    let mut settings = Settings { repos: vec![fixture.work().to_owned()], ..settings(&fixture) };
    let program = |name: &str| Resuming::new(fixture.asking("hear; finish \"${PWD##*/}\"")).named(name);
    if let Workers::ByDifficulty(workers) = &mut settings.workers {
        workers.routine = Worker::new(program("first"));
        workers.complex = Worker::new(program("second"));
    }
    let harness = Harness::open(&fixture, settings);
    harness.run(async {
        let begun = within("c", "fix a typo").with("repo", "other");
        assert_eq!(status_text(&harness.send(begun).await), "other");
        for profile in ["COMPLEX", "ROUTINE", "COMPLEX"] {
            let task = harness.send(within("c", "go on").with("profile", profile)).await;
            assert_eq!(status_text(&task), "other", "{profile}");
        }
    });
}

#[test]
fn the_text_shows_how_hard_a_task_is() {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let usual = Classifier::default();
    let own = Classifier::new(Some(&words(&["Schema", "ÄNDERUNG"])), Some(&[]));
    let routine_as_usual = Classifier::new(Some(&words(&["Schema"])), None);
    for (classifier, text, difficulty) in [
        (&usual, "Refactor the auth module to use JWT", Difficulty::Complex),
        (&usual, "Find a SECURITY hole", Difficulty::Complex),
        (&usual, "design a cache", Difficulty::Complex),
        (&usual, "the designer asked for blue", Difficulty::Mid),
        (&usual, "fix the typo in the readme", Difficulty::Routine),
        (&usual, "rename and refactor", Difficulty::Complex),
        (&usual, "what information is in here?", Difficulty::Mid),
        (&usual, "add tests for src/date.ts", Difficulty::Mid),
        // Characters are counted, not bytes.
        (&usual, &"ö ".repeat(750), Difficulty::Mid),
        (&usual, &"ö ".repeat(751), Difficulty::Complex),
        (&own, "change the SCHEMA", Difficulty::Complex),
        (&own, "eine Änderung", Difficulty::Complex),
        (&own, "refactor it", Difficulty::Mid),
        (&own, "fix the typo", Difficulty::Mid),
        (&routine_as_usual, "fix the typo", Difficulty::Routine),
    ] {
        assert_eq!(classifier.classify(text), difficulty, "{text}");
    }
    assert_eq!((Difficulty::named("complex"), Difficulty::named("fast")), (Some(Difficulty::Complex), None));
}
