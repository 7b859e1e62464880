//! The user's text in messages.

/// Maximum number of characters of the user's input that a message quotes.
const QUOTED_CHARS: usize = 60;

/// Shortens the user's text for a message.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
