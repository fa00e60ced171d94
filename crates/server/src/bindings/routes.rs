//! The one table of A2A addresses: which operation a method and path stand for, and for which agent.
//!
//! A path is split before it is decoded, so that an id may hold a slash or a colon in its encoded form. Which version
//! is spoken is not decided here: the header has the first word on that.

use http::Method;
use switchboard_a2a::Operation;
use switchboard_engine::{Address, AgentName};

use super::percent;

/// What was found at a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// This.
    Route(Route),
    /// Something, but not for this method.
    WrongMethod {
        /// For the `Allow` header.
        allow: &'static str,
        /// Whose address it is, if there is such an agent.
        address: Address,
    },
    /// Nothing of A2A.
    None,
}

/// One address of A2A.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// What answers there.
    pub(crate) target: Target,
    /// Whether no key is needed.
    pub(crate) public: bool,
}

/// What answers at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// JSON-RPC.
    Rpc {
        /// For which agent.
        address: Address,
    },
    /// One operation of REST.
    Rest(Rest),
    /// The public card.
    Card {
        /// Of which agent.
        address: Address,
    },
}

/// One operation of REST, as the path says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// For which agent.
    pub(crate) address: Address,
    /// Whether the path has the `/v1` of version 0.3.
    pub(crate) prefixed: bool,
    /// What to do.
    pub(crate) operation: Operation,
    /// With which task.
    pub(crate) task_id: Option<String>,
    /// With which webhook.
    pub(crate) config_id: Option<String>,
}

/// Every name the card has been known by.
const CARD_FILES: [&str; 3] = ["agent-card.json", "agent.json", "a2a-agent-card.json"];

/// Words that stand where an agent's name could and are not one.
const RESERVED: [&str; 8] =
    ["v1", "tasks", "jsonrpc", "message:send", "message:stream", "extendedAgentCard", ".well-known", "agents"];

/// Words that mean something else at the root, where agents are only reached as a tenant.
const ROOT_RESERVED: [&str; 3] = ["a2a", "api", "console"];

/// Finds what a path stands for.
pub(crate) fn find(path: &str, method: &Method) -> Found {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<&str> = if path.is_empty() { Vec::new() } else { path.split('/').collect() };
    match segments.as_slice() {
        ["api", "a2a", "agent-card.json"] => card(Address::Root, method),
        [".well-known", file] | ["a2a", ".well-known", file] if CARD_FILES.contains(file) => {
            card(Address::Root, method)
        }
        ["a2a", agent, ".well-known", file] if CARD_FILES.contains(file) => match agent_name(agent) {
            Some(name) => card(Address::Agent(name), method),
            None => Found::None,
        },
        [] | ["a2a"] | ["a2a", "jsonrpc"] => rpc(Address::Root, method),
        ["a2a", agent] | ["a2a", agent, "jsonrpc"] if agent_name(agent).is_some() => match agent_name(agent) {
            Some(name) => rpc(Address::Agent(name), method),
            None => Found::None,
        },
        ["a2a", below @ ..] => rest_below(below, method, agent_name),
        below => rest_below(below, method, tenant_name),
    }
}

/// REST at an address, or one level deeper for the agent that the first segment names.
fn rest_below(segments: &[&str], method: &Method, name_of: impl Fn(&str) -> Option<AgentName>) -> Found {
    match rest(Address::Root, segments, method) {
        Found::None => {}
        found => return found,
    }
    match segments {
        [agent, below @ ..] => name_of(agent).map_or(Found::None, |name| rest(Address::Agent(name), below, method)),
        [] => Found::None,
    }
}

/// An agent's name under `/a2a`. Any word that is not reserved will do: that no such agent exists is better said with
/// the names that do.
fn agent_name(segment: &str) -> Option<AgentName> {
    let name = percent::decode(segment)?;
    let free = !name.is_empty() && !RESERVED.contains(&name.as_ref());
    free.then(|| AgentName::from(name.as_ref()))
}

/// An agent's name at the root, where other parts of the server live too.
fn tenant_name(segment: &str) -> Option<AgentName> {
    let plain = segment.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    (plain && !ROOT_RESERVED.contains(&segment)).then(|| agent_name(segment)).flatten()
}

fn rpc(address: Address, method: &Method) -> Found {
    match *method {
        Method::POST => Found::Route(Route { target: Target::Rpc { address }, public: false }),
        _ => Found::WrongMethod { allow: "POST", address },
    }
}

fn card(address: Address, method: &Method) -> Found {
    match *method {
        Method::GET | Method::HEAD => Found::Route(Route { target: Target::Card { address }, public: true }),
        _ => Found::WrongMethod { allow: "GET, HEAD", address },
    }
}

fn rest(address: Address, segments: &[&str], method: &Method) -> Found {
    let (prefixed, segments) = match segments {
        ["v1", below @ ..] => (true, below),
        other => (false, other),
    };
    let mut task_id = None;
    let mut config_id = None;
    // What may be done at the path, each with its method; the first one with the method asked for is meant.
    let offers: &[(Method, Operation)] = match segments {
        [word] => match percent::decode(word).as_deref() {
            Some("message:send") => &[(Method::POST, Operation::SendMessage)],
            Some("message:stream") => &[(Method::POST, Operation::SendStreamingMessage)],
            Some("tasks") => &[(Method::GET, Operation::ListTasks)],
            Some("extendedAgentCard") => &[(Method::GET, Operation::GetExtendedCard)],
            Some("card") if prefixed => &[(Method::GET, Operation::GetExtendedCard)],
            _ => return Found::None,
        },
        ["tasks", task] => {
            let (id, offers): (&str, &[(Method, Operation)]) = match task.rsplit_once(':') {
                Some((id, "cancel")) => (id, &[(Method::POST, Operation::CancelTask)]),
                Some((id, "subscribe")) => {
                    (id, &[(Method::GET, Operation::SubscribeToTask), (Method::POST, Operation::SubscribeToTask)])
                }
                _ => (task, &[(Method::GET, Operation::GetTask)]),
            };
            task_id = Some(id);
            offers
        }
        ["tasks", task, "pushNotificationConfigs"] => {
            task_id = Some(task);
            &[(Method::GET, Operation::ListPushConfigs), (Method::POST, Operation::CreatePushConfig)]
        }
        ["tasks", task, "pushNotificationConfigs", config] => {
            task_id = Some(task);
            config_id = Some(*config);
            &[(Method::GET, Operation::GetPushConfig), (Method::DELETE, Operation::DeletePushConfig)]
        }
        _ => return Found::None,
    };
    let Some((_, operation)) = offers.iter().find(|(offered, _)| offered == method) else {
        return Found::WrongMethod { allow: allow(offers), address };
    };
    let decoded = |segment: &str| percent::decode(segment).map(std::borrow::Cow::into_owned);
    let (task_id, config_id) = match (task_id.map(decoded), config_id.map(decoded)) {
        (Some(None), _) | (_, Some(None)) => return Found::None,
        (task, config) => (task.flatten(), config.flatten()),
    };
    let target = Target::Rest(Rest { address, prefixed, operation: *operation, task_id, config_id });
    Found::Route(Route { target, public: false })
}

fn allow(offers: &[(Method, Operation)]) -> &'static str {
    match offers {
        [(Method::POST, _)] => "POST",
        [(Method::GET, _), (Method::POST, _)] => "GET, POST",
        [(Method::GET, _), (Method::DELETE, _)] => "GET, DELETE",
        _ => "GET",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest_at(method: Method, path: &str) -> (String, bool, Operation, Option<String>, Option<String>) {
        match find(path, &method) {
            Found::Route(Route { target: Target::Rest(rest), public: false }) => {
                let Rest { address, prefixed, operation, task_id, config_id } = rest;
                (address.as_str().to_owned(), prefixed, operation, task_id, config_id)
            }
            other => panic!("{method} {path}: {other:?}"),
        }
    }

    fn wrong_method(allow: &'static str, address: Address) -> Found {
        Found::WrongMethod { allow, address }
    }

    fn rpc_at(path: &str) -> Address {
        match find(path, &Method::POST) {
            Found::Route(Route { target: Target::Rpc { address }, public: false }) => address,
            other => panic!("POST {path}: {other:?}"),
        }
    }

    fn card_at(path: &str) -> Address {
        match find(path, &Method::GET) {
            Found::Route(Route { target: Target::Card { address }, public: true }) => address,
            other => panic!("GET {path}: {other:?}"),
        }
    }

    #[test]
    fn json_rpc_and_its_aliases() {
        for path in ["/", "/a2a", "/a2a/", "/a2a/jsonrpc"] {
            assert_eq!(rpc_at(path), Address::Root, "{path}");
        }
        for path in ["/a2a/echo", "/a2a/echo/", "/a2a/echo/jsonrpc"] {
            assert_eq!(rpc_at(path), Address::Agent("echo".into()), "{path}");
        }
        assert_eq!(find("/a2a", &Method::GET), wrong_method("POST", Address::Root));
        assert_eq!(find("/a2a/nope", &Method::GET), wrong_method("POST", Address::Agent("nope".into())));
        assert_eq!(find("/echo", &Method::POST), Found::None);
    }

    #[test]
    fn cards_and_their_aliases() {
        for path in [
            "/.well-known/agent-card.json",
            "/.well-known/agent.json",
            "/.well-known/a2a-agent-card.json",
            "/a2a/.well-known/agent-card.json",
            "/api/a2a/agent-card.json",
        ] {
            assert_eq!(card_at(path), Address::Root, "{path}");
        }
        assert_eq!(card_at("/a2a/echo/.well-known/agent-card.json"), Address::Agent("echo".into()));
        assert_eq!(find("/.well-known/agent.json", &Method::POST), wrong_method("GET, HEAD", Address::Root));
        assert_eq!(find("/.well-known/other.json", &Method::GET), Found::None);
    }

    #[test]
    fn rest_at_every_mount() {
        for (mount, agent, prefixed) in [
            ("", "", false),
            ("/v1", "", true),
            ("/a2a", "", false),
            ("/a2a/v1", "", true),
            ("/a2a/echo", "echo", false),
            ("/a2a/echo/v1", "echo", true),
            ("/echo", "echo", false),
            ("/echo/v1", "echo", true),
        ] {
            let (post, get, delete) = (Method::POST, Method::GET, Method::DELETE);
            let one = |task: &str| Some(task.to_owned());
            for (method, below, operation, task, config) in [
                (&post, "message:send", Operation::SendMessage, None, None),
                (&post, "message%3Asend", Operation::SendMessage, None, None),
                (&post, "message:stream", Operation::SendStreamingMessage, None, None),
                (&get, "tasks", Operation::ListTasks, None, None),
                (&get, "tasks/t1", Operation::GetTask, one("t1"), None),
                (&get, "tasks/a%2Fb:c", Operation::GetTask, one("a/b:c"), None),
                (&post, "tasks/t1:cancel", Operation::CancelTask, one("t1"), None),
                (&post, "tasks/a:b:cancel", Operation::CancelTask, one("a:b"), None),
                (&get, "tasks/t1:subscribe", Operation::SubscribeToTask, one("t1"), None),
                (&post, "tasks/t1:subscribe", Operation::SubscribeToTask, one("t1"), None),
                (&get, "tasks/t1%3Acancel", Operation::GetTask, one("t1:cancel"), None),
                (&post, "tasks/t1/pushNotificationConfigs", Operation::CreatePushConfig, one("t1"), None),
                (&get, "tasks/t1/pushNotificationConfigs", Operation::ListPushConfigs, one("t1"), None),
                (&get, "tasks/t1/pushNotificationConfigs/p", Operation::GetPushConfig, one("t1"), one("p")),
                (&delete, "tasks/t1/pushNotificationConfigs/p", Operation::DeletePushConfig, one("t1"), one("p")),
                (&get, "extendedAgentCard", Operation::GetExtendedCard, None, None),
            ] {
                let path = format!("{mount}/{below}");
                let expected = (agent.to_owned(), prefixed, operation, task, config);
                assert_eq!(rest_at(method.clone(), &path), expected, "{path}");
            }
        }
        assert_eq!(rest_at(Method::GET, "/v1/card").2, Operation::GetExtendedCard);
    }

    #[test]
    fn what_is_no_address() {
        for path in
            ["/card", "/api/tasks", "/console/tasks", "/a2a/agents/tasks", "/tasks/t1/else", "/Echo/tasks", "/x/y/z"]
        {
            assert_eq!(find(path, &Method::GET), Found::None, "{path}");
        }
        assert_eq!(find("/tasks/%ff", &Method::GET), Found::None);
        assert_eq!(find("/tasks", &Method::POST), wrong_method("GET", Address::Root));
        assert_eq!(find("/message:send", &Method::GET), wrong_method("POST", Address::Root));
        assert_eq!(find("/tasks/t:subscribe", &Method::PUT), wrong_method("GET, POST", Address::Root));
    }
}
