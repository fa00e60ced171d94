//! The one table of A2A routes: which operation a method and path stand for, and for which agent.
//!
//! A path is split before it is decoded, so that an id may hold a slash or a colon in its encoded form. The version is
//! not decided here: the `A2A-Version` header goes first.

use http::Method;
use switchboard_a2a::Operation;
use switchboard_engine::{Address, AgentName};

use super::percent;

/// The route of a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RouteMatch {
    Route(Route),
    /// Only other methods are possible: the `Allow` header, and the agent's address.
    WrongMethod(&'static str, Address),
    /// No route of A2A.
    None,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Rpc(Address),
    Rest(Rest),
    Card(Address),
    OpenApi,
}

impl Route {
    /// Whether no key is needed.
    pub(crate) fn is_public(&self) -> bool {
        matches!(self, Self::Card(_) | Self::OpenApi)
    }
}

/// One operation of REST, as its path names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) address: Address,
    /// Whether the path has the `/v1` of version 0.3.
    pub(crate) prefixed: bool,
    pub(crate) operation: Operation,
    pub(crate) task_id: Option<String>,
    pub(crate) config_id: Option<String>,
}

/// The operations of one path of REST.
pub(super) struct RestPath {
    /// Below an address; `{id}` is a task's and `{configId}` a webhook's.
    pub(super) path: &'static str,
    pub(super) operations: &'static [(Method, Operation)],
}

/// Every path of REST. The first match counts, so the more specific ones come first.
pub(super) const REST: [RestPath; 9] = [
    RestPath { path: "/message:send", operations: &[(Method::POST, Operation::SendMessage)] },
    RestPath { path: "/message:stream", operations: &[(Method::POST, Operation::SendStreamingMessage)] },
    RestPath { path: "/tasks", operations: &[(Method::GET, Operation::ListTasks)] },
    RestPath { path: "/tasks/{id}:cancel", operations: &[(Method::POST, Operation::CancelTask)] },
    RestPath {
        path: "/tasks/{id}:subscribe",
        operations: &[(Method::GET, Operation::SubscribeToTask), (Method::POST, Operation::SubscribeToTask)],
    },
    RestPath { path: "/tasks/{id}", operations: &[(Method::GET, Operation::GetTask)] },
    RestPath {
        path: "/tasks/{id}/pushNotificationConfigs",
        operations: &[(Method::GET, Operation::ListPushConfigs), (Method::POST, Operation::CreatePushConfig)],
    },
    RestPath {
        path: "/tasks/{id}/pushNotificationConfigs/{configId}",
        operations: &[(Method::GET, Operation::GetPushConfig), (Method::DELETE, Operation::DeletePushConfig)],
    },
    RestPath { path: "/extendedAgentCard", operations: &[(Method::GET, Operation::GetExtendedCard)] },
];

/// What only version 0.3 has, below its `/v1`.
const OLD_CARD: RestPath = RestPath { path: "/card", operations: &[(Method::GET, Operation::GetExtendedCard)] };

/// Every name the card has been known by.
const CARD_FILES: [&str; 3] = ["agent-card.json", "agent.json", "a2a-agent-card.json"];

/// Words that stand where an agent's name could and are not one.
const RESERVED: [&str; 8] =
    ["v1", "tasks", "jsonrpc", "message:send", "message:stream", "extendedAgentCard", ".well-known", "agents"];

/// Words that mean something else at the root, where agents are only reached as a tenant.
const ROOT_RESERVED: [&str; 3] = ["a2a", "api", "console"];

/// Finds the route of a path.
pub(crate) fn find(path: &str, method: &Method) -> RouteMatch {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<&str> = if path.is_empty() { Vec::new() } else { path.split('/').collect() };
    match segments.as_slice() {
        ["openapi.json"] => public(Route::OpenApi, Address::Root, method),
        ["api", "a2a", "agent-card.json"] => card(Address::Root, method),
        [".well-known", file] | ["a2a", ".well-known", file] if CARD_FILES.contains(file) => {
            card(Address::Root, method)
        }
        ["a2a", agent, ".well-known", file] if CARD_FILES.contains(file) => {
            agent_name(agent).map_or(RouteMatch::None, |name| card(Address::Agent(name), method))
        }
        [] | ["a2a"] | ["a2a", "jsonrpc"] => rpc(Address::Root, method),
        ["a2a", agent] | ["a2a", agent, "jsonrpc"] if agent_name(agent).is_some() => match agent_name(agent) {
            Some(name) => rpc(Address::Agent(name), method),
            None => RouteMatch::None,
        },
        ["a2a", below @ ..] => rest_below(below, method, agent_name),
        below => rest_below(below, method, tenant_name),
    }
}

/// REST at an address, or one level deeper for the agent that the first segment names.
fn rest_below(segments: &[&str], method: &Method, name_of: impl Fn(&str) -> Option<AgentName>) -> RouteMatch {
    match rest(Address::Root, segments, method) {
        RouteMatch::None => {}
        found => return found,
    }
    match segments {
        [agent, below @ ..] => {
            name_of(agent).map_or(RouteMatch::None, |name| rest(Address::Agent(name), below, method))
        }
        [] => RouteMatch::None,
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

fn rpc(address: Address, method: &Method) -> RouteMatch {
    match *method {
        Method::POST => RouteMatch::Route(Route::Rpc(address)),
        _ => RouteMatch::WrongMethod("POST", address),
    }
}

fn card(address: Address, method: &Method) -> RouteMatch {
    public(Route::Card(address.clone()), address, method)
}

fn public(route: Route, address: Address, method: &Method) -> RouteMatch {
    match *method {
        Method::GET | Method::HEAD => RouteMatch::Route(route),
        _ => RouteMatch::WrongMethod("GET, HEAD", address),
    }
}

fn rest(address: Address, segments: &[&str], method: &Method) -> RouteMatch {
    let (prefixed, segments) = match segments {
        ["v1", below @ ..] => (true, below),
        other => (false, other),
    };
    let old = prefixed.then_some(&OLD_CARD);
    let Some((rest_path, ids)) =
        REST.iter().chain(old).find_map(|rest_path| Some((rest_path, ids(rest_path.path, segments)?)))
    else {
        return RouteMatch::None;
    };
    let Some((_, operation)) = rest_path.operations.iter().find(|(offered, _)| offered == method) else {
        return RouteMatch::WrongMethod(allow(rest_path.operations), address);
    };
    let decoded = |segment: &str| percent::decode(segment).map(std::borrow::Cow::into_owned);
    let (task_id, config_id) = match ids.map(|id| id.map(decoded)) {
        [Some(None), _] | [_, Some(None)] => return RouteMatch::None,
        [task, config] => (task.flatten(), config.flatten()),
    };
    RouteMatch::Route(Route::Rest(Rest { address, prefixed, operation: *operation, task_id, config_id }))
}

/// The ids that stand in the segments, still encoded, if these fit the path.
fn ids<'a>(path: &str, segments: &[&'a str]) -> Option<[Option<&'a str>; 2]> {
    let mut ids = [None; 2];
    let mut next = 0;
    let mut given = segments.iter();
    for pattern in path.split('/').skip(1) {
        let segment = *given.next()?;
        match pattern.strip_prefix('{').and_then(|pattern| pattern.split_once('}')) {
            Some((_, suffix)) => {
                *ids.get_mut(next)? = Some(segment.strip_suffix(suffix)?);
                next += 1;
            }
            None if segment == pattern => {}
            // Some clients encode the colon of `message:send`.
            None if segments.len() == 1 && percent::decode(segment).as_deref() == Some(pattern) => {}
            None => return None,
        }
    }
    given.next().is_none().then_some(ids)
}

fn allow(operations: &[(Method, Operation)]) -> &'static str {
    match operations {
        [(Method::POST, _)] => "POST",
        [(Method::GET, _), (Method::POST, _)] => "GET, POST",
        [(Method::GET, _), (Method::DELETE, _)] => "GET, DELETE",
        _ => "GET",
    }
}
