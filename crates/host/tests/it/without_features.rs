//! What is refused by a program that was built without a feature it would need.

use switchboard_host::config::{Overrides, Workspace};

#[test]
fn nameservers_are_refused_and_not_ignored() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("switchboard.yaml"), "webhooks:\n  nameservers: [10.0.0.2]\n").unwrap();
    let problems = Workspace::settings_only(folder.path(), &Overrides::default()).unwrap_err().to_string();
    let wanted = "switchboard.yaml:2: webhooks.nameservers: this program was built without the feature `nameservers`: \
                  leave the key out, or build the program with that feature of switchboard-host";
    assert!(problems.contains(wanted), "{problems}");
}
