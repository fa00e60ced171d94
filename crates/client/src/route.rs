//! The routes to an agent: its usable interfaces with their parsed urls, and the one that negotiation has chosen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use switchboard_a2a::{Operation, Version};
use switchboard_egress::Target;

use crate::redact::redact_url;
use crate::{ClientError, Interface};

/// All usable interfaces, and the chosen one.
pub(crate) struct Routes {
    pub(crate) interfaces: Vec<Interface>,
    chosen: Mutex<Arc<Route>>,
}

impl Routes {
    /// Chooses the first that can be called.
    pub(crate) fn new(interfaces: Vec<Interface>) -> Result<Self, ClientError> {
        let mut wrong = None;
        for interface in &interfaces {
            match Route::new(interface.clone()) {
                Ok(route) => {
                    let Interface { url, binding, version, .. } = interface;
                    let (url, binding, version) = (redact_url(url), binding.as_str(), version.as_str());
                    tracing::debug!(url, binding, version, "this interface is used");
                    return Ok(Self { chosen: Mutex::new(Arc::new(route)), interfaces });
                }
                Err(error) => drop(wrong.get_or_insert(error)),
            }
        }
        Err(wrong.unwrap_or_else(|| ClientError::Invalid {
            field: "supportedInterfaces",
            problem: "there is none to call".to_owned(),
        }))
    }

    pub(crate) fn chosen(&self) -> Arc<Route> {
        Arc::clone(&self.chosen.lock())
    }

    pub(crate) fn choose(&self, route: Arc<Route>) {
        *self.chosen.lock() = route;
    }

    /// The route in a version the card offers, preferably with the same binding.
    pub(crate) fn offered(&self, version: Version, like: &Route) -> Option<Arc<Route>> {
        let of_version = |interface: &&Interface| interface.version == version;
        let same = self.interfaces.iter().filter(of_version).filter(|one| one.binding == like.interface.binding);
        let mut all = same.chain(self.interfaces.iter().filter(of_version));
        all.find_map(|interface| Route::new(interface.clone()).ok()).map(Arc::new)
    }

    /// The route in the other version; the same url if the card offers none.
    pub(crate) fn in_other_version(&self, route: &Route) -> Arc<Route> {
        let other = route.interface.in_other_version();
        self.offered(other.version, route).unwrap_or_else(|| Arc::new(Route::at(other, Arc::clone(&route.target))))
    }
}

/// An interface and its parsed url.
pub(crate) struct Route {
    pub(crate) interface: Interface,
    pub(crate) target: Arc<Target>,
    /// Whether the agent takes the alternate REST form, learned by trying: of SubscribeToTask, and of other operations.
    uses_alternate: [AtomicBool; 2],
}

impl Route {
    pub(crate) fn new(interface: Interface) -> Result<Self, ClientError> {
        let target = read(&interface.url)?;
        Ok(Self::at(interface, target))
    }

    fn at(interface: Interface, target: Arc<Target>) -> Self {
        Self { interface, target, uses_alternate: Default::default() }
    }

    /// The url of a path below the interface.
    pub(crate) fn below(&self, path: &str) -> Result<Arc<Target>, ClientError> {
        read(&format!("{}{path}", self.interface.url.trim_end_matches('/')))
    }

    pub(crate) fn uses_alternate(&self, operation: Operation) -> bool {
        self.uses_alternate[usize::from(operation == Operation::SubscribeToTask)].load(Ordering::Relaxed)
    }

    pub(crate) fn remember_alternate(&self, operation: Operation) {
        self.uses_alternate[usize::from(operation == Operation::SubscribeToTask)].store(true, Ordering::Relaxed);
    }
}

fn read(url: &str) -> Result<Arc<Target>, ClientError> {
    let target = Target::parse(url).map_err(|refusal| ClientError::Address { url: redact_url(url), refusal })?;
    Ok(Arc::new(target))
}
