//! A receiver that cannot be relied on: it takes some requests, and refuses, delays, breaks off or drops the others. It
//! writes down what came and what it was about to accept.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::random::Random;
use crate::webhooks::judge::Entry;
use crate::webhooks::request::{self, Head};

/// The server waits so long for an answer; the configuration is written with it.
pub const TIMEOUT: Duration = Duration::from_millis(400);
/// Longer than the server waits.
const HANG: Duration = Duration::from_millis(600);
/// Slow, but in time.
const SLOW_MS: std::ops::Range<u64> = 10..120;

/// What is done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Conduct {
    /// 200.
    Accept,
    /// 200 after a while.
    AcceptSlowly,
    /// 200, and the answer's body breaks off.
    AcceptAndBreakOff,
    /// 500.
    Fail,
    /// 429, come back at once.
    Busy,
    /// 429, come back in a second.
    BusyForLonger,
    /// Closed in the middle of the request.
    HangUp,
    /// Closed instead of an answer.
    SayNothing,
    /// Closed in the middle of the answer's head.
    SayHalf,
    /// No answer until the other side gives up.
    Hang,
    /// Dropped at once, because the receiver is down.
    Down,
}

impl Conduct {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Accept,
        Self::AcceptSlowly,
        Self::AcceptAndBreakOff,
        Self::Fail,
        Self::Busy,
        Self::BusyForLonger,
        Self::HangUp,
        Self::SayNothing,
        Self::SayHalf,
        Self::Hang,
        Self::Down,
    ];

    fn choose(random: &mut Random) -> Self {
        match random.between(0, 100) {
            0..62 => Self::Accept,
            62..70 => Self::AcceptSlowly,
            70..73 => Self::AcceptAndBreakOff,
            73..81 => Self::Fail,
            81..86 => Self::Busy,
            86..88 => Self::BusyForLonger,
            88..91 => Self::HangUp,
            91..95 => Self::SayNothing,
            95..98 => Self::SayHalf,
            _ => Self::Hang,
        }
    }
}

/// Everything that came, at all receivers together.
#[derive(Default)]
pub struct Inbox {
    records: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    hooks: BTreeMap<String, Vec<Entry>>,
    conducts: BTreeMap<Conduct, usize>,
    problems: Vec<String>,
}

impl Inbox {
    /// What came for each webhook, by path.
    pub fn hooks(&self) -> BTreeMap<String, Vec<Entry>> {
        self.lock().hooks.clone()
    }

    /// How often each conduct was shown.
    pub fn conducts(&self) -> BTreeMap<Conduct, usize> {
        self.lock().conducts.clone()
    }

    /// Requests that are no deliveries.
    pub fn problems(&self) -> Vec<String> {
        self.lock().problems.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, conduct: Conduct) {
        *self.lock().conducts.entry(conduct).or_default() += 1;
    }

    fn arrived(&self, head: &Head, id: &str, body: String) {
        let mut records = self.lock();
        // The path ends with the version that the webhook was set in.
        let right = match head.path.ends_with("/0.3") {
            true => ("0.3", "application/json"),
            false => ("1.0", "application/a2a+json"),
        };
        let told = (head.header("a2a-version"), head.header("content-type"));
        let token = head.header("x-a2a-notification-token");
        let signed = head.header("webhook-signature").is_some_and(|signature| signature.starts_with("v1,"));
        if told != (Some(right.0), Some(right.1)) || token != Some(&head.path) || !signed {
            let path = &head.path;
            records.problems.push(format!("{id} came to {path} as {told:?}, token {token:?}, signed {signed}"));
        }
        let entry = Entry::Arrived { id: id.to_owned(), body };
        records.hooks.entry(head.path.clone()).or_default().push(entry);
    }

    fn accepted(&self, head: &Head, id: &str) {
        let entry = Entry::Accepted { id: id.to_owned() };
        self.lock().hooks.entry(head.path.clone()).or_default().push(entry);
    }
}

/// One receiver. It runs until the program ends.
#[derive(Clone)]
pub struct Receiver {
    /// Where it listens.
    pub address: SocketAddr,
    down: Arc<AtomicBool>,
}

impl Receiver {
    /// Starts it.
    pub fn start(inbox: Arc<Inbox>, random: Random) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let receiver = Self { address: listener.local_addr()?, down: Arc::default() };
        let this = receiver.clone();
        std::thread::spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming()) {
                let (Ok(stream), false) = (stream, this.is_down()) else {
                    inbox.count(Conduct::Down);
                    continue;
                };
                let (this, inbox, random) = (this.clone(), Arc::clone(&inbox), random.fork(number));
                std::thread::spawn(move || {
                    // A connection that the server loses is a connection that it opens again.
                    let _ = this.serve(stream, &inbox, random);
                });
            }
        });
        Ok(receiver)
    }

    /// Drops everything from now on, or no longer.
    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    fn is_down(&self) -> bool {
        self.down.load(Ordering::SeqCst)
    }

    fn serve(&self, stream: TcpStream, inbox: &Inbox, mut random: Random) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream);
        while let Some(head) = Head::read(&mut reader)? {
            let conduct = if self.is_down() { Conduct::Down } else { Conduct::choose(&mut random) };
            inbox.count(conduct);
            match conduct {
                Conduct::Down => return Ok(()),
                Conduct::HangUp => {
                    request::body(&mut reader, head.length / 2)?;
                    return Ok(());
                }
                _ => {}
            }
            let body = request::body(&mut reader, head.length)?;
            let id = head.header("webhook-id").unwrap_or_default();
            inbox.arrived(&head, id, body);
            // Written down before it is said: a server that hears it may go on at once.
            match conduct {
                Conduct::AcceptSlowly => {
                    std::thread::sleep(Duration::from_millis(random.between(SLOW_MS.start, SLOW_MS.end)));
                    inbox.accepted(&head, id);
                }
                Conduct::Accept | Conduct::AcceptAndBreakOff => inbox.accepted(&head, id),
                Conduct::Hang => std::thread::sleep(HANG),
                _ => {}
            }
            let Some(answer) = answer(conduct) else { return Ok(()) };
            reader.get_mut().write_all(answer.as_bytes())?;
            if matches!(conduct, Conduct::AcceptAndBreakOff | Conduct::SayHalf) {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn answer(conduct: Conduct) -> Option<&'static str> {
    Some(match conduct {
        Conduct::Accept | Conduct::AcceptSlowly => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        Conduct::AcceptAndBreakOff => "HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\nok",
        Conduct::Fail => "HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\noops",
        Conduct::Busy => "HTTP/1.1 429 Busy\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n",
        Conduct::BusyForLonger => "HTTP/1.1 429 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n",
        Conduct::SayHalf => "HTTP/1.1 200 O",
        Conduct::HangUp | Conduct::SayNothing | Conduct::Hang | Conduct::Down => return None,
    })
}
