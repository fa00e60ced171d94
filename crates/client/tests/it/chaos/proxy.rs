//! Stands between a client and a server and does what a fault says. One connection carries one request.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use switchboard_a2a::extension::RESUMPTION;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::fault::{Dice, End, Fault, Met, Order, Trouble};
use crate::wire::{header, read_head, read_request};

/// How long the client waits for the next byte of a stream.
pub(super) const IDLE: Duration = Duration::from_millis(80);
/// How long the proxy says nothing: in a stream longer than the client waits.
const STALL: Duration = Duration::from_millis(160);
const DELAY: Duration = Duration::from_millis(5);
/// Then it has had its fun.
const FAULTY: u64 = 8;

/// What the server seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seems {
    /// What it is: one that numbers its events.
    Numbered,
    /// One that never heard of going on after an event.
    Plain,
    /// One that does not say either how a task is when a client subscribes to it, as version 0.3 permits.
    Mute,
}

/// A network that breaks.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    rearranged: Arc<AtomicBool>,
    _stops: DropGuard,
}

/// One connection.
struct Line {
    socket: TcpStream,
    fault: Fault,
    dice: Dice,
    written: usize,
    seems: Seems,
    is_subscription: bool,
    is_stream: bool,
    rearranged: Arc<AtomicBool>,
    met: Arc<Met>,
}

impl Proxy {
    pub(super) async fn start(server: SocketAddr, seed: u64, seems: Seems, met: Arc<Met>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, rearranged) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let (stopped, shared) = (stop.clone(), rearranged.clone());
        tokio::spawn(stopped.run_until_cancelled_owned(async move {
            for number in 0.. {
                let Ok((socket, _)) = listener.accept().await else { return };
                let mut dice = Dice::new(seed, number);
                let fault = if number < FAULTY { Fault::roll(&mut dice) } else { Fault::NONE };
                let (rearranged, met) = (shared.clone(), met.clone());
                let (is_subscription, is_stream) = (false, false);
                let line = Line { socket, fault, dice, written: 0, seems, is_subscription, is_stream, rearranged, met };
                // A torn connection is what it is for.
                tokio::spawn(async move { line.carry(server).await.is_ok() });
            }
        }));
        Self { address, rearranged, _stops: stop.drop_guard() }
    }

    /// Whether an event came twice, or after the next one.
    pub(super) fn has_rearranged(&self) -> bool {
        self.rearranged.load(Ordering::Relaxed)
    }
}

impl Line {
    async fn carry(mut self, server: SocketAddr) -> Result<()> {
        self.socket.set_nodelay(true)?;
        let (head, body) = read_request(&mut self.socket).await?;
        self.is_subscription = is_subscription(&head, &body);
        let mut upstream = TcpStream::connect(server).await?;
        // In this version an answer ends with its connection and has no frames of its own.
        let mut asked = head.lines().next().unwrap_or_default().replace("HTTP/1.1", "HTTP/1.0");
        let is_kept = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            name != "connection" && (self.seems == Seems::Numbered || name != "last-event-id")
        };
        for line in head.lines().skip(1).filter(is_kept) {
            asked.push_str("\r\n");
            asked.push_str(line);
        }
        asked.push_str("\r\n\r\n");
        upstream.write_all(asked.as_bytes()).await?;
        upstream.write_all(&body).await?;
        let (head, rest) = read_head(&mut upstream).await?;
        if self.fault.is_late {
            tokio::time::sleep(DELAY).await;
        }
        if header(&head, "content-type").is_some_and(|media_type| media_type.starts_with("text/event-stream")) {
            self.stream(upstream, &head, rest).await
        } else {
            self.whole(upstream, &head, rest).await
        }
    }

    async fn whole(mut self, mut upstream: TcpStream, head: &str, mut body: Vec<u8>) -> Result<()> {
        upstream.read_to_end(&mut body).await?;
        if self.seems != Seems::Numbered && is_card(&body) {
            body = without_resumption(&body);
        }
        let mut answer = answer_head(head, &format!("content-length: {}", body.len()));
        answer.extend(body);
        self.write(&answer).await?;
        self.socket.shutdown().await
    }

    async fn stream(mut self, mut upstream: TcpStream, head: &str, mut pending: Vec<u8>) -> Result<()> {
        self.is_stream = true;
        for (is_so, trouble) in [(self.fault.is_split, Trouble::Split), (self.fault.is_late, Trouble::Late)] {
            if is_so {
                self.met.add(trouble);
            }
        }
        self.write(&answer_head(head, "transfer-encoding: chunked")).await?;
        let mut overtaken: Option<Vec<u8>> = None;
        let mut is_stripped = self.seems == Seems::Mute && self.is_subscription;
        loop {
            while let Some(end) = pending.windows(2).position(|pair| pair == b"\n\n") {
                let mut frame: Vec<u8> = pending.drain(..end + 2).collect();
                if is_stripped && is_task(&frame) {
                    is_stripped = false;
                    self.met.strip();
                    continue;
                }
                if self.seems != Seems::Numbered {
                    frame = without_id(&frame);
                }
                let is_hit = self.dice.below(8) == 0;
                match (self.fault.order, overtaken.take()) {
                    (Order::Swapped, None) if is_hit => overtaken = Some(frame),
                    (Order::Swapped, Some(before)) => {
                        self.rearrange(Trouble::Swapped);
                        frame.extend(before);
                        self.chunk(&frame).await?;
                    }
                    (Order::Twice, _) if is_hit => {
                        self.rearrange(Trouble::Twice);
                        self.chunk(&frame.repeat(2)).await?;
                    }
                    _ => self.chunk(&frame).await?,
                }
            }
            if upstream.read_buf(&mut pending).await? == 0 {
                break;
            }
        }
        if let Some(frame) = overtaken {
            self.chunk(&frame).await?;
        }
        self.write(b"0\r\n\r\n").await?;
        self.socket.shutdown().await
    }

    fn rearrange(&mut self, trouble: Trouble) {
        self.rearranged.store(true, Ordering::Relaxed);
        self.met.add(trouble);
    }

    /// Notes how a stream has ended.
    fn ended(&self, trouble: Trouble) {
        if self.is_stream {
            self.met.add(trouble);
        }
    }

    /// Writes a piece of a body that has no length.
    async fn chunk(&mut self, piece: &[u8]) -> Result<()> {
        if let End::Truncate(at) = self.fault.end
            && self.written + piece.len() > at
        {
            self.ended(Trouble::Truncated);
            let piece = &piece[..at.saturating_sub(self.written)];
            if !piece.is_empty() {
                self.send(&chunked(piece)).await?;
            }
            self.send(b"0\r\n\r\n").await?;
            self.socket.shutdown().await?;
            return Err(Error::from(ErrorKind::Other));
        }
        self.write(&chunked(piece)).await
    }

    /// Writes as far as the fault lets it.
    async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let (End::Cut(at) | End::Stall(at)) = self.fault.end else { return self.send(bytes).await };
        if self.written + bytes.len() <= at {
            return self.send(bytes).await;
        }
        let fitting = at.saturating_sub(self.written);
        self.send(&bytes[..fitting]).await?;
        match self.fault.end {
            End::Stall(_) => {
                self.ended(Trouble::Stalled);
                tokio::time::sleep(STALL).await;
            }
            _ => self.ended(Trouble::Cut),
        }
        Err(Error::from(ErrorKind::ConnectionAborted))
    }

    async fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.written += bytes.len();
        if self.fault.is_late && self.is_stream && self.dice.below(64) == 0 {
            tokio::time::sleep(DELAY).await;
        }
        while self.fault.is_split && !bytes.is_empty() {
            let most = [4, 64, 4_096][self.dice.below(3)];
            let (piece, rest) = bytes.split_at(bytes.len().min(1 + self.dice.below(most)));
            self.socket.write_all(piece).await?;
            tokio::task::yield_now().await;
            bytes = rest;
        }
        self.socket.write_all(bytes).await
    }
}

fn answer_head(head: &str, length: &str) -> Vec<u8> {
    let status = head.split_whitespace().nth(1).unwrap_or("500");
    let media_type = header(head, "content-type").unwrap_or("application/json");
    format!("HTTP/1.1 {status} So\r\ncontent-type: {media_type}\r\n{length}\r\nconnection: close\r\n\r\n").into_bytes()
}

fn chunked(piece: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
    chunk.extend_from_slice(piece);
    chunk.extend_from_slice(b"\r\n");
    chunk
}

fn is_subscription(head: &str, body: &[u8]) -> bool {
    let body = String::from_utf8_lossy(body);
    let is_asked = ["SubscribeToTask", "tasks/resubscribe"].iter().any(|method| body.contains(method));
    is_asked || head.lines().next().unwrap_or_default().contains(":subscribe")
}

/// A frame with a whole task, in either version and binding.
fn is_task(frame: &[u8]) -> bool {
    let frame = String::from_utf8_lossy(frame);
    let data = frame.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or_default();
    let data: Value = serde_json::from_str(data).unwrap_or_default();
    let said = data.get("result").unwrap_or(&data);
    said.get("task").is_some() || said["kind"] == "task"
}

fn is_card(body: &[u8]) -> bool {
    body.windows(RESUMPTION.len()).any(|window| window == RESUMPTION.as_bytes())
}

fn without_resumption(card: &[u8]) -> Vec<u8> {
    let mut card: Value = serde_json::from_slice(card).unwrap();
    let extensions = card["capabilities"]["extensions"].as_array_mut().unwrap();
    extensions.retain(|extension| extension["uri"] != RESUMPTION);
    serde_json::to_vec(&card).unwrap()
}

fn without_id(frame: &[u8]) -> Vec<u8> {
    let lines = frame.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"id:"));
    lines.flatten().copied().collect()
}
