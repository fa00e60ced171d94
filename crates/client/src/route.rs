//! An interface together with its address as it was read: read once, used for every call.

use std::sync::Arc;

use switchboard_egress::Target;

use crate::{ClientError, Interface};

/// An interface and the way to it.
pub(crate) struct Route {
    pub(crate) interface: Interface,
    target: Arc<Target>,
}

impl Route {
    /// # Errors
    /// When the address cannot be called.
    pub(crate) fn new(interface: Interface) -> Result<Self, ClientError> {
        let target = read(&interface.url)?;
        Ok(Self { interface, target })
    }

    /// The same place in the other version.
    pub(crate) fn in_other_version(&self) -> Self {
        Self { interface: self.interface.in_other_version(), target: Arc::clone(&self.target) }
    }

    /// The interface itself.
    pub(crate) fn target(&self) -> Arc<Target> {
        Arc::clone(&self.target)
    }

    /// A path below it.
    ///
    /// # Errors
    /// When that is no address.
    pub(crate) fn below(&self, path: &str) -> Result<Arc<Target>, ClientError> {
        read(&format!("{}{path}", self.interface.url.trim_end_matches('/')))
    }
}

fn read(url: &str) -> Result<Arc<Target>, ClientError> {
    let target = Target::parse(url).map_err(|refusal| ClientError::Address { url: url.to_owned(), refusal })?;
    Ok(Arc::new(target))
}
