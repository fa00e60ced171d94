//! A client that sends one request and reads the whole answer.

use std::net::SocketAddr;

use bytes::Bytes;
use fake_model::FakeModel;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

pub(crate) async fn post(model: &FakeModel, path: &str, body: &Value) -> (StatusCode, String) {
    send(model.address(), "POST", path, body.to_string()).await
}

pub(crate) async fn send(address: SocketAddr, method: &str, path: &str, body: String) -> (StatusCode, String) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let request = Request::builder().method(method).uri(path).header("host", address.to_string());
    let request = request.header("authorization", "Bearer fake-key").body(Full::<Bytes>::from(body)).unwrap();
    let answer = async move {
        let response = sender.send_request(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    };
    // Both here, so that giving up on the answer also closes the connection.
    tokio::pin!(connection);
    tokio::select! {
        answer = answer => answer,
        ended = &mut connection => panic!("the connection ended without an answer: {ended:?}"),
    }
}
