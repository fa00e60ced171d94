//! HTTP/1.1 on one blocking connection: no more than a client of this server needs, and nothing between a byte that
//! arrived and the test that saw it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::HANG_GUARD;

/// A connection that is kept alive between requests.
pub struct Connection {
    address: SocketAddr,
    key: Option<String>,
    reader: BufReader<TcpStream>,
}

/// An answer whose body is still to be read; it must be read to its end before the next request.
pub struct Response<'a> {
    /// The status code.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body.
    pub body: Body<'a>,
}

/// The body of an answer.
pub struct Body<'a> {
    reader: &'a mut BufReader<TcpStream>,
    length: Length,
}

enum Length {
    Known(usize),
    Chunked { left: usize },
    Over,
}

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, HANG_GUARD)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(HANG_GUARD))?;
        stream.set_write_timeout(Some(HANG_GUARD))?;
        Ok(Self { address, key: None, reader: BufReader::new(stream) })
    }

    /// The same with an API key in every request.
    pub fn open_with_key(address: SocketAddr, key: &str) -> io::Result<Self> {
        Ok(Self { key: Some(key.to_owned()), ..Self::open(address)? })
    }

    /// Sends a request and reads the head of the answer. An empty body sends none.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Response<'_>> {
        self.send_only(method, path, headers, body)?;
        self.head()
    }

    /// Sends a request and reads nothing.
    pub fn send_only(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<()> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        let key = self.key.as_deref().map(|key| ("x-api-key", key));
        for (name, value) in headers.iter().copied().chain(key) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            request.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        request.push_str(body);
        self.reader.get_mut().write_all(request.as_bytes())
    }

    fn head(&mut self) -> io::Result<Response<'_>> {
        let first = line(&mut self.reader)?;
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| invalid(format!("no status in {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let text = line(&mut self.reader)?;
            let Some((name, value)) = text.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let find = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let length = match (find("content-length"), find("transfer-encoding")) {
            (Some(length), _) => Length::Known(length.parse().map_err(|_| invalid(format!("length {length:?}")))?),
            (None, Some("chunked")) => Length::Chunked { left: 0 },
            _ => Length::Known(0),
        };
        Ok(Response { status, headers, body: Body { reader: &mut self.reader, length } })
    }
}

impl Response<'_> {
    /// A header by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The whole body.
    pub fn text(mut self) -> io::Result<String> {
        let mut text = String::new();
        self.body.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match &mut self.length {
                Length::Over | Length::Known(0) => return Ok(0),
                Length::Known(left) => {
                    let count = some(self.reader, buffer, *left)?;
                    *left -= count;
                    return Ok(count);
                }
                Length::Chunked { left: 0 } => {
                    let size = line(self.reader)?;
                    let size =
                        usize::from_str_radix(size.trim(), 16).map_err(|_| invalid(format!("chunk {size:?}")))?;
                    if size == 0 {
                        line(self.reader)?;
                        self.length = Length::Over;
                    } else {
                        self.length = Length::Chunked { left: size };
                    }
                }
                Length::Chunked { left } => {
                    let count = some(self.reader, buffer, *left)?;
                    *left -= count;
                    if *left == 0 {
                        line(self.reader)?;
                    }
                    return Ok(count);
                }
            }
        }
    }
}

/// At least one byte, or an error: a body that ends early was cut off.
fn some(reader: &mut BufReader<TcpStream>, buffer: &mut [u8], most: usize) -> io::Result<usize> {
    let most = most.min(buffer.len());
    match reader.read(&mut buffer[..most])? {
        0 if most > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => Ok(count),
    }
}

fn line(reader: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut text = String::new();
    if reader.read_line(&mut text)? == 0 || !text.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(text.trim_end().to_owned())
}

fn invalid(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_and_a_cut_off_one_is_an_error() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
            let fixed = "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\ncontent-length: 2\r\n\r\nno";
            let cut = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab";
            for answer in [chunked, fixed, cut] {
                let mut request = [0; 1024];
                assert!(client.read(&mut request).unwrap() > 0);
                client.write_all(answer.as_bytes()).unwrap();
            }
        });
        let mut connection = Connection::open(address).unwrap();
        let mut get = |path: &str| -> io::Result<(u16, Option<String>, String)> {
            let response = connection.send("GET", path, &[], "")?;
            let wait = response.header("retry-after").map(str::to_owned);
            Ok((response.status, wait, response.text()?))
        };
        assert_eq!(get("/one").unwrap(), (200, None, "abcde".to_owned()));
        assert_eq!(get("/two").unwrap(), (503, Some("1".to_owned()), "no".to_owned()));
        assert_eq!(get("/three").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        server.join().unwrap();
    }
}
