//! SHA-256 as every crate around the kernel uses it: from ring, which TLS brings along anyway.

use ring::digest::{Context, SHA256};

/// The hash of the pieces, one after the other.
pub fn sha256<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for piece in pieces {
        context.update(piece);
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}
