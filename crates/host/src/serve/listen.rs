//! Opens the listener, or finds the process that has the address.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use tokio::net::TcpSocket;

use crate::serve::error::StartError;
use crate::serve::port_holder;

/// Connections that may wait for the accept loop; a burst of clients after a restart is larger than the usual 128.
const BACKLOG: u32 = 1_024;

/// The listener and its actual address, which differs for port 0.
pub(super) fn listen(address: SocketAddr, data_dir: &Path) -> Result<(TcpListener, SocketAddr), StartError> {
    let opened = open(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
    match opened {
        Ok((address, listener)) => Ok((listener, address)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(taken(address, data_dir)),
        Err(source) => Err(StartError::Listen { address, source }),
    }
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // So that a restart need not wait for the connections of the process before.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

/// A server on the same data is the likelier cause, so it is reported first.
fn taken(address: SocketAddr, data_dir: &Path) -> StartError {
    if let Ok(Some(holder)) = switchboard_store::lock_holder(data_dir) {
        return StartError::DataHeld { directory: data_dir.to_owned(), holder };
    }
    StartError::AddressTaken { address, by: port_holder::find(address) }
}
