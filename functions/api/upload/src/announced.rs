//! Checks what a client says of a file.

use crate::error::UploadError;
use crate::request::{CONTENT_TYPE_MAX_BYTES, FILE_NAME_MAX_BYTES};

/// Characters of a token of RFC 9110 beside letters and digits.
const TOKEN_MARKS: &str = "!#$%&'*+-.^_`|~";

pub fn check_names(file_name: Option<&str>, content_type: &str) -> Result<(), UploadError> {
    if let Some(name) = file_name
        && !is_file_name(name)
    {
        let message = format!("must have 1 to {FILE_NAME_MAX_BYTES} bytes and no control characters.");
        return Err(UploadError::Field { field: "fileName", message });
    }
    if !is_media_type(content_type) {
        let message = format!("must be a media type of at most {CONTENT_TYPE_MAX_BYTES} bytes, such as `text/csv`.");
        return Err(UploadError::Field { field: "contentType", message });
    }
    Ok(())
}

pub fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= FILE_NAME_MAX_BYTES && !name.chars().any(char::is_control)
}

/// True if it is `type/subtype` (RFC 9110), with or without parameters behind it, and not too long.
pub fn is_media_type(content_type: &str) -> bool {
    let is_printable = content_type.is_ascii() && !content_type.chars().any(char::is_control);
    if content_type.len() > CONTENT_TYPE_MAX_BYTES || !is_printable {
        return false;
    }
    let is_token =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || TOKEN_MARKS.contains(c));
    let name = content_type.split(';').next().unwrap_or_default().trim_end();
    name.split_once('/').is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

pub fn parse_sha256(hex: &str) -> Result<[u8; 32], UploadError> {
    let error = || UploadError::Field { field: "sha256", message: "must have 64 hexadecimal digits.".into() };
    if hex.len() != 64 || !hex.is_ascii() {
        return Err(error());
    }
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| error())?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| error())?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::is_media_type;

    #[test]
    fn a_media_type_is_two_tokens_with_or_without_parameters() {
        for good in ["text/csv", "text/csv; charset=utf-8", "application/vnd.ms-excel", "a/b ;"] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in ["", "/", "text", "text/", "/csv", "text/csv/x", "te xt/csv", " text/csv", "text csv; a/b"] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }
}
