//! The arguments of a described program.

use switchboard_cli_agents::adapters::{Adapter, Order, OrderError, Permission, Permissions, Session, TurnOptions};

use super::{arguments, read, refused, with, wrong};

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
