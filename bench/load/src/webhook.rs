//! A webhook receiver of the worst kind: it takes every connection and never answers.

use tokio::net::TcpListener;

/// Starts it and returns its URL. It lives as long as the run.
pub(crate) async fn hang() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/hook", listener.local_addr()?);
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    Ok(url)
}
