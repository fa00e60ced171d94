//! What a child sees of the server's environment.

use switchboard_cli_agents::adapters::{About, Launch};
use switchboard_cli_agents::environment;
use switchboard_cli_agents::process::User;

use crate::fixture::Fixture;

/// What a child of this account sees of `our NAME` in every variable.
fn variables(named: Option<&[String]>, uid: u32) -> Vec<(String, String)> {
    let variables = vec!["ONE_KEY".to_owned(), "XDG_STATE_HOME".to_owned()];
    let about = About { variables, ..adapter_about() };
    let gid = rustix::process::getegid().as_raw();
    let user = User { uid, gid, groups: vec![gid], home: "/home/coder".into(), name: "coder".to_owned() };
    let read = |name: &str| Some(format!("our {name}").into());
    let all = environment(named, &about, &Launch::default(), Some(&user), read);
    all.into_iter().map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap())).collect()
}

fn adapter_about() -> About {
    use switchboard_cli_agents::adapters::Adapter as _;
    Fixture::new().asking("").about().clone()
}

fn value<'a>(all: &'a [(String, String)], name: &str) -> Option<&'a str> {
    all.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

#[test]
fn another_account_gets_its_own_home_and_only_those_of_the_servers_places_that_are_named() {
    let we = rustix::process::geteuid().as_raw();
    let all = variables(None, we + 1);
    assert_eq!(value(&all, "HOME"), Some("/home/coder"));
    assert_eq!(value(&all, "USER"), Some("coder"));
    assert_eq!(value(&all, "PATH"), Some("our PATH"));
    assert_eq!(value(&all, "ONE_KEY"), Some("our ONE_KEY"));
    for name in ["TMPDIR", "SHELL", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
        assert_eq!(value(&all, name), None, "{name}");
    }
    assert_eq!(value(&variables(None, we), "XDG_CONFIG_HOME"), Some("our XDG_CONFIG_HOME"), "the server's own account");
    let named = ["HOME", "TMPDIR"].map(str::to_owned);
    let all = variables(Some(&named), we + 1);
    assert_eq!(value(&all, "TMPDIR"), Some("our TMPDIR"));
    assert_eq!(value(&all, "HOME"), Some("/home/coder"));
    assert_eq!(value(&all, "PATH"), None);
}
