//! Finds the process that listens on a port in `/proc`, as far as this user may read it.

use std::net::SocketAddr;
use std::path::Path;

/// The process that listens on the port of an address, by its id and, if it can be read, its name; none if it is another user's or there is no `/proc`.
pub(super) fn find(address: SocketAddr) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inodes: Vec<String> = tables
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|table| listening(&table, address.port()))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let processes = std::fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let name = || std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        holds(&process.path(), &links).then(|| match name().trim() {
            "" => format!("process {pid}"),
            name => format!("process {pid} ({name})"),
        })
    })
}

/// The inodes of sockets in a table of `/proc/net` that listen on a port.
fn listening(table: &str, port: u16) -> Vec<String> {
    const LISTENING: &str = "0A";
    let suffix = format!(":{port:04X}");
    let mut inodes = Vec::new();
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        if let [_, local, _, state, _, _, _, _, _, inode, ..] = columns.as_slice()
            && local.ends_with(&suffix)
            && *state == LISTENING
        {
            inodes.push((*inode).to_owned());
        }
    }
    inodes
}

fn holds(process: &Path, links: &[String]) -> bool {
    let Ok(handles) = std::fs::read_dir(process.join("fd")) else {
        return false;
    };
    handles.flatten().any(|handle| {
        std::fs::read_link(handle.path())
            .ok()
            .and_then(|target| target.to_str().map(|target| links.iter().any(|link| link == target)))
            .unwrap_or(false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_sockets_of_that_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
            0: 0100007F:A11A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n   \
            1: 0100007F:A11A 0100007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30 10 -1\n   \
            2: 0100007F:A11B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0 0 10 0\n";
        assert_eq!(listening(table, 41242), ["4711"]);
    }
}
