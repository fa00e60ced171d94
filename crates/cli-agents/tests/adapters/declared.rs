//! Programs that a file describes.

use serde_json::{Value, json};
use switchboard_cli_agents::adapters::{
    Adapter, Declared, Ending, Event, Exit, FailureKind, Order, OrderError, Permission, Permissions, Session, Step,
    TurnOptions,
};

mod problems;

use crate::generic::{exited, failure, order, steps, text};
use crate::replay::Recording;

const GOOSE: &str = include_str!("../declarations/goose.yaml");
const QWEN: &str = include_str!("../declarations/qwen-code.yaml");
const AIDER: &str = include_str!("../declarations/aider.yaml");

fn read(yaml: &str) -> Declared {
    Declared::parse(yaml, "adapter.yaml").unwrap_or_else(|error| panic!("{error}"))
}

/// An order by an operator who allows everything, changed.
fn allowed(change: impl FnOnce(&mut Order)) -> Order {
    let mut order = order("fix it");
    order.permissions.default = Permission::Allow;
    change(&mut order);
    order
}

fn arguments(declared: &Declared, change: impl FnOnce(&mut Order)) -> Vec<String> {
    declared.start(&allowed(change)).map(|(launch, _)| launch.args).unwrap()
}

fn refused(declared: &Declared, change: impl FnOnce(&mut Order)) -> OrderError {
    declared.start(&allowed(change)).map(|_| ()).unwrap_err()
}

fn played(yaml: &str, recording: &str) -> Value {
    let (_, mut dialogue) = read(yaml).start(&allowed(|_| ())).unwrap();
    serde_json::to_value(Recording::open(recording).play(&mut *dialogue, &[]).steps).unwrap()
}

/// A declaration with these lines instead of those that begin with the same key.
fn with(lines: &str) -> String {
    const PLAIN: &str = "name: x\nbinary: { names: [x] }\nstart: { args: ['--p={prompt}'] }\noutput: text\n";
    let key = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
    let keys: Vec<String> = lines.lines().map(key).collect();
    let kept = PLAIN.lines().filter(|line| !keys.contains(&key(line)));
    kept.chain(lines.lines()).map(|line| format!("{line}\n")).collect()
}

/// What is wrong with such a declaration.
fn wrong(lines: &str) -> String {
    Declared::parse(&with(lines), "x.yaml").map(|_| ()).unwrap_err().to_string()
}

#[test]
fn goose_is_started_and_understood() {
    let goose = read(GOOSE);
    assert!(goose.about().capabilities.resume && goose.about().capabilities.chosen_session);
    let (launch, _) = goose.start(&allowed(|order| order.model = Some("m-1".to_owned()))).unwrap();
    let name = "--name=6f1c2a0e-0000-4000-8000-000000000001";
    assert_eq!(launch.args, ["run", "--output-format=stream-json", "--model", "m-1", name, "--text=fix it"]);
    assert_eq!(launch.env, [("GOOSE_MODE".to_owned(), "auto".to_owned())]);
    assert!(!launch.input);
    let resumed = arguments(&goose, |order| order.session = Session::Resume("s".to_owned()));
    assert_eq!(resumed, ["run", "--output-format=stream-json", "--resume", "--name=s", "--text=fix it"]);

    assert_eq!(
        played(GOOSE, "declared-goose-tool.txt"),
        json!([
            {"event": {"kind": "reasoning", "text": "a shell call"}},
            {"event": {"kind": "text", "text": "I will "}},
            {"event": {"kind": "text", "text": "look."}},
            {"event": {"kind": "text_end"}},
            {"event": {"kind": "tool_use", "id": "call_1", "tool": "developer__shell", "input": {"command": "ls"}}},
            {"event": {"kind": "notice", "text": "running ls"}},
            {"event": {"kind": "notice", "text": "half"}},
            {"event": {"kind": "tool_result", "id": "call_1", "tool": "developer__shell", "output": "a.txt\nb.txt",
                       "is_error": false}},
            {"event": {"kind": "tool_use", "id": "call_2", "tool": "developer__shell", "input": {"command": "rm /"}}},
            {"event": {"kind": "tool_result", "id": "call_2", "tool": "developer__shell",
                       "output": "refused by the user", "is_error": true}},
            {"event": {"kind": "text", "text": "Two files."}},
            {"event": {"kind": "text_end"}},
            {"finish": {"done": {"answer": "Two files."}}},
        ])
    );
    assert_eq!(
        played(GOOSE, "declared-goose-error.txt"),
        json!([
            {"event": {"kind": "text", "text": "Let me"}},
            {"event": {"kind": "text_end"}},
            {"finish": {"failed": {"kind": "reported", "message": "Authentication failed: 401"}}},
        ])
    );
}

#[test]
fn qwen_code_is_started_and_understood() {
    let qwen = read(QWEN);
    assert!(qwen.about().capabilities.resume && !qwen.about().capabilities.chosen_session);
    let args = arguments(&qwen, |order| {
        order.prompt = "--yolo".to_owned();
        order.args = vec!["--debug".to_owned()];
    });
    assert_eq!(args, ["--output-format=stream-json", "--approval-mode=yolo", "--debug", "--prompt=--yolo"]);
    let denied = arguments(&qwen, |order| order.permissions.default = Permission::Deny);
    assert!(denied.contains(&"--approval-mode=plan".to_owned()), "{denied:?}");
    let error = refused(&qwen, |order| order.permissions.default = Permission::Ask).to_string();
    assert_eq!(error, "permissions.default: Qwen Code cannot be run with ask: write allow or deny");
    let error = refused(&qwen, |order| order.permissions.deny = vec!["shell".to_owned()]).to_string();
    assert!(error.contains("single tools cannot be allowed or denied"), "{error}");
}

#[test]
fn what_qwen_code_said_is_understood() {
    let input = json!({"command": "echo hello", "description": "say hello", "is_background": false});
    assert_eq!(
        played(QWEN, "declared-qwen-tool.txt"),
        json!([
            {"event": {"kind": "init", "session": "646a479d-d500-4ea0-9059-60a44dddfb2c", "model": "fake-model"}},
            {"event": {"kind": "tool_use", "id": "call_1", "tool": "run_shell_command", "input": input}},
            {"event": {"kind": "tool_result", "id": "call_1", "tool": "run_shell_command", "output": "hello",
                       "is_error": false}},
            {"event": {"kind": "text", "text": "The tool has answered."}},
            {"event": {"kind": "text_end"}},
            {"event": {"kind": "usage", "scope": "session", "input_tokens": 200, "cached_tokens": 0,
                       "output_tokens": 14, "reasoning_tokens": 0}},
            {"finish": {"done": {"answer": "The tool has answered."}}},
        ])
    );
    let last = |recording| played(QWEN, recording).as_array().unwrap().last().unwrap()["finish"].clone();
    assert_eq!(last("declared-qwen-resume.txt"), json!({"done": {"answer": "Hello there."}}));
    for (recording, kind, message) in [
        ("declared-qwen-refused.txt", "refused", "run_shell_command"),
        ("declared-qwen-400.txt", "reported", "[API Error: 400 bad model]"),
        ("declared-qwen-limit.txt", "limit", "Reached max session turns"),
    ] {
        assert_eq!(last(recording), json!({"failed": {"kind": kind, "message": message}}), "{recording}");
    }
    let unknown = &last("declared-qwen-unknown.txt")["failed"];
    assert_eq!(unknown["kind"], "unknown_session");
    let message = unknown["message"].as_str().unwrap();
    assert!(message.starts_with("Qwen Code exited with code 1: No saved session found with ID"), "{message}");
}

#[test]
fn what_an_inner_agent_says_is_not_for_the_caller() {
    assert_eq!(
        played(QWEN, "declared-qwen-inner.txt"),
        json!([
            {"event": {"kind": "init", "session": "s-1", "model": "qwen3-coder-plus"}},
            {"event": {"kind": "reasoning", "text": "one file"}},
            {"event": {"kind": "text", "text": "Reading it."}},
            {"event": {"kind": "text_end"}},
            {"event": {"kind": "tool_use", "id": "t1", "tool": "agent", "input": {"path": "a.txt"}}},
            {"event": {"kind": "tool_result", "id": "t1", "tool": "agent", "output": "hello", "is_error": false}},
            {"event": {"kind": "notice", "text": "a warning that is no JSON"}},
            {"event": {"kind": "text", "text": "It says hello."}},
            {"event": {"kind": "text_end"}},
            {"event": {"kind": "usage", "scope": "session", "input_tokens": 1850, "cached_tokens": 800,
                       "output_tokens": 28, "reasoning_tokens": 0}},
            {"finish": {"done": {"answer": "It says hello."}}},
        ])
    );
}

#[test]
fn an_end_without_words_is_looked_up() {
    let yaml = with("exits: [{ code: 41, kind: notLoggedIn }, { stderr: too long, kind: limit }]");
    let ended = |code: i32, stderr: &str, interrupted: bool| {
        let (_, mut dialogue) = read(&yaml).start(&allowed(|_| ())).unwrap();
        steps(&mut *dialogue, |dialogue, steps| {
            if interrupted {
                dialogue.interrupt(steps);
            }
            dialogue.ended(&Exit { stderr: stderr.to_owned(), ..exited(code) }, steps);
        })
    };
    assert_eq!(failure(&ended(41, "", false)).0, FailureKind::NotLoggedIn);
    assert_eq!(failure(&ended(1, "context is too long\nsee the log", false)).0, FailureKind::Limit);
    assert_eq!(failure(&ended(1, "", false)).0, FailureKind::Reported);
    assert_eq!(failure(&ended(41, "", true)).0, FailureKind::Interrupted);
    assert_eq!(ended(0, "too long", false), [Step::Finish(Ending::Done { answer: None })]);
}

#[test]
fn aider_speaks_text_and_its_exit_code_is_its_result() {
    let aider = read(AIDER);
    assert_eq!(aider.about().binary.version_args, ["--version"]);
    let (launch, mut dialogue) = aider.start(&allowed(|_| ())).unwrap();
    assert_eq!(launch.args, ["--yes-always", "--no-stream", "--no-pretty", "--message=fix it"]);
    let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line("\u{1b}[1mApplied edit\u{1b}[0m", steps));
    assert_eq!(told, [text("Applied edit\n")]);
    let ended = steps(&mut *dialogue, |dialogue, steps| dialogue.ended(&exited(0), steps));
    assert_eq!(ended.last(), Some(&Step::Finish(Ending::Done { answer: Some("Applied edit".to_owned()) })));
    let (_, mut dialogue) = aider.start(&allowed(|_| ())).unwrap();
    let ended = steps(&mut *dialogue, |dialogue, steps| dialogue.ended(&exited(1), steps));
    assert_eq!(failure(&ended), (FailureKind::Reported, "Aider exited with code 1"));

    let error = refused(&aider, |order| order.permissions.default = Permission::Ask).to_string();
    assert_eq!(error, "permissions.default: Aider cannot be run with ask: write allow");
    let error = refused(&aider, |order| order.session = Session::Resume("s".to_owned())).to_string();
    assert_eq!(error, "Aider cannot take up a conversation again: begin a new one");
    let error = refused(&aider, |order| order.effort = Some("high".to_owned())).to_string();
    assert_eq!(error, "Aider has no argument for effort: remove effort");
    assert_eq!(refused(&aider, |order| order.prompt = String::new()), OrderError::NoPrompt);
}

#[test]
fn the_examples_in_the_documentation_can_be_read() {
    let page = include_str!("../../../../docs/cli-agents/programs.md");
    let examples = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let titles = examples
        .filter(|example| example.starts_with("# adapters/"))
        .map(|example| read(example).about().title.clone());
    assert_eq!(titles.collect::<Vec<_>>(), ["Aider", "goose"]);
}

#[test]
fn a_program_without_a_result_line_can_be_judged_by_its_exit() {
    let yaml = with("output: jsonl\nsuccess: exit\nrules: [{ text: t, filesChanged: files, notice: note }]");
    let (_, mut dialogue) = read(&yaml).start(&allowed(|_| ())).unwrap();
    let told = steps(&mut *dialogue, |dialogue, steps| {
        dialogue.line(r#"{"t":"a","files":["x","y"]}"#, steps);
        dialogue.line(r#"{"note":3}"#, steps);
        dialogue.ended(&exited(0), steps);
    });
    let expected = [
        text("a"),
        Step::Event(Event::FilesChanged { paths: vec!["x".to_owned(), "y".to_owned()] }),
        Step::Event(Event::Notice { text: "3".to_owned() }),
        Step::Event(Event::TextEnd),
        Step::Finish(Ending::Done { answer: Some("a".to_owned()) }),
    ];
    assert_eq!(told, expected);

    let yaml = with("output: jsonl\nrules: [{ when: { end: true }, done: {} }]");
    let ended = |yaml: &str, interrupted: bool| {
        let (_, mut dialogue) = read(yaml).start(&allowed(|_| ())).unwrap();
        steps(&mut *dialogue, |dialogue, steps| {
            if interrupted {
                dialogue.interrupt(steps);
            }
            dialogue.line(r#"{"end":false}"#, steps);
            dialogue.ended(&exited(0), steps);
        })
    };
    assert_eq!(failure(&ended(&yaml, false)).0, FailureKind::NoResult);
    assert_eq!(failure(&ended(&yaml, true)).0, FailureKind::Interrupted);
}

#[test]
fn conditions_compare_values_lists_and_presence() {
    let fits = |when: &str, line: &str| {
        let yaml = with(&format!("output: jsonl\nrules: [{{ when: {when}, done: {{}} }}]"));
        let (_, mut dialogue) = read(&yaml).start(&allowed(|_| ())).unwrap();
        !steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps)).is_empty()
    };
    for (when, line, fit) in [
        ("{ a: 1 }", r#"{"a":1}"#, true),
        ("{ a: 1 }", r#"{"a":1.0}"#, true),
        ("{ a: 1 }", r#"{"a":"1"}"#, false),
        ("{ a: true }", r#"{"a":true}"#, true),
        ("{ a: yes }", r#"{"a":"yes"}"#, true),
        ("{ a: yes }", r#"{"a":true}"#, false),
        ("{ a: null }", r#"{"a":null}"#, true),
        ("{ a: null }", r#"{"b":1}"#, true),
        ("{ a: null }", r#"{"a":0}"#, false),
        ("{ a: [x, y] }", r#"{"a":"y"}"#, true),
        ("{ a: [x, null] }", "{}", true),
        ("{ a: [x, y] }", r#"{"a":"z"}"#, false),
        ("{ a: { exists: true } }", r#"{"a":{}}"#, true),
        ("{ a: { exists: true } }", r#"{"a":null}"#, false),
        ("{ a: { exists: false } }", r#"{"b":1}"#, true),
        ("{ a.*.t: x }", r#"{"a":[{"t":"w"},{"t":"x"}]}"#, true),
        ("{ a: 1, b: 2 }", r#"{"a":1}"#, false),
    ] {
        assert_eq!(fits(when, line), fit, "{when} {line}");
    }
}

#[test]
fn a_value_can_never_become_an_option() {
    let declared = |args: &str| with(&format!("start: {{ args: {args} }}"));
    for args in [
        r#"["{prompt}"]"#,
        r#"[run, "{prompt}"]"#,
        r#"["--{prompt}"]"#,
        r#"["{prompt} please"]"#,
        r#"[[--, "{model}"], "{prompt}"]"#,
    ] {
        let error = wrong(&format!("start: {{ args: {args} }}"));
        assert!(error.contains("x.yaml: start.args[") && error.contains("taken for an option"), "{args} {error}");
    }
    let dashed = |yaml: &str| arguments(&read(yaml), |order| order.prompt = "-rf".to_owned());
    assert_eq!(dashed(&declared(r#"[run, --, "{prompt}"]"#)), ["run", "--", "-rf"]);
    assert_eq!(dashed(&declared(r#"[run, [--, "{prompt}"]]"#)), ["run", "--", "-rf"]);
    assert_eq!(dashed(&declared(r#"["-m={prompt}"]"#)), ["-m=-rf"]);
    let after_flag = read(&declared(r#"[--message, "{prompt}"]"#));
    assert_eq!(arguments(&after_flag, |_| ()), ["--message", "fix it"]);
    let error = refused(&after_flag, |order| order.prompt = "--yes".to_owned()).to_string();
    assert!(error.starts_with("the message begins with a dash"), "{error}");

    let both = with(
        "start: { args: ['--p={prompt}', '{session}'] }\nresume: { args: [--resume, '{session}', '--p={prompt}'] }",
    );
    let error = refused(&read(&both), |order| order.session = Session::Resume("--all".to_owned())).to_string();
    assert!(error.starts_with("the session begins with a dash"), "{error}");
    let error = refused(&read(&both), |order| order.session = Session::Resume("a\0".to_owned())).to_string();
    assert!(error.starts_with("the session holds a zero character"), "{error}");
    assert_eq!(refused(&read(&both), |order| order.prompt = "a\0".to_owned()), OrderError::ZeroByte);
    let most = Order::LONGEST_ARGUMENT - "--p=".len();
    let long = refused(&read(&both), |order| order.prompt = "x".repeat(most + 1));
    assert_eq!(long, OrderError::PromptTooLong { bytes: most + 1, most });
    assert_eq!(arguments(&read(&both), |order| order.prompt = "x".repeat(most)).len(), 2);
}

#[test]
fn a_prompt_is_never_part_of_a_text_that_is_run() {
    for (name, args) in [
        ("sh", r#"[-c, "lint {prompt}"]"#),
        ("/bin/bash", r#"[-lc, "{prompt}"]"#),
        ("node", r#"["--eval", "run('{prompt}')"]"#),
        ("perl", r#"[-ne, "{prompt}"]"#),
        ("env", r#"["--split-string=python3 -c {prompt}"]"#),
        ("env", r#"["--split=python3 -c {prompt}"]"#),
        ("env", r#"["-S FOO=1 python3 -c {prompt}"]"#),
        ("sudo", r#"[env, "-iSA=1 agent --message {prompt}"]"#),
        ("node", r#"["--eval={prompt}"]"#),
        ("bash", r#"[-c, "--", "{prompt}"]"#),
        ("env", r#"[python3, -c, "{prompt}"]"#),
        ("sudo", r#"[nice, -n, "5", bash, -c, "{prompt}"]"#),
        ("ssh", r#"[host, --, "{prompt}"]"#),
        ("bash", r#"[-euxc, "lint {prompt}"]"#),
        ("python3", r#"["-cx={prompt}"]"#),
        ("node", r#"["--print=run({prompt})"]"#),
        ("aider, bash", r#"[-cx, --, "{prompt}"]"#),
        ("python3", r#"[-u, ["{model}"], --, "{prompt}"]"#),
    ] {
        let error = wrong(&format!("binary: {{ names: [{name}] }}\nstart: {{ args: {args} }}"));
        assert!(error.contains("would let the program run what a caller writes"), "{error}");
    }
    for glued in ["-m", "-c"] {
        let error = wrong(&format!("start: {{ args: ['{glued}{{prompt}}'] }}"));
        assert!(error.contains("is glued to its flag"), "{error}");
    }
    let input = with("binary: { names: [bash] }\nstart: { args: [run.sh], input: prompt }");
    assert_eq!(arguments(&read(&input), |order| order.prompt = "$(id)".to_owned()), ["run.sh"]);
    let safe = with("binary: { names: [sh] }\nstart: { args: [-c, 'lint \"$1\"', --, '{prompt}'] }");
    assert_eq!(
        arguments(&read(&safe), |order| order.prompt = "$(id)".to_owned()),
        ["-c", "lint \"$1\"", "--", "$(id)"]
    );
    let script = with("binary: { names: [python3] }\nstart: { args: [agent.py, '--p={prompt}'] }");
    assert_eq!(arguments(&read(&script), |_| ()), ["agent.py", "--p=fix it"]);
    let in_folder = with("binary: { names: [python3] }\nstart: { args: ['{cwd}/agent.py', --, '{prompt}'] }");
    assert_eq!(arguments(&read(&in_folder), |_| ()), ["/home/agent/project/agent.py", "--", "fix it"]);

    let plain = read(&with("start: { args: [--x, '{prompt}'] }"));
    let allow = Permissions { default: Permission::Allow, ..Permissions::default() };
    plain.check_args(None, &allow, &["-v".to_owned()]).unwrap();
    let error = plain.check_args(Some("/bin/bash".as_ref()), &allow, &["-cx".to_owned()]).unwrap_err();
    assert_eq!((&*error.field, &*error.wrong), ("args", "would let the program run what a caller writes"));
    let added =
        with("permissions: { allow: { args: [ssh] } }\nbinary: { names: [nice] }\nstart: { args: [--, '{prompt}'] }");
    let error = refused(&read(&added), |order| order.permissions = allow.clone()).to_string();
    assert!(error.starts_with("args: would let the program run"), "{error}");
}

#[test]
fn absent_values_take_their_flags_with_them_and_added_arguments_find_their_place() {
    let yaml = with(
        "start: { args: [-j, [--model, '{model}'], '--effort={effort}', '-C{cwd}', '{\"a\":1}', --msg, '{prompt}'] }",
    );
    let declared = read(&yaml);
    assert_eq!(arguments(&declared, |_| ()), ["-j", "-C/home/agent/project", "{\"a\":1}", "--msg", "fix it"]);
    let all = arguments(&declared, |order| {
        order.model = Some("m".to_owned());
        order.effort = Some("high".to_owned());
        order.args = vec!["--more".to_owned()];
    });
    let expected =
        ["-j", "--model", "m", "--effort=high", "-C/home/agent/project", "{\"a\":1}", "--more", "--msg", "fix it"];
    assert_eq!(all, expected);
    let added = |lines: &str| arguments(&read(&with(lines)), |order| order.args = vec!["+".to_owned()]);
    assert_eq!(added("start: { args: [a, --, b, '{prompt}'] }"), ["a", "+", "--", "b", "fix it"]);
    assert_eq!(added("start: { args: [a, b], input: prompt }"), ["a", "b", "+"]);
    assert_eq!(added("start: { args: [a, '--p={prompt}', b] }"), ["a", "+", "--p=fix it", "b"]);
}

#[test]
fn what_a_conversation_was_told_when_it_began_need_not_be_told_again() {
    let start = "start: { args: [[--model, '{model}'], '--name={session}', '--p={prompt}'] }";
    let declared = read(&with(&format!("{start}\nresume: {{ args: ['--resume={{session}}', '--p={{prompt}}'] }}")));
    let model = |order: &mut Order| order.model = Some("m".to_owned());
    let resumed = arguments(&declared, |order| {
        model(order);
        order.session = Session::Resume("s".to_owned());
    });
    assert_eq!(resumed, ["--resume=s", "--p=fix it"]);
    let retold = TurnOptions { model: false, effort: false };
    assert_eq!((declared.told(), declared.retold()), (TurnOptions { model: true, effort: false }, retold));
    let error = refused(&declared, |order| {
        order.effort = Some("high".to_owned());
        order.session = Session::Resume("s".to_owned());
    });
    assert_eq!(error.to_string(), "x has no argument for effort: remove effort", "it was never told");
}

#[test]
fn a_prompt_can_be_written_and_questions_answered() {
    let yaml = with(
        "start: { args: [], input: prompt }\napprovals: { pattern: '\\?$', no: stop }\noutput: text\nenv: { A: '1' }",
    );
    let declared = read(&yaml);
    assert!(declared.about().capabilities.approvals);
    let (launch, mut dialogue) = declared.start(&order("fix it")).unwrap();
    assert_eq!((launch.input, launch.env), (true, vec![("A".to_owned(), "1".to_owned())]));
    let begun = steps(&mut *dialogue, |dialogue, steps| dialogue.begin(steps));
    assert_eq!(begun, [Step::Write("fix it".to_owned())]);
    let asked = steps(&mut *dialogue, |dialogue, steps| dialogue.pause("Sure?", steps));
    assert!(matches!(asked.as_slice(), [Step::Event(Event::ApprovalRequired(_))]), "{asked:?}");
    let denied = switchboard_cli_agents::adapters::Decision::Deny { reason: None };
    let answered = steps(&mut *dialogue, |dialogue, steps| dialogue.decide("1", &denied, steps));
    assert_eq!(answered, [Step::Write("stop".to_owned())]);

    let plain = read(&with("start: { args: [], input: prompt }"));
    let (_, mut dialogue) = plain.start(&allowed(|order| order.prompt = "a\nb".to_owned())).unwrap();
    let begun = steps(&mut *dialogue, |dialogue, steps| dialogue.begin(steps));
    assert_eq!(begun, [Step::Write("a\nb".to_owned()), Step::CloseInput]);
}

#[test]
fn hostile_lines_do_no_harm() {
    let (_, mut dialogue) = read(QWEN).start(&allowed(|_| ())).unwrap();
    let deep = format!("{{\"type\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    for line in [
        "",
        "{}",
        r#"{"type":["assistant"]}"#,
        r#"{"type":"assistant"}"#,
        r#"{"type":"assistant","message":{"content":[null,1,"x",{"type":"text"},{"type":"text","text":""}]}}"#,
        r#"{"type":"assistant","message":{"content":{"type":"unknown"}}}"#,
    ] {
        assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps)), [], "{line}");
    }
    for line in ["[]", "nonsense", r#"{"type":"assistant""#, &deep] {
        let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps));
        assert!(matches!(told.as_slice(), [Step::Event(Event::Notice { .. })]), "{told:?}");
    }
    let ended = steps(&mut *dialogue, |dialogue, steps| dialogue.line(r#"{"type":"result","is_error":true}"#, steps));
    assert_eq!(failure(&ended), (FailureKind::Reported, "Qwen Code did not say why"));
    let late = r#"{"type":"result","is_error":false,"result":"ok"}"#;
    assert_eq!(steps(&mut *dialogue, |dialogue, steps| dialogue.line(late, steps)), []);
}

#[test]
fn lines_cut_anywhere_do_no_harm() {
    let line =
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"ä","name":"b","input":{"c":[1]}}]}}"#;
    let (_, mut dialogue) = read(QWEN).start(&allowed(|_| ())).unwrap();
    for at in line.char_indices().map(|(at, _)| at) {
        let told = steps(&mut *dialogue, |dialogue, steps| {
            dialogue.line(&line[..at], steps);
            dialogue.line(&line[at..], steps);
        });
        let calls = told.iter().filter(|step| matches!(step, Step::Event(Event::ToolUse { .. }))).count();
        assert_eq!(calls, usize::from(at == 0), "{at}");
    }
}

#[test]
fn paths_step_through_members_and_lists_and_take_the_first_that_leads_somewhere() {
    let line = r#"{"a":{"b":[{"c":"x"},{"c":2},{"d":null}],"0":"zero"},"n":null}"#;
    for (path, expected) in [
        ("a.b.0.c", Some("x")),
        ("a.b.1.c", Some("2")),
        ("a.b.*.c", Some("x\n2")),
        ("a.0", Some("zero")),
        ("a.b.2", Some(r#"{"d":null}"#)),
        (".", Some(line)),
        ("n", None),
        ("a.b.c", None),
        ("a.b.9.c", None),
        ("a.b.-1.c", None),
        ("a.*", None),
        ("n|a.0|a.b.0.c", Some("zero")),
    ] {
        let yaml = with(&format!("output: jsonl\nsuccess: exit\nrules: [{{ notice: '{path}' }}]"));
        let (_, mut dialogue) = read(&yaml).start(&allowed(|_| ())).unwrap();
        let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line(line, steps));
        let expected = expected.map(|text| Step::Event(Event::Notice { text: text.to_owned() }));
        assert_eq!(told, Vec::from_iter(expected), "{path}");
    }
    for path in ["a.", ".a", "a..b", "a|"] {
        assert!(
            wrong(&format!("output: jsonl\nrules: [{{ notice: '{path}', done: {{}} }}]")).contains("is not a place")
        );
    }
}

#[test]
fn words_in_braces_are_filled_in_and_other_braces_stay() {
    for (argument, expected) in [
        ("--text={prompt}!", "--text=fix it!"),
        ("x{session}{cwd}", "x6f1c2a0e-0000-4000-8000-000000000001/home/agent/project"),
        (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#),
        ("{}{}", "{}{}"),
        ("{", "{"),
        ("}", "}"),
        ("{a b}", "{a b}"),
        ("ä{ö}", "ä{ö}"),
        ("x{{cwd}}", "x{/home/agent/project}"),
    ] {
        let prompt = if argument.contains("{prompt}") { "" } else { "\n  input: prompt" };
        let yaml = with(&format!("start:\n  args: ['{argument}']{prompt}")).replace("start: \n", "start:\n");
        assert_eq!(arguments(&read(&yaml), |_| ()), [expected], "{argument}");
    }
}

#[test]
fn a_call_ends_a_message_unless_the_rules_say_what_does_and_switched_off_answers_are_named() {
    let rules = "output: jsonl\nrules: [{ when: { kind: text }, text: text }, { when: { kind: call }, toolUse: { id: id } }, \
                 { when: { kind: ask }, approval: { prompt: text } }, { when: { kind: end }, textEnd: true }, \
                 { when: { kind: done }, done: {}, usage: { inputTokens: input } }]";
    let unmarked = rules.replace("{ when: { kind: end }, textEnd: true }, ", "");
    for (rules, expected) in [(rules, "a b"), (&unmarked, "b")] {
        let (_, mut dialogue) = read(&with(rules)).start(&allowed(|_| ())).unwrap();
        let told = steps(&mut *dialogue, |dialogue, steps| {
            for line in [
                r#"{"kind":"text","text":"a "}"#,
                r#"{"kind":"call","id":"1"}"#,
                r#"{"kind":"text","text":"b"}"#,
                r#"{"kind":"done"}"#,
            ] {
                dialogue.line(line, steps);
            }
        });
        assert_eq!(told.last(), Some(&Step::Finish(Ending::Done { answer: Some(expected.to_owned()) })));
        assert!(!told.iter().any(|step| matches!(step, Step::Event(Event::Usage(_)))), "{told:?}");
    }
    let (_, mut dialogue) = read(&with(rules)).start(&allowed(|_| ())).unwrap();
    let told = steps(&mut *dialogue, |dialogue, steps| dialogue.line(r#"{"kind":"ask","text":"Sure?"}"#, steps));
    let expected = "x asked \"Sure?\", and answers to it are switched off: set approvals: { events: true }";
    assert_eq!(failure(&told), (FailureKind::Refused, expected));
}
