//! A name that no field of a client's JSON may have.
//!
//! serde_json reads an object whose first field has such a name as something else than an object: as a number, or as
//! text that it parses again, with a nesting limit of its own. A client that sends one could make a stored value
//! unreadable, or have a short text recurse without bound. So JSON from outside is searched for such names before it is
//! read.

use memchr::{memchr_iter, memchr2};

/// Prefix of the names.
pub const RESERVED_NAMES: &str = "$serde_json::private::";

/// True if a string of this JSON begins like a reserved name, written plainly or with escapes. It errs on the safe
/// side: it does not tell a value from a name, nor the end of a string from its beginning.
pub fn has_reserved_name(json: &[u8]) -> bool {
    // Nearly all JSON has neither of the characters with which such a name can begin.
    if memchr2(b'$', b'\\', json).is_none() {
        return false;
    }
    memchr_iter(b'"', json).any(|quote| begins_reserved(&json[quote + 1..]))
}

fn begins_reserved(mut text: &[u8]) -> bool {
    RESERVED_NAMES.bytes().all(|wanted| match first_char(text) {
        Some((char, rest)) => {
            text = rest;
            char == u32::from(wanted)
        }
        None => false,
    })
}

/// The first character of a JSON string, and what follows it. Only ASCII and `\u` escapes are told apart.
fn first_char(text: &[u8]) -> Option<(u32, &[u8])> {
    match text {
        [b'\\', b'u', digits @ ..] => {
            let (digits, rest) = digits.split_at_checked(4)?;
            let digits = Some(digits).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            Some((u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?, rest))
        }
        [char, rest @ ..] => Some((u32::from(*char), rest)),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_name_is_found_however_it_is_written() {
        for json in [
            r#"{"$serde_json::private::Number":"1"}"#,
            r#"{"a":[{"b":1,"$serde_json::private::RawValue":"[]"}]}"#,
            r#"{"\u0024serde_json::private::Number":"1"}"#,
            r#"{"$\u0073erde\u005Fjson:\u003a\u0070rivate::RawValue":"1"}"#,
        ] {
            assert!(has_reserved_name(json.as_bytes()), "{json}");
        }
        let escaped: String = RESERVED_NAMES.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        assert!(has_reserved_name(format!(r#"{{"{escaped}X":1}}"#).as_bytes()));
    }

    #[test]
    fn other_names_are_none() {
        for json in [
            "",
            "\"",
            r#"{"$serde_json::private:Number":"1"}"#,
            r#"{"a$serde_json::private::Number":"1"}"#,
            r#"{"text":"on $serde_json::private::Number"}"#,
            r#"{"\u00"#,
            r#"{"\u+024serde_json::private::":1}"#,
            r#"{"price":"$5"}"#,
        ] {
            assert!(!has_reserved_name(json.as_bytes()), "{json}");
        }
    }
}
