//! What a child sees of the server's environment: named variables and nothing else.

use std::ffi::{OsStr, OsString};

use switchboard_adapters::{About, Launch};

use super::process::User;

/// Variables every child sees where the operator names none.
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

/// The environment of a child, from what `read` says of the server's own.
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
    for name in &names {
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
