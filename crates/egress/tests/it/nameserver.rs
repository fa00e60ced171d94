//! A real nameserver on loopback that answers by a script, written byte by byte so that it can also lie.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    A,
    Aaaa,
}

/// One record of an answer. What follows an alias belongs to the name it points to.
pub(crate) enum Record {
    A(Ipv4Addr),
    Aaaa(Ipv6Addr),
    Alias(&'static str),
}

pub(crate) enum Reply {
    Records(Vec<Record>),
    /// NXDOMAIN.
    NoSuchName,
    /// SERVFAIL.
    Failure,
    Silence,
}

/// Answers until it is dropped.
pub(crate) struct Nameserver {
    pub(crate) address: SocketAddr,
    asked: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Nameserver {
    /// The script is given the name in lower case, what is asked for, and how often the same was asked before.
    pub(crate) async fn start(script: impl Fn(&str, Kind, usize) -> Reply + Send + 'static) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            let mut before: HashMap<(String, Kind), usize> = HashMap::new();
            let mut buffer = [0; 4096];
            loop {
                let (length, client) = socket.recv_from(&mut buffer).await.unwrap();
                let (name, kind, question_end) = question(&buffer[..length]);
                counter.fetch_add(1, Ordering::SeqCst);
                let times = before.entry((name.clone(), kind)).or_default();
                let reply = script(&name, kind, *times);
                *times += 1;
                if let Some(answer) = answer(&buffer[..question_end], reply) {
                    socket.send_to(&answer, client).await.unwrap();
                }
            }
        });
        Self { address, asked, task }
    }

    /// How many questions came in.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for Nameserver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The name, what is asked for, and where the question ends.
fn question(query: &[u8]) -> (String, Kind, usize) {
    let mut labels = Vec::new();
    let mut position = 12;
    while query[position] != 0 {
        let end = position + 1 + usize::from(query[position]);
        labels.push(String::from_utf8(query[position + 1..end].to_vec()).unwrap().to_lowercase());
        position = end;
    }
    let kind = match u16::from_be_bytes([query[position + 1], query[position + 2]]) {
        1 => Kind::A,
        28 => Kind::Aaaa,
        other => panic!("no lookup here asks for type {other}"),
    };
    (labels.join("."), kind, position + 5)
}

fn answer(query: &[u8], reply: Reply) -> Option<Vec<u8>> {
    let (code, records) = match reply {
        Reply::Records(records) => (0, records),
        Reply::NoSuchName => (3, Vec::new()),
        Reply::Failure => (2, Vec::new()),
        Reply::Silence => return None,
    };
    let mut bytes = query[..2].to_vec();
    // A response, recursion desired and available, then the code.
    bytes.extend([0x81, 0x80 | code, 0, 1, 0, u8::try_from(records.len()).unwrap(), 0, 0, 0, 0]);
    bytes.extend(&query[12..]);
    // A pointer to the name in the question.
    let mut owner = vec![0xc0, 12];
    for record in records {
        let (kind, data, next) = match record {
            Record::A(address) => (1, address.octets().to_vec(), None),
            Record::Aaaa(address) => (28, address.octets().to_vec(), None),
            Record::Alias(name) => (5, encoded(name), Some(encoded(name))),
        };
        bytes.extend(&owner);
        // Type, class IN, time to live 0, length.
        bytes.extend([0, kind, 0, 1, 0, 0, 0, 0, 0, u8::try_from(data.len()).unwrap()]);
        bytes.extend(data);
        owner = next.unwrap_or(owner);
    }
    Some(bytes)
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}
