//! The tenant: selects the agent where the path does not.

use switchboard_a2a::Error;
use switchboard_engine::Address;

use super::truncate;

/// The address that counts. At the root a tenant selects the agent; elsewhere it must agree with the path.
pub(super) fn resolve(path: Address, tenant: Option<&str>) -> Result<Address, Error> {
    match (path, tenant.filter(|tenant| !tenant.is_empty())) {
        (path, None) => Ok(path),
        (Address::Root, Some(tenant)) => Ok(Address::Agent(tenant.into())),
        (Address::Agent(name), Some(tenant)) if name.as_str() == tenant => Ok(Address::Agent(name)),
        (Address::Agent(name), Some(tenant)) => {
            let tenant = truncate::name(tenant);
            let problem = format!("{tenant:?} contradicts agent {:?} of the address", name.as_str());
            Err(Error::invalid_field("tenant", problem))
        }
    }
}
