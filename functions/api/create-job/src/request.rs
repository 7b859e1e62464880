//! The body of a request: its limits, its checks and its fingerprint.

pub use rowmill_api::request::CreateJobRequest;
use rowmill_api::request::{IDEMPOTENCY_KEY_MAX_CHARS, ITEMS_MAX, KEEP_SECONDS_MIN};
use rowmill_core::model::sha256::sha256_hex;
use serde_json::{Map, Value, json};

use crate::limits::CreateLimits;
use crate::source::input_of;

/// The largest `params`, in bytes of their JSON.
pub const PARAMS_MAX_BYTES: usize = 128 * 1024;

/// The largest `metadata`, in bytes of its JSON: it is kept in the job row, which must stay small.
pub const METADATA_MAX_BYTES: usize = 1024;

/// Maximum nesting of `params` and `metadata`: they are stored inside of other JSON, which has a limit too.
pub const NESTING_MAX: usize = 64;

/// A digest that is the same for two requests with the same values.
///
/// It is stored with the idempotency key, so its form must not change: all fields by name, those left out as null.
/// Fields that came later are left out if the request has none.
pub fn fingerprint(request: &CreateJobRequest) -> String {
    let CreateJobRequest {
        job_type,
        file_guid,
        source,
        after,
        items,
        dedupe,
        params,
        tolerance,
        max_concurrency,
        priority,
        deadline_seconds,
        start_within_seconds,
        keep_seconds,
        results_to,
        metadata,
    } = request;
    let mut fields = json!({
        "jobType": job_type,
        "fileGuid": file_guid,
        "params": params,
        "tolerance": tolerance,
        "maxConcurrency": max_concurrency,
        "deadlineSeconds": deadline_seconds,
        "metadata": metadata,
    });
    let optional = [
        ("source", json!(source)),
        ("after", json!(after)),
        ("items", json!(items)),
        ("dedupe", json!(dedupe)),
        ("priority", json!(priority)),
        ("startWithinSeconds", json!(start_within_seconds)),
        ("keepSeconds", json!(keep_seconds)),
        ("resultsTo", json!(results_to)),
    ];
    add_given(&mut fields, optional);
    digest(&fields)
}

/// Adds the fields that are not null. So a digest stays the same when there are further fields.
pub fn add_given(fields: &mut Value, optional: impl IntoIterator<Item = (&'static str, Value)>) {
    for (name, value) in optional.into_iter().filter(|(_, value)| !value.is_null()) {
        fields[name] = value;
    }
}

/// The SHA-256 of a value, in hexadecimal digits.
pub fn digest(value: &Value) -> String {
    sha256_hex(sorted(value))
}

/// The value as JSON text with the names of every object in order, independent of the order in the request.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let field = |(name, value): &(&String, &Value)| format!("{}:{}", Value::from(name.as_str()), sorted(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(values) => format!("[{}]", values.iter().map(sorted).collect::<Vec<_>>().join(",")),
        plain => plain.to_string(),
    }
}

/// True if a value has more than `levels` levels of objects and lists.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let within = |value: &Value| levels == 0 || is_deeper(value, levels - 1);
    match value {
        Value::Object(fields) => levels == 0 || fields.values().any(within),
        Value::Array(values) => levels == 0 || values.iter().any(within),
        _ => false,
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{field}` {message}")]
pub struct InvalidField {
    /// The field or header.
    pub field: String,
    /// The fault and its remedy: the rest of the sentence that begins with the field's name.
    pub message: String,
}

impl InvalidField {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// Checks what can be checked without a lookup.
pub fn check(request: &CreateJobRequest, limits: &CreateLimits) -> Result<(), InvalidField> {
    let maximum_deadline_seconds = limits.deadlines.maximum_seconds;
    let size = |map: &Map<String, Value>| serde_json::to_vec(map).map_or(usize::MAX, |json| json.len());
    let error = |field: &str, message: String| Err(InvalidField::new(field, message));
    if size(&request.params) > PARAMS_MAX_BYTES {
        return error("params", format!("has more than the maximum of {PARAMS_MAX_BYTES} bytes of JSON."));
    }
    if request.metadata.as_ref().is_some_and(|metadata| size(metadata) > METADATA_MAX_BYTES) {
        return error("metadata", format!("has more than the maximum of {METADATA_MAX_BYTES} bytes of JSON."));
    }
    let metadata = request.metadata.iter().map(|metadata| ("metadata", metadata));
    for (field, map) in metadata.chain([("params", &request.params)]) {
        if map.values().any(|value| is_deeper(value, NESTING_MAX - 1)) {
            return error(field, format!("is nested deeper than the maximum of {NESTING_MAX} levels."));
        }
    }
    let beside_source = [
        ("fileGuid", request.file_guid.is_some()),
        ("items", request.items.is_some()),
        ("after", request.after.is_some()),
    ];
    if request.source.is_some()
        && let Some((field, _)) = beside_source.into_iter().find(|(_, is_given)| *is_given)
    {
        return error(field, "must be left out: `source` names what is read, and the job to wait for.".to_owned());
    }
    input_of(request)?;
    if request.items.as_ref().is_some_and(|items| !(1..=ITEMS_MAX).contains(&items.len())) {
        return error("items", format!("must have 1 to {ITEMS_MAX} items. Upload more of them as a file."));
    }
    if request.start_within_seconds.is_some_and(|seconds| !(1..=maximum_deadline_seconds).contains(&seconds)) {
        return error("startWithinSeconds", format!("must be from 1 to {maximum_deadline_seconds}."));
    }
    let kept_max = limits.jobs.retention.as_secs();
    if request.keep_seconds.is_some_and(|seconds| !(KEEP_SECONDS_MIN..=kept_max).contains(&seconds)) {
        return error("keepSeconds", format!("must be from {KEEP_SECONDS_MIN} to {kept_max}."));
    }
    let of_job = request.limits().check(maximum_deadline_seconds);
    of_job.map_err(|(field, message)| InvalidField::new(field, message))
}

/// Checks that the request names files that are there, if it asks for the job that does the same.
pub fn check_dedupe(request: &CreateJobRequest) -> Result<(), InvalidField> {
    let has_files = request.file_guid.is_some() || request.source.as_ref().is_some_and(|source| source.files.is_some());
    match request.dedupe {
        Some(_) if !has_files => {
            let message = "finds jobs by their files: send a `fileGuid` or `source.files` with it, or leave it out.";
            Err(InvalidField::new("dedupe", message))
        }
        _ => Ok(()),
    }
}

/// Checks an `Idempotency-Key`.
///
/// # Errors
/// If the key is empty, too long or not printable ASCII.
pub fn check_idempotency_key(key: &str) -> Result<(), InvalidField> {
    if (1..=IDEMPOTENCY_KEY_MAX_CHARS).contains(&key.len()) && key.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
        return Ok(());
    }
    let message = format!("must have 1 to {IDEMPOTENCY_KEY_MAX_CHARS} printable ASCII characters.");
    Err(InvalidField::new("Idempotency-Key", message))
}

#[cfg(test)]
mod tests {
    use rowmill_settings::Deadlines;

    use super::*;

    fn request(json: &str) -> CreateJobRequest {
        serde_json::from_str(json).unwrap()
    }

    const GUID: &str = "00000000-0000-4000-8000-000000000001";

    #[test]
    fn the_fingerprint_depends_on_values_but_not_on_their_order() {
        let json = |params: &str| format!(r#"{{"jobType":"import","fileGuid":"{GUID}","params":{params}}}"#);
        let one = request(&json(r#"{"a":1,"b":{"c":2,"d":[3,4]}}"#));
        let same = request(&json(r#"{"b":{"d":[3,4],"c":2},"a":1}"#));
        let other = request(&json(r#"{"a":1,"b":{"c":2,"d":[4,3]}}"#));
        assert_eq!(fingerprint(&one), fingerprint(&same));
        assert_ne!(fingerprint(&one), fingerprint(&other));
    }

    #[test]
    fn the_fingerprint_depends_on_the_items_and_on_the_wish_for_one_job() {
        let one = request(r#"{"jobType":"import","items":[{"a":1,"b":2}]}"#);
        let same = request(r#"{"jobType":"import","items":[{"b":2,"a":1}]}"#);
        let others = [
            request(r#"{"jobType":"import","items":[{"a":1,"b":3}]}"#),
            request(r#"{"jobType":"import"}"#),
            request(r#"{"jobType":"import","dedupe":"file"}"#),
        ];
        assert_eq!(fingerprint(&one), fingerprint(&same));
        let mut all = others.map(|other| fingerprint(&other)).to_vec();
        all.push(fingerprint(&one));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn the_fingerprint_depends_on_the_priority_if_one_is_given() {
        let of = |priority: &str| fingerprint(&request(&format!(r#"{{"jobType":"import","priority":{priority}}}"#)));
        let mut all = ["null", r#""high""#, r#""normal""#, r#""low""#].map(of).to_vec();
        assert_eq!(all[0], fingerprint(&request(r#"{"jobType":"import"}"#)), "null is left out");
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn the_fingerprint_keeps_its_stored_form() {
        let request = request(&format!(r#"{{"jobType":"import","fileGuid":"{GUID}","params":{{"a":1}}}}"#));
        assert_eq!(fingerprint(&request), "03ee8f58021d615b1e3bb773227b6d862f9f02d63cb6c2a3c1656b001533b8dd");
    }

    #[test]
    fn an_error_for_a_value_out_of_bounds_names_its_field() {
        let with = |extra: &str| request(&format!(r#"{{"jobType":"import","fileGuid":"{GUID}"{extra}}}"#));
        let deadlines = Deadlines { maximum_seconds: 100, ..Deadlines::default() };
        let limits = CreateLimits { deadlines, ..CreateLimits::default() };
        let field = |extra: &str| check(&with(extra), &limits).err().map(|error| error.field);
        assert_eq!(field(""), None);
        assert_eq!(field(r#","deadlineSeconds":100"#), None);
        assert_eq!(field(r#","deadlineSeconds":0"#).as_deref(), Some("deadlineSeconds"));
        assert_eq!(field(r#","deadlineSeconds":101"#).as_deref(), Some("deadlineSeconds"));
        assert_eq!(field(r#","startWithinSeconds":100"#), None);
        assert_eq!(field(r#","startWithinSeconds":0"#).as_deref(), Some("startWithinSeconds"));
        assert_eq!(field(r#","startWithinSeconds":101"#).as_deref(), Some("startWithinSeconds"));
        for (seconds, is_good) in [(59, false), (60, true), (2_592_000, true), (2_592_001, false)] {
            assert_eq!(field(&format!(r#","keepSeconds":{seconds}"#)).is_none(), is_good, "{seconds}");
        }
        assert_eq!(field(r#","tolerance":{"percent":101}"#).as_deref(), Some("tolerance.percent"));
        assert_eq!(field(r#","tolerance":{}"#).as_deref(), Some("tolerance"));
        assert_eq!(field(r#","tolerance":{"count":0}"#), None);
        let long = "x".repeat(METADATA_MAX_BYTES);
        assert_eq!(field(&format!(r#","metadata":{{"a":"{long}"}}"#)).as_deref(), Some("metadata"));
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        for name in ["metadata", "params"] {
            assert_eq!(field(&format!(r#","{name}":{{"a":{}}}"#, nested(NESTING_MAX - 1))), None);
            assert_eq!(field(&format!(r#","{name}":{{"a":{}}}"#, nested(NESTING_MAX))).as_deref(), Some(name));
        }
        let listed = format!(r#"{{"jobType":"import","fileGuid":"{GUID}","tolerance":[50]}}"#);
        assert!(serde_json::from_str::<CreateJobRequest>(&listed).is_err());
        let of_dedupe = |json: &str| check_dedupe(&request(json)).err().map(|error| error.field);
        assert_eq!(of_dedupe(&format!(r#"{{"jobType":"import","fileGuid":"{GUID}","dedupe":"file"}}"#)), None);
        assert_eq!(of_dedupe(r#"{"jobType":"import","dedupe":"file"}"#).as_deref(), Some("dedupe"));
        let field_of = |json: &str| check(&request(json), &limits).err().map(|error| error.field);
        assert_eq!(field_of(r#"{"jobType":"import","items":[]}"#).as_deref(), Some("items"));
        let items = |count: usize| format!(r#"{{"jobType":"import","items":[{}]}}"#, vec!["{}"; count].join(","));
        assert_eq!(field_of(&items(1000)), None);
        assert_eq!(field_of(&items(1001)).as_deref(), Some("items"));
        assert_eq!(field(r#","maxConcurrency":0"#).as_deref(), Some("maxConcurrency"));
        assert!(check_idempotency_key("order 7/2").is_ok());
        assert!(check_idempotency_key("").is_err());
        assert!(check_idempotency_key("ü").is_err());
    }
}
