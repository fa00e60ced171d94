//! Connection slots per address, so that no single peer can hold all of `limits.connections`. An IPv6 peer has a whole /64
//! network to itself, so the network is counted.

use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use switchboard_admission::{KeyedCounter, KeyedPermit};

use crate::Options;

/// The bits of an IPv6 address that name a network; the others are its owner's to choose.
const NETWORK_BITS: u32 = 64;

pub(crate) struct AddressSlots {
    slots: KeyedCounter<IpAddr>,
    loopback_is_exempt: bool,
    trusted_proxies: Vec<IpNet>,
}

/// One slot; given back when dropped. An exempt address needs none.
pub(crate) type AddressSlot = Option<KeyedPermit<IpAddr>>;

impl AddressSlots {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            slots: KeyedCounter::new(usize::MAX, options.connections_per_address),
            loopback_is_exempt: options.loopback_is_exempt,
            trusted_proxies: options.trusted_proxies.clone(),
        }
    }

    /// Takes a slot of an address; none if it has as many as one address may have.
    pub(crate) fn take(&self, address: IpAddr) -> Option<AddressSlot> {
        let address = address.to_canonical();
        let exempt = self.loopback_is_exempt && address.is_loopback();
        if exempt || self.trusted_proxies.iter().any(|proxies| proxies.contains(&address)) {
            return Some(None);
        }
        self.take_counted(address)
    }

    /// The same for an address that is not exempt, whatever it is.
    pub(crate) fn take_counted(&self, address: IpAddr) -> Option<AddressSlot> {
        self.slots.try_acquire(&network_of(address.to_canonical())).ok().map(Some)
    }
}

fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> NETWORK_BITS << NETWORK_BITS)),
    }
}
