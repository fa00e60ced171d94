//! The media type of a file, guessed from its name as people expect it.

use std::path::Path;

/// Endings and what they mean.
const KNOWN: [(&str, &[&str]); 24] = [
    ("text/plain", &["txt", "log", "text"]),
    ("text/markdown", &["md", "markdown"]),
    ("text/html", &["html", "htm"]),
    ("text/css", &["css"]),
    ("text/csv", &["csv"]),
    ("text/javascript", &["js", "mjs"]),
    ("application/json", &["json"]),
    ("application/jsonl", &["jsonl", "ndjson"]),
    ("application/yaml", &["yaml", "yml"]),
    ("application/xml", &["xml"]),
    ("application/pdf", &["pdf"]),
    ("application/zip", &["zip"]),
    ("application/gzip", &["gz", "tgz"]),
    ("application/x-tar", &["tar"]),
    ("image/png", &["png"]),
    ("image/jpeg", &["jpg", "jpeg"]),
    ("image/gif", &["gif"]),
    ("image/webp", &["webp"]),
    ("image/svg+xml", &["svg"]),
    ("audio/mpeg", &["mp3"]),
    ("audio/wav", &["wav"]),
    ("video/mp4", &["mp4"]),
    ("video/webm", &["webm"]),
    ("text/plain", &["rs", "py", "go", "java", "ts", "c", "h", "cpp", "sh", "toml", "ini", "sql", "diff", "patch"]),
];

/// The media type of a file; of one whose name says nothing, what it looks like.
pub(super) fn guess(path: &Path, content: &[u8]) -> &'static str {
    match of_name(path) {
        Some(media_type) => media_type,
        None if !content.contains(&0) && std::str::from_utf8(content).is_ok() => "text/plain",
        None => "application/octet-stream",
    }
}

/// What the name of a file says of it.
pub(super) fn of_name(path: &Path) -> Option<&'static str> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase())?;
    KNOWN.iter().find(|(_, endings)| endings.contains(&ending.as_str())).map(|(media_type, _)| *media_type)
}
