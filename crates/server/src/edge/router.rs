//! The one router: which endpoint a path and method lead to, and what a request needs there before its body is read.
//!
//! Fronts come first. A2A takes what is left, because its paths at the root may begin with an agent's name.

use std::sync::Arc;

use http::Method;
use switchboard_engine::{Address, CallerRole};

use crate::bindings::routes::{self, Route};
use crate::front::{Access, Front};

#[derive(Default)]
pub(crate) struct Router {
    fronts: Vec<Arc<dyn Front>>,
}

pub(super) enum Endpoint<'a> {
    A2a(Route),
    Front(&'a dyn Front),
    /// Only other methods are there: the `Allow` header, and the agent's address if it is one of A2A.
    WrongMethod(&'static str, Option<Address>),
    Nothing,
}

impl Router {
    pub(super) fn new(fronts: Vec<Arc<dyn Front>>) -> Self {
        Self { fronts }
    }

    /// What fronts say of themselves for `/openapi.json`.
    pub(crate) fn descriptions(&self) -> impl Iterator<Item = serde_json::Value> + '_ {
        self.fronts.iter().filter_map(|front| front.describe())
    }

    pub(super) fn find(&self, path: &str, method: &Method) -> (Endpoint<'_>, Access) {
        for front in &self.fronts {
            match front.find(path, method) {
                Some(Ok(access)) => return (Endpoint::Front(&**front), access),
                Some(Err(wrong)) => return (Endpoint::WrongMethod(wrong.0, None), Access::PUBLIC),
                None => {}
            }
        }
        match routes::find(path, method) {
            Some(Ok(route)) => {
                let access = access(&route);
                (Endpoint::A2a(route), access)
            }
            Some(Err(routes::WrongMethod(allow, address))) => {
                (Endpoint::WrongMethod(allow, Some(address)), Access::PUBLIC)
            }
            None => (Endpoint::Nothing, Access::PUBLIC),
        }
    }
}

/// JSON-RPC names its operation in the body, so whether it streams is not known here.
fn access(route: &Route) -> Access {
    match route {
        Route::Card(_) | Route::OpenApi => Access::PUBLIC,
        Route::Rpc(_) | Route::Rest(_) => Access::role(CallerRole::None).with_json(),
    }
}
