//! The environment of a child: an allowlist of the server's variables.

use std::ffi::{OsStr, OsString};

use super::process::User;
use crate::adapters::{About, Launch};

/// The default allowlist.
pub const COMMON_VARIABLES: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Variables with paths of the server's own account, where another account may not write.
const OF_AN_ACCOUNT: [&str; 2] = ["TMPDIR", "SHELL"];
const PLACES_OF_AN_ACCOUNT: &str = "XDG_";

/// The environment of a child, from what `read` says of the server's own. For another account its home and name take
/// the place of the server's, and the server's own places are left out unless the operator named them.
pub fn environment(
    named: Option<&[String]>,
    about: &About,
    launch: &Launch,
    user: Option<&User>,
    read: impl Fn(&str) -> Option<OsString>,
) -> Vec<(OsString, OsString)> {
    let usual = || COMMON_VARIABLES.into_iter().chain(about.variables.iter().map(String::as_str));
    let names: Vec<&str> = named.map_or_else(|| usual().collect(), |named| named.iter().map(String::as_str).collect());
    let mut all: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &str, value: OsString| {
        all.retain(|(known, _)| known.as_os_str() != OsStr::new(name));
        all.push((OsString::from(name), value));
    };
    let is_another = named.is_none() && user.is_some_and(|user| !user.is_current());
    let is_left_out =
        |name: &str| is_another && (OF_AN_ACCOUNT.contains(&name) || name.starts_with(PLACES_OF_AN_ACCOUNT));
    for name in names.iter().filter(|name| !is_left_out(name)) {
        if let Some(value) = read(name) {
            set(name, value);
        }
    }
    if let Some(user) = user {
        for (name, value) in
            [("HOME", user.home.as_os_str()), ("USER", user.name.as_ref()), ("LOGNAME", user.name.as_ref())]
        {
            if names.contains(&name) {
                set(name, value.to_owned());
            }
        }
    }
    for (name, value) in &launch.env {
        set(name, OsString::from(value));
    }
    all
}
