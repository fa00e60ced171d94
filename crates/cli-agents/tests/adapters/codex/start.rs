//! What Codex is started with.

use switchboard_cli_agents::adapters::{Adapter as _, Codex, OrderError, Permission, Permissions};

use super::{order, resuming, start};

/// What is said of the folder of every order here.
const UNTRUSTED: &str = concat!(
    r#" -c projects={"/home/agent/project"={trust_level="untrusted"},"/home/agent"={trust_level="untrusted"},"#,
    r#""/home"={trust_level="untrusted"},"/"={trust_level="untrusted"}}"#,
);

/// What it is started with, less what is said of its folder.
fn args(order: &switchboard_cli_agents::adapters::Order) -> String {
    let whole = whole_args(order);
    assert_eq!(whole.matches(UNTRUSTED).count(), 1, "{whole}");
    whole.replace(UNTRUSTED, "")
}

fn whole_args(order: &switchboard_cli_agents::adapters::Order) -> String {
    let (launch, _) = start(order);
    assert!(launch.input && launch.env.is_empty());
    launch.args.join(" ")
}

fn rules(rules: &[&str]) -> Vec<String> {
    rules.iter().map(|rule| (*rule).to_owned()).collect()
}

#[test]
fn where_all_is_allowed_it_works_in_a_sandbox() {
    assert_eq!(
        args(&order(Permission::Allow)),
        r#"exec --json --skip-git-repo-check --sandbox workspace-write -c model="fake-model" -"#
    );
    let mut hard = order(Permission::Allow);
    hard.model = None;
    hard.effort = Some("hi\"gh".to_owned());
    assert_eq!(
        args(&hard),
        r#"exec --json --skip-git-repo-check --sandbox workspace-write -c model_reasoning_effort="hi\"gh" -"#
    );
}

#[test]
fn whatever_may_have_to_be_asked_or_refused_goes_through_the_app_server() {
    let without_search = r#"app-server -c web_search="disabled""#;
    let alone = r#"app-server -c web_search="disabled" -c features.multi_agent=false"#;
    assert_eq!(args(&order(Permission::Ask)), without_search);
    for (default, allow, deny, expected) in [
        (Permission::Ask, vec!["web_search"], vec![], "app-server"),
        (Permission::Allow, vec![], vec!["shell"], "app-server"),
        (Permission::Allow, vec![], vec!["web_*"], without_search),
        (Permission::Deny, vec!["apply_patch", "spawn_agent"], vec![], without_search),
        (Permission::Deny, vec!["apply_patch"], vec![], alone),
        (Permission::Deny, vec![], vec![], alone),
    ] {
        let mut order = order(default);
        order.permissions = Permissions { default, allow: rules(&allow), deny: rules(&deny), ..Permissions::default() };
        assert_eq!(args(&order), expected, "{:?}", order.permissions);
    }
}

#[test]
fn the_folder_is_not_trusted_unless_the_operator_has_a_word_on_it() {
    for default in [Permission::Allow, Permission::Ask, Permission::Deny] {
        let mut order = order(default);
        order.cwd = "/srv/a \"b\" = {c}".into();
        let said = r#"-c projects={"/srv/a \"b\" = {c}"={trust_level="untrusted"},"/srv"={"#;
        assert!(whole_args(&order).contains(said), "{}", whole_args(&order));
        order.args = rules(&["-c", "projects={\"/srv\"={trust_level=\"trusted\"}}"]);
        assert!(!whole_args(&order).contains("untrusted"), "{}", whole_args(&order));
    }
}

#[test]
fn a_conversation_is_taken_up_by_its_uuid_and_never_by_a_name_that_may_begin_a_new_one() {
    let id = "01a1dd3e-aaea-7493-8cfb-246a1fe694fc";
    let taken_up = args(&resuming(id, order(Permission::Allow)));
    assert!(taken_up.ends_with(&format!(" resume {id} -")), "{taken_up}");
    for permission in [Permission::Allow, Permission::Ask] {
        let error = Codex.start(&resuming("--last", order(permission))).err().unwrap();
        assert_eq!(
            error.to_string(),
            "the conversation \"--last\" cannot be taken up again: Codex names its conversations with UUIDs"
        );
    }
}

#[test]
fn the_operators_arguments_win_and_nothing_is_given_twice() {
    let mut order = order(Permission::Allow);
    order.model = None;
    order.args = rules(&["--dangerously-bypass-approvals-and-sandbox", "--json"]);
    assert_eq!(args(&order), "exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox --json -");
    order.permissions.default = Permission::Ask;
    order.args = rules(&["-c", "sandbox_mode=\"read-only\""]);
    assert_eq!(args(&order), r#"app-server -c web_search="disabled" -c sandbox_mode="read-only""#);
}

#[test]
fn a_prompt_is_never_an_argument_and_must_say_something() {
    let mut order = order(Permission::Allow);
    order.prompt = "--yolo\0".repeat(100_000);
    assert!(args(&order).ends_with(" -"));
    order.prompt = " \n".to_owned();
    assert_eq!(Codex.start(&order).err(), Some(OrderError::NoPrompt));
}

#[test]
fn what_is_fixed_about_it() {
    let codex = Codex;
    let about = codex.about();
    assert_eq!((about.name.as_str(), about.binary.names[0].as_str()), ("codex", "codex"));
    assert!(about.capabilities.approvals && about.capabilities.resume && !about.capabilities.chosen_session);
    assert!("0.166.0".starts_with(&about.binary.tested[0]));
    assert!(about.binary.login.contains("codex login"), "{}", about.binary.login);
    assert!(about.variables.contains(&"CODEX_HOME".to_owned()));
}

#[test]
fn a_setting_is_a_toml_string_and_the_operator_chooses_the_sandbox_in_any_of_its_ways() {
    let mut odd = order(Permission::Allow);
    odd.model = Some("a\"b\\c\nd\u{7f}".to_owned());
    assert!(args(&odd).contains(r#"-c model="a\"b\\c\nd\u007f" "#), "{}", args(&odd));
    for (given, chosen) in [
        (&["--sandbox", "danger-full-access"][..], true),
        (&["--sandbox=read-only"], true),
        (&["-s", "read-only"], true),
        (&["-sread-only"], true),
        (&["--dangerously-bypass-approvals-and-sandbox"], true),
        (&["-c", "sandbox_mode=\"read-only\""], true),
        (&["--strict-config", "-c", "model_provider=\"mine\""], false),
        (&[], false),
    ] {
        let mut order = order(Permission::Allow);
        order.args = given.iter().map(|arg| (*arg).to_owned()).collect();
        assert_eq!(!args(&order).contains("--sandbox workspace-write"), chosen, "{given:?}");
    }
}
