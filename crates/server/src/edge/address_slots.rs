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
pub(crate) struct AddressSlot {
    _permit: Option<KeyedPermit<IpAddr>>,
}

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
            return Some(AddressSlot { _permit: None });
        }
        let permit = self.slots.try_acquire(&network_of(address)).ok()?;
        Some(AddressSlot { _permit: Some(permit) })
    }
}

fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> NETWORK_BITS << NETWORK_BITS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(change: impl FnOnce(&mut Options)) -> AddressSlots {
        let mut options = Options { connections_per_address: 2, ..Options::default() };
        change(&mut options);
        AddressSlots::new(&options)
    }

    fn take(slots: &AddressSlots, address: &str) -> Option<AddressSlot> {
        slots.take(address.parse().unwrap())
    }

    #[test]
    fn an_address_has_so_many_slots_and_the_next_has_its_own() {
        let slots = slots(|_| {});
        let first = take(&slots, "192.0.2.1").unwrap();
        let _second = take(&slots, "::ffff:192.0.2.1").unwrap();
        assert!(take(&slots, "192.0.2.1").is_none(), "it is the same address, written as IPv6");
        let _other = take(&slots, "192.0.2.2").unwrap();
        drop(first);
        assert!(take(&slots, "192.0.2.1").is_some());
    }

    #[test]
    fn ipv6_is_counted_by_network() {
        let slots = slots(|_| {});
        let _slots = ["2001:db8:0:1::1", "2001:db8:0:1:ffff::2"].map(|address| take(&slots, address).unwrap());
        assert!(take(&slots, "2001:db8:0:1::3").is_none());
        assert!(take(&slots, "2001:db8:0:2::1").is_some());
    }

    #[test]
    fn loopback_and_trusted_proxies_are_exempt() {
        let slots = slots(|options| options.trusted_proxies = vec!["10.1.0.0/16".parse().unwrap()]);
        for address in ["127.0.0.1", "::1", "10.1.2.3", "::ffff:10.1.2.3"] {
            let many: Vec<_> = (0..10).map(|_| take(&slots, address)).collect();
            assert!(many.iter().all(Option::is_some), "{address}");
        }
        let _two = [(); 2].map(|()| take(&slots, "10.2.0.1").unwrap());
        assert!(take(&slots, "10.2.0.1").is_none());
    }
}
