//! Where the requests go: a loopback or other plain-HTTP endpoint, taken apart once.

use std::net::SocketAddr;
use std::str::FromStr;

#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let rest = url.strip_prefix("http://").ok_or("the URL must begin with http://")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let address = authority
            .parse()
            .map_err(|_| format!("{authority} is not an address with a port, as in 127.0.0.1:8080"))?;
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { address, path: path.to_owned() })
    }
}
