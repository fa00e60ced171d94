//! The same request without a client of A2A: written once, sent again and again, its answer read and not looked into.

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::HOST;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::Caller;

/// What the client sends, but for the ids.
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"01932d4c-5c3a-7b12-9a75-0123456789ab","role":"ROLE_USER","parts":[{"text":"hello"}]}}}"#;
const KEY: &str = "01932d4c-5c3a-7b12-9a75-ba9876543210";
const HEADERS: [(&str, &str); 5] = [
    ("user-agent", "switchboard/0.1.0"),
    ("a2a-version", "1.0"),
    ("content-type", "application/json"),
    ("accept", "application/json, application/a2a+json"),
    ("idempotency-key", KEY),
];

/// One connection for each copy, opened when it is first needed.
pub(crate) struct Connection {
    uri: Uri,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    pub(crate) fn new(url: &str) -> anyhow::Result<Self> {
        Ok(Self { uri: read(url)?, sender: None })
    }

    async fn open(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect(authority(&self.uri)?).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // It ends with the sender; what goes wrong is told there.
        tokio::spawn(async move { connection.await.is_ok() });
        Ok(sender)
    }
}

impl Clone for Connection {
    fn clone(&self) -> Self {
        Self { uri: self.uri.clone(), sender: None }
    }
}

impl Caller for Connection {
    async fn call(&mut self) -> anyhow::Result<()> {
        if self.sender.is_none() {
            self.sender = Some(self.open().await?);
        }
        let sender = self.sender.as_mut().context("no connection")?;
        let request = request(self.uri.path(), Some(authority(&self.uri)?))?;
        sender.ready().await?;
        whole(sender.send_request(request).await?).await
    }
}

/// Copies share their connections.
#[derive(Clone)]
pub(crate) struct Hyper {
    uri: Uri,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Hyper {
    pub(crate) fn new(url: &str) -> anyhow::Result<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Ok(Self { uri: read(url)?, client: Client::builder(TokioExecutor::new()).build(connector) })
    }
}

impl Caller for Hyper {
    async fn call(&mut self) -> anyhow::Result<()> {
        whole(self.client.request(request(self.uri.clone(), None)?).await?).await
    }
}

fn read(url: &str) -> anyhow::Result<Uri> {
    url.parse().with_context(|| format!("{url} is no address"))
}

fn authority(uri: &Uri) -> anyhow::Result<&str> {
    Ok(uri.authority().context("an address with a host is needed")?.as_str())
}

fn request<T>(uri: T, host: Option<&str>) -> anyhow::Result<Request<Full<Bytes>>>
where
    T: TryInto<Uri>,
    T::Error: Into<hyper::http::Error>,
{
    let mut request = Request::post(uri);
    if let Some(host) = host {
        request = request.header(HOST, host);
    }
    for (name, value) in HEADERS {
        request = request.header(name, value);
    }
    Ok(request.body(Full::new(Bytes::from_static(BODY.as_bytes())))?)
}

async fn whole(answer: Response<Incoming>) -> anyhow::Result<()> {
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    anyhow::ensure!(status == StatusCode::OK && !body.is_empty(), "{status} with {} bytes", body.len());
    Ok(())
}

/// Copies share their connections.
#[derive(Clone)]
pub(crate) struct Reqwest {
    url: reqwest::Url,
    client: reqwest::Client,
}

impl Reqwest {
    pub(crate) fn new(url: &str) -> anyhow::Result<Self> {
        let client = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
        Ok(Self { url: url.parse()?, client })
    }
}

impl Caller for Reqwest {
    async fn call(&mut self) -> anyhow::Result<()> {
        let mut request = self.client.post(self.url.clone()).body(BODY);
        for (name, value) in HEADERS {
            request = request.header(name, value);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let body = answer.bytes().await?;
        anyhow::ensure!(status == reqwest::StatusCode::OK && !body.is_empty(), "{status} with {} bytes", body.len());
        Ok(())
    }
}
