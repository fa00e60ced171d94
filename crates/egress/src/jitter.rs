//! Jitter: what was called together, and failed together, is not called again together.

/// A random number between 0 and 1.
pub fn jitter() -> f64 {
    let mut random = [0; 4];
    // Without randomness waits are only all the same.
    match getrandom::fill(&mut random) {
        Ok(()) => f64::from(u32::from_ne_bytes(random)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}
