//! The table of A2A routes: which operation a method and path stand for, and for which agent.
//!
//! A path is split before it is decoded, so that an id may hold a slash or a colon in its encoded form. The version is
//! not decided here: the `A2A-Version` header goes first.

use http::Method;
use switchboard_a2a::Operation;
use switchboard_engine::{Address, AgentName};

use super::percent;

/// A path where only other methods are possible: the `Allow` header, and the agent's address.
pub(crate) struct WrongMethod(pub(crate) &'static str, pub(crate) Address);

type RouteMatch = Result<Route, WrongMethod>;

pub(crate) enum Route {
    Rpc(Address),
    Rest(Rest),
    Card(Address),
    OpenApi,
}

/// One operation of REST, as its path names it.
pub(crate) struct Rest {
    pub(crate) address: Address,
    /// Whether the path has the `/v1` of version 0.3.
    pub(crate) prefixed: bool,
    pub(crate) operation: Operation,
    pub(crate) task_id: Option<String>,
    pub(crate) config_id: Option<String>,
}

/// Every operation of REST: its method, its path below an address and its name. In a path `{id}` is a task's and
/// `{configId}` a webhook's. The first match counts, so the more specific paths come first.
static REST: [(Method, &str, Operation); 13] = [
    (Method::POST, "/message:send", Operation::SendMessage),
    (Method::POST, "/message:stream", Operation::SendStreamingMessage),
    (Method::GET, "/tasks", Operation::ListTasks),
    (Method::POST, "/tasks/{id}:cancel", Operation::CancelTask),
    (Method::GET, "/tasks/{id}:subscribe", Operation::SubscribeToTask),
    (Method::POST, "/tasks/{id}:subscribe", Operation::SubscribeToTask),
    (Method::GET, "/tasks/{id}", Operation::GetTask),
    (Method::GET, "/tasks/{id}/pushNotificationConfigs", Operation::ListPushConfigs),
    (Method::POST, "/tasks/{id}/pushNotificationConfigs", Operation::CreatePushConfig),
    (Method::GET, "/tasks/{id}/pushNotificationConfigs/{configId}", Operation::GetPushConfig),
    (Method::DELETE, "/tasks/{id}/pushNotificationConfigs/{configId}", Operation::DeletePushConfig),
    (Method::GET, "/extendedAgentCard", Operation::GetExtendedCard),
    (Method::GET, OLD_CARD, Operation::GetExtendedCard),
];

/// What only version 0.3 has, below its `/v1`.
const OLD_CARD: &str = "/card";

/// Every name the card has been known by.
const CARD_FILES: [&str; 3] = ["agent-card.json", "agent.json", "a2a-agent-card.json"];

/// Words that stand where an agent's name could and are not one.
const RESERVED: [&str; 8] =
    ["v1", "tasks", "jsonrpc", "message:send", "message:stream", "extendedAgentCard", ".well-known", "agents"];

/// Words that mean something else at the root, where agents are only reached as a tenant.
const ROOT_RESERVED: [&str; 3] = ["a2a", "api", "console"];

/// Finds the route of a path, if it is one of A2A.
pub(crate) fn find(path: &str, method: &Method) -> Option<RouteMatch> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<&str> = if path.is_empty() { Vec::new() } else { path.split('/').collect() };
    match segments.as_slice() {
        ["openapi.json"] => Some(public(Route::OpenApi, Address::Root, method)),
        ["api", "a2a", "agent-card.json"] => Some(card(Address::Root, method)),
        [".well-known", file] | ["a2a", ".well-known", file] if CARD_FILES.contains(file) => {
            Some(card(Address::Root, method))
        }
        ["a2a", agent, ".well-known", file] if CARD_FILES.contains(file) => {
            Some(card(Address::Agent(agent_name(agent)?), method))
        }
        [] | ["a2a"] | ["a2a", "jsonrpc"] => Some(rpc(Address::Root, method)),
        ["a2a", agent] | ["a2a", agent, "jsonrpc"] if agent_name(agent).is_some() => {
            Some(rpc(Address::Agent(agent_name(agent)?), method))
        }
        ["a2a", below @ ..] => rest_below(below, method, agent_name),
        below => rest_below(below, method, tenant_name),
    }
}

/// REST at an address, or one level deeper for the agent that the first segment names.
fn rest_below(segments: &[&str], method: &Method, name_of: fn(&str) -> Option<AgentName>) -> Option<RouteMatch> {
    rest(Address::Root, segments, method).or_else(|| {
        let (agent, below) = segments.split_first()?;
        rest(Address::Agent(name_of(agent)?), below, method)
    })
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
        Method::POST => Ok(Route::Rpc(address)),
        _ => Err(WrongMethod("POST", address)),
    }
}

fn card(address: Address, method: &Method) -> RouteMatch {
    public(Route::Card(address.clone()), address, method)
}

fn public(route: Route, address: Address, method: &Method) -> RouteMatch {
    match *method {
        Method::GET | Method::HEAD => Ok(route),
        _ => Err(WrongMethod("GET, HEAD", address)),
    }
}

fn rest(address: Address, segments: &[&str], method: &Method) -> Option<RouteMatch> {
    let (prefixed, segments) = match segments {
        ["v1", below @ ..] => (true, below),
        other => (false, other),
    };
    let mut paths = REST.iter().map(|(_, path, _)| *path).filter(|path| prefixed || *path != OLD_CARD);
    let (path, ids) = paths.find_map(|path| Some((path, ids(path, segments)?)))?;
    let found = REST.iter().find(|(offered, of, _)| *of == path && offered == method);
    let Some((_, _, operation)) = found else { return Some(Err(WrongMethod(allow(path), address))) };
    let decoded = |segment: &str| percent::decode(segment).map(std::borrow::Cow::into_owned);
    let (task_id, config_id) = match ids.map(|id| id.map(decoded)) {
        [Some(None), _] | [_, Some(None)] => return None,
        [task, config] => (task.flatten(), config.flatten()),
    };
    Some(Ok(Route::Rest(Rest { address, prefixed, operation: *operation, task_id, config_id })))
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

fn allow(path: &str) -> &'static str {
    let has = |method: Method| REST.iter().any(|(offered, of, _)| *of == path && *offered == method);
    match [Method::GET, Method::POST, Method::DELETE].map(has) {
        [true, true, _] => "GET, POST",
        [true, _, true] => "GET, DELETE",
        [true, ..] => "GET",
        _ => "POST",
    }
}
