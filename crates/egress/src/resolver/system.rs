//! The DNS resolver that asks the operating system, as every other program of the machine does.
//!
//! A lookup blocks a thread, and the system may go on after our timeout. So there are slots for lookups, which are held
//! until the system is done: names that are slow on purpose cannot take all threads.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::DnsError;

/// Lookups at a time, a fraction of the threads that the runtime has for blocking work.
const SLOTS: usize = 64;

/// Looks names up.
pub(crate) struct Resolver {
    slots: Arc<Semaphore>,
    timeout: Duration,
    /// Nameservers were configured. They are not ignored: the system's may say something else about a name.
    has_nameservers: bool,
}

impl Resolver {
    pub(crate) fn new(nameservers: &[SocketAddr], timeout: Duration) -> Self {
        Self { slots: Arc::new(Semaphore::new(SLOTS)), timeout, has_nameservers: !nameservers.is_empty() }
    }

    /// Every address of the name, at least one. A caller must not assume that they are public.
    pub(crate) async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, DnsError> {
        if self.has_nameservers {
            return Err(DnsError::Unconfigured("this program was built without the feature `nameservers`".into()));
        }
        tokio::time::timeout(self.timeout, self.ask_system(name.to_owned())).await.unwrap_or(Err(DnsError::TimedOut))
    }

    async fn ask_system(&self, name: String) -> Result<Vec<IpAddr>, DnsError> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| DnsError::Failed)?;
        let lookup = spawn_blocking(move || {
            let _slot = slot;
            (name, 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect::<Vec<_>>())
        });
        match lookup.await {
            Ok(Ok(found)) if !found.is_empty() => Ok(found),
            Ok(Ok(_)) => Err(DnsError::NoAddress),
            // The standard library does not tell why.
            Ok(Err(_)) | Err(_) => Err(DnsError::Failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_system_is_asked_within_limits() {
        let resolver = Resolver::new(&[], Duration::from_secs(30));
        let found = resolver.lookup("localhost").await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
        // Longer than a label may be: the system refuses it without a question to anyone.
        assert_eq!(resolver.lookup(&"a".repeat(64)).await, Err(DnsError::Failed));

        let slow = Resolver { timeout: Duration::from_millis(10), ..Resolver::new(&[], Duration::ZERO) };
        let all = slow.slots.acquire_many(SLOTS as u32).await.unwrap();
        assert_eq!(slow.lookup("localhost").await, Err(DnsError::TimedOut));
        drop(all);

        let configured = Resolver::new(&[SocketAddr::from(([127, 0, 0, 1], 9))], Duration::from_secs(30));
        let error = configured.lookup("localhost").await.unwrap_err().to_string();
        assert!(error.ends_with("built without the feature `nameservers`"), "{error}");
    }
}
