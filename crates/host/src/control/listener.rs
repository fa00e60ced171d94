//! The control listener. It serves only the user that runs the server, and root, who could read the database anyway.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use crate::control::handler::ControlHandler;
use crate::control::protocol::{ControlError, Reply, Request};
use crate::control::socket::{FILE_NAME, SocketPath};

/// The longest request. The commands of this program send far less.
const MAX_REQUEST: u64 = 64 << 10;
/// Timeout of a request; a command writes it at once.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a failed accept, which as a rule is a lack of file handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub struct ControlListener {
    listener: UnixListener,
    path: PathBuf,
    /// The user that runs this server.
    owner: u32,
}

impl ControlListener {
    /// Opens the socket. The caller has locked the data directory, so an existing socket is stale.
    pub fn open(data_dir: &Path) -> io::Result<Self> {
        let path = data_dir.join(FILE_NAME);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = SocketPath::new(data_dir)?;
        let listener = UnixListener::bind(socket.as_path())?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let owner = std::fs::metadata(&path)?.uid();
        Ok(Self { listener, path, owner })
    }

    pub async fn run(self, handler: Arc<ControlHandler>, stop: CancellationToken) {
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            match accepted {
                Ok((stream, _)) if self.trusts(&stream) => {
                    tokio::spawn(serve(stream, Arc::clone(&handler)));
                }
                Ok(_) => tracing::warn!("a process of another user was refused at the control socket"),
                Err(error) => {
                    tracing::warn!(%error, "the control socket could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// The file mode restricts the same, but it is set only after the socket exists.
    fn trusts(&self, stream: &UnixStream) -> bool {
        stream.peer_cred().is_ok_and(|peer| peer.uid() == self.owner || peer.uid() == 0)
    }
}

impl Drop for ControlListener {
    fn drop(&mut self) {
        // If it stays, the next server removes it.
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn serve(stream: UnixStream, handler: Arc<ControlHandler>) {
    if let Err(error) = handle_connection(stream, &handler).await {
        tracing::debug!(%error, "a command left its connection early");
    }
}

async fn handle_connection(mut stream: UnixStream, handler: &ControlHandler) -> io::Result<()> {
    let (reading, mut writing) = stream.split();
    let mut reading = BufReader::new(reading.take(MAX_REQUEST));
    let mut line = String::new();
    tokio::time::timeout(READ_TIMEOUT, reading.read_line(&mut line)).await??;
    let reply = match serde_json::from_str::<Request>(&line) {
        Ok(request) => handler.handle(request).await,
        Err(error) => Reply::Refused(ControlError::new(format!(
            "the server does not understand the command ({error}); use the switchboard program of the same version"
        ))),
    };
    let mut line = serde_json::to_vec(&reply)?;
    line.push(b'\n');
    writing.write_all(&line).await?;
    writing.shutdown().await
}
