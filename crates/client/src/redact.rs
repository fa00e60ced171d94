//! Addresses as they may be told: people write keys into queries and passwords in front of hosts, and neither belongs in
//! a message or a log.

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// An address without what may be a secret.
#[must_use]
pub fn shown(url: &str) -> String {
    let (scheme, rest) = match url.find("://") {
        Some(at) => url.split_at(at + 3),
        None => ("", url),
    };
    let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
    let (user, rest) = match authority.rfind('@') {
        Some(at) => (format!("{HIDDEN}@"), &rest[at + 1..]),
        None => (String::new(), rest),
    };
    let (rest, mark) = match rest.find(['?', '#']) {
        Some(at) => (&rest[..at], format!("{}…", &rest[at..=at])),
        None => (rest, String::new()),
    };
    format!("{scheme}{user}{rest}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_queries_are_hidden_and_nothing_else() {
        let cases = [
            ("https://agent.example/a/b", "https://agent.example/a/b"),
            ("agent.example:8080/@me/x", "agent.example:8080/@me/x"),
            ("http://host/a?key=secret", "http://host/a?…"),
            ("host/a#secret", "host/a#…"),
            ("http://user:secret@host:9/a", "http://***@host:9/a"),
            ("http://user:sec?r#et@host", "http://***@host"),
            ("user:secret@host", "***@host"),
            ("", ""),
        ];
        for (url, expected) in cases {
            assert_eq!(shown(url), expected, "{url}");
        }
    }
}
