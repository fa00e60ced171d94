//! As whom programs run, and who we are.

use switchboard_cli_agents::Settings;
use switchboard_cli_agents::process::User;

use super::finding::Finding;

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(super) fn runs_as_root(settings: &Settings) -> bool {
    settings.user.as_ref().map_or_else(is_root, |user| user.uid == 0)
}

pub(super) fn may_become(user: &User) -> bool {
    is_root() || rustix::process::geteuid().as_raw() == user.uid
}

/// The finding for the account that an agent names.
pub(super) fn user_finding(user: &User) -> Finding {
    if may_become(user) {
        return Finding::ok(format!("programs run as user {}", user.name));
    }
    let uid = rustix::process::geteuid().as_raw();
    let text = format!("user: programs are to run as {}, and only root may do that; this is uid {uid}", user.name);
    Finding::problem(text, format!("run switchboard as root or as {}, or remove user", user.name))
}
