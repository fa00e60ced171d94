//! The one router: which endpoint a path and method lead to, and what a request needs there before its body is read.
//!
//! Fronts come first. A2A takes what is left, because its paths at the root may begin with an agent's name.

use std::sync::Arc;

use http::{Method, Response};
use switchboard_engine::{Address, CallerRole};

use super::json_response;
use crate::Body;
use crate::bindings::routes::{self, Route};
use crate::front::{Access, Front};

#[derive(Default)]
pub(crate) struct Router {
    fronts: Vec<Arc<dyn Front>>,
}

pub(super) enum Endpoint<'a> {
    A2a(Route),
    Front(&'a dyn Front),
    /// A2A only has other methods there: the `Allow` header, and the agent's address.
    WrongMethod(&'static str, Address),
    /// The front only has other methods there: the `Allow` header.
    WrongFrontMethod(&'static str, &'a dyn Front),
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
                Some(Err(wrong)) => return (Endpoint::WrongFrontMethod(wrong.0, &**front), Access::PUBLIC),
                None => {}
            }
        }
        match routes::find(path, method) {
            Some(Ok(route)) => {
                let access = access(&route);
                (Endpoint::A2a(route), access)
            }
            Some(Err(routes::WrongMethod(allow, address))) => (Endpoint::WrongMethod(allow, address), Access::PUBLIC),
            None => (Endpoint::Nothing, Access::PUBLIC),
        }
    }

    /// The response at a path where nothing is: that of the front whose path it looks like, else the server's.
    pub(super) fn refuse_path(&self, path: &str) -> Response<Body> {
        let of_front = self.fronts.iter().find_map(|front| front.refuse_path(path));
        of_front.unwrap_or_else(|| json_response::not_found(path))
    }
}

/// JSON-RPC names its operation in the body, so whether it streams is not known here.
fn access(route: &Route) -> Access {
    match route {
        Route::Card(_) | Route::OpenApi => Access::PUBLIC,
        Route::Rpc(_) | Route::Rest(_) => Access::role(CallerRole::None).with_json(),
    }
}
