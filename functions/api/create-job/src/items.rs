//! Items that come with the request, as the text that the job reads: JSON lines.

use bytes::Bytes;
use rowmill_api::request::ITEMS_MAX_BYTES;
use serde_json::{Map, Value};

use crate::request::{CreateJobRequest, InvalidField};

/// The text of these items.
///
/// # Errors
/// They are too long together, or the request names a file too.
pub fn text_of(request: &CreateJobRequest, items: &[Map<String, Value>]) -> Result<Bytes, InvalidField> {
    if request.file_guid.is_some() {
        return Err(InvalidField::new("items", "must be left out if there is a `fileGuid`."));
    }
    let mut text = Vec::new();
    for item in items {
        serde_json::to_writer(&mut text, item).map_err(|_| InvalidField::new("items", "cannot be written as JSON."))?;
        text.push(b'\n');
    }
    if text.len() > ITEMS_MAX_BYTES {
        let bytes = text.len();
        let message = format!("have {bytes} bytes; at most {ITEMS_MAX_BYTES} are allowed. Upload them as a file.");
        return Err(InvalidField::new("items", message));
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Result<Bytes, InvalidField> {
        let request: CreateJobRequest = serde_json::from_str(json).unwrap();
        text_of(&request, request.items.as_deref().unwrap())
    }

    #[test]
    fn each_item_is_a_line_with_its_numbers_as_written() {
        let items = "{\"jobType\": \"validate\", \"items\": [{ \"a\" : 1.10,\n \"b\": [\"x\\ny\"] }, {}]}";
        assert_eq!(text(items).unwrap(), &b"{\"a\":1.10,\"b\":[\"x\\ny\"]}\n{}\n"[..]);
    }

    #[test]
    fn items_that_are_too_long_together_are_refused_without_a_quote() {
        let of = |length: usize| format!(r#"{{"jobType": "validate", "items": [{{"a": "{}"}}]}}"#, "x".repeat(length));
        // `{"a":""}` and the end of the line have nine bytes.
        assert_eq!(text(&of(ITEMS_MAX_BYTES - 9)).unwrap().len(), ITEMS_MAX_BYTES);
        let refused = text(&of(ITEMS_MAX_BYTES - 8)).unwrap_err();
        assert!(refused.field == "items" && !refused.message.contains("xx"), "{refused}");
    }
}
