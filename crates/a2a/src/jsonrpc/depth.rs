//! A guard against bodies that are all brackets.

/// Whether objects and arrays are nested deeper than `limit` anywhere in the JSON text. One pass, no allocation;
/// text that is not JSON gives some answer and is refused later by the reader.
pub fn depth_exceeds(json: &[u8], limit: usize) -> bool {
    // Most messages open fewer brackets than may be open at once, and counting them costs next to nothing.
    if openings(json) <= limit {
        return false;
    }
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    for byte in json {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// How many objects and arrays may begin here, strings included. Counted in bytes by the piece, as processors like it.
fn openings(json: &[u8]) -> usize {
    let of_piece = |piece: &[u8]| piece.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    json.chunks(usize::from(u8::MAX)).map(|piece| usize::from(of_piece(piece))).sum()
}
