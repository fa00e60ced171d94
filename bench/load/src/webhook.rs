//! Webhook receivers, good ones and bad ones, one of which every message of a run can name.

use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How late an answer is that comes late.
const SLOW: Duration = Duration::from_secs(2);

/// How a receiver behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Receiver {
    /// Answers 200 at once
    Good,
    /// Refuses the connection
    Down,
    /// Takes the connection and never answers
    Hang,
    /// Answers 200 after two seconds
    Slow,
    /// Answers 500
    Fail,
    /// Answers 429 with a Retry-After of one second
    Busy,
    /// Answers 302
    Redirect,
    /// Closes in the middle of its answer's head
    CutOff,
}

impl Receiver {
    /// Starts it and returns its URL. It lives as long as the run.
    pub(crate) async fn start(self) -> anyhow::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let url = format!("http://{address}/hook");
        let answer = match self {
            Receiver::Down => return Ok(url),
            Receiver::Good | Receiver::Slow => "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Receiver::Fail => "HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Receiver::Busy => "HTTP/1.1 429 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Receiver::Redirect => {
                format!("HTTP/1.1 302 Found\r\nlocation: http://{address}/other\r\ncontent-length: 0\r\n\r\n")
            }
            Receiver::CutOff => "HTTP/1.1 2".to_owned(),
            Receiver::Hang => String::new(),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = answer.clone();
                tokio::spawn(async move {
                    // A connection that breaks is the sender's to open again.
                    let _ = self.serve(stream, &answer).await;
                });
            }
        });
        Ok(url)
    }

    async fn serve(self, mut stream: TcpStream, answer: &str) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut input = Vec::new();
        while read_request(&mut stream, &mut input).await? {
            match self {
                Receiver::Hang => std::future::pending().await,
                Receiver::Slow => tokio::time::sleep(SLOW).await,
                _ => {}
            }
            stream.write_all(answer.as_bytes()).await?;
            if self == Receiver::CutOff {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Reads a whole request and forgets it; false if the other side is done.
async fn read_request(stream: &mut TcpStream, input: &mut Vec<u8>) -> std::io::Result<bool> {
    loop {
        if let Some(end) = memmem::find(input, b"\r\n\r\n") {
            let whole = end + 4 + content_length(&input[..end]);
            if input.len() >= whole {
                input.drain(..whole);
                return Ok(true);
            }
        }
        if stream.read_buf(input).await? == 0 {
            return Ok(false);
        }
    }
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head);
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.next().and_then(|(_, value)| value.trim().parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(receiver: Receiver) -> String {
        let url = receiver.start().await.unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches("/hook");
        let mut stream = TcpStream::connect(address).await.unwrap();
        for _ in 0..2 {
            // The second one is lost on a receiver that closes after the first.
            let _ = stream.write_all(b"POST /hook HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").await;
        }
        let _ = stream.shutdown().await;
        let mut answers = String::new();
        let _ = stream.read_to_string(&mut answers).await;
        answers
    }

    #[tokio::test]
    async fn each_receiver_answers_as_it_is_called() {
        for (receiver, status) in [
            (Receiver::Good, " 200 "),
            (Receiver::Fail, " 500 "),
            (Receiver::Busy, " 429 "),
            (Receiver::Redirect, " 302 "),
        ] {
            let answers = told(receiver).await;
            assert_eq!(answers.matches(status).count(), 2, "{receiver:?}: {answers}");
        }
        let url = Receiver::Down.start().await.unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches("/hook");
        assert!(TcpStream::connect(address).await.is_err());
    }
}
