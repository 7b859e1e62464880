//! The bodies of requests. Each denies unknown fields: a misspelled field is an error.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use rowmill_core::model::causes::Selection;
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::job::Priority;
use rowmill_core::model::results::{ResultKind, ResultsTo};
use rowmill_core::model::spec;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use rowmill_core::whole;

/// The longest idempotency key, in characters.
pub const IDEMPOTENCY_KEY_MAX_CHARS: usize = 255;

/// The longest file name, in bytes.
pub const FILE_NAME_MAX_BYTES: usize = 255;

/// The longest content type, in bytes.
pub const CONTENT_TYPE_MAX_BYTES: usize = 255;

/// The highest `maxConcurrency`: more chunks than there can be workers.
pub const MAX_CONCURRENCY_MAX: u32 = 10_000;

/// The most items of a request.
pub const ITEMS_MAX: usize = 1000;

/// The most bytes of the items of a request, as JSON lines without spaces. The function gets a body as text in JSON, in
/// which a quote takes two bytes: so twice the longest body must be below the 6 MB that Lambda takes.
pub const ITEMS_MAX_BYTES: usize = 1024 * 1024;

/// The body of `POST /api/jobs`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateJobRequest {
    /// The name of the job type, such as `import`.
    pub job_type: String,
    /// The upload to read. A job type that reads a file needs it, or `items`. Any other job type refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_guid: Option<FileGuid>,
    /// What the job reads in place of one upload: the result of a job, or many files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<JobSource>,
    /// A job of the caller. This one waits until it has ended well: it has completed, and not every item has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<JobGuid>,
    /// The items themselves, in place of a file: 1 to 1,000 JSON objects, at most 1 MiB together.
    #[serde(default, deserialize_with = "items", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Map<String, Value>>>, min_items = 1, max_items = 1000)]
    pub items: Option<Vec<Map<String, Value>>>,
    /// Whether a job of the caller that does the same with the same files is returned in place of a new one. Needs
    /// `fileGuid` or `source.files`.
    #[serde(default, deserialize_with = "dedupe", skip_serializing_if = "Option::is_none")]
    pub dedupe: Option<DedupeBy>,
    /// Parameters of the job type and of the file's format. At most 128 KiB of JSON.
    #[serde(default, deserialize_with = "object_or_null", skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Option<Map<String, Value>>)]
    pub params: Map<String, Value>,
    /// How many failed items the job tolerates before it is stopped. Any number, if left out.
    #[serde(default, deserialize_with = "tolerance", skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
    /// How many chunks of the job may be in flight at the same time. Default: twice as many as the workers can process
    /// at once, and half as many more.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10_000)]
    pub max_concurrency: Option<u32>,
    /// Which workers take the job up. Default: `normal`, or `low` if the caller may use no higher one. Not every caller
    /// may use `high`.
    #[serde(default, deserialize_with = "priority", skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// After how many seconds the job is stopped if it has not ended.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub deadline_seconds: Option<u64>,
    /// After how many seconds the job is stopped if none of its items has begun: it ends as `capacity_exceeded`. Default:
    /// only the deadline bounds its wait.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub start_within_seconds: Option<u64>,
    /// For how many seconds the job is kept after its end. Default: as long as the stack keeps jobs, which is also the
    /// most. Then it is deleted, with its results.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 60)]
    pub keep_seconds: Option<u64>,
    /// Where the results are copied to when the job has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results_to: Option<ResultsTo>,
    /// The client's own notes. The API shows them with the job. At most 1 KiB of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Map<String, Value>>)]
    pub metadata: Option<Map<String, Value>>,
}

/// The shortest `keepSeconds`.
pub const KEEP_SECONDS_MIN: u64 = 60;

impl CreateJobRequest {
    /// A request for a job of this type, with these params and nothing else.
    pub fn of(job_type: &str, params: Map<String, Value>) -> Self {
        Self {
            job_type: job_type.to_owned(),
            file_guid: None,
            source: None,
            after: None,
            items: None,
            dedupe: None,
            params,
            tolerance: None,
            max_concurrency: None,
            priority: None,
            deadline_seconds: None,
            start_within_seconds: None,
            keep_seconds: None,
            results_to: None,
            metadata: None,
        }
    }

    /// What a later request for the same needs, without params and items, which are stored in another place: an empty
    /// list stands for the items. It waits for no job, and makes a job in any case.
    #[must_use]
    pub fn to_repeat(&self) -> Self {
        Self {
            job_type: self.job_type.clone(),
            file_guid: self.file_guid,
            source: self.source.clone(),
            after: None,
            items: self.items.as_ref().map(|_| Vec::new()),
            dedupe: None,
            params: Map::new(),
            tolerance: self.tolerance,
            max_concurrency: self.max_concurrency,
            priority: self.priority,
            deadline_seconds: self.deadline_seconds,
            start_within_seconds: self.start_within_seconds,
            keep_seconds: self.keep_seconds,
            results_to: self.results_to.clone(),
            metadata: self.metadata.clone(),
        }
    }
}

/// The most uploads of a job.
pub const FILES_MAX: usize = 1000;

/// What a job reads in place of one upload: `jobGuid` with `file`, or `files`, or `s3`, or `manifest`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JobSource {
    /// A job of the caller. If it has not ended, the new one waits for its end; for its `output`, it must end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_guid: Option<JobGuid>,
    /// The file of its results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<ResultKind>,
    /// Uploads, which are read one after the other: 1 to 1,000, each once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 1000)]
    pub files: Option<Vec<FileGuid>>,
    /// Objects in an external bucket, which are read where they lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<ObjectSource>,
    /// An upload that lists objects in external buckets, which are read where they lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<FileGuid>,
}

/// The objects of a bucket whose keys begin and end like this, in the order of their keys.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectSource {
    /// A bucket that the stack may read.
    pub bucket: String,
    /// The beginning of the keys.
    #[serde(default)]
    #[schema(max_length = 1024)]
    pub prefix: String,
    /// The end of the keys, such as `.csv`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub suffix: Option<String>,
}

/// What a [`JobSource`] names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobInput<'a> {
    /// A file of the results of a job.
    Result {
        /// The job.
        job: JobGuid,
        /// The file.
        kind: ResultKind,
    },
    /// Many uploads.
    Files(&'a [FileGuid]),
    /// Objects of a bucket.
    Objects(&'a ObjectSource),
    /// The objects that an upload lists.
    Manifest(FileGuid),
}

impl JobSource {
    /// A result file of a job.
    pub fn of_result(job: JobGuid, kind: ResultKind) -> Self {
        Self { job_guid: Some(job), file: Some(kind), ..Self::default() }
    }

    /// What it names.
    ///
    /// # Errors
    /// The first wrong field, and the rest of the sentence that begins with its name.
    pub fn input(&self) -> Result<JobInput<'_>, (&'static str, String)> {
        match (self.job_guid, self.file, &self.files, &self.s3, self.manifest) {
            (Some(job), Some(kind), None, None, None) => Ok(JobInput::Result { job, kind }),
            (None, None, None, Some(objects), None) => Ok(JobInput::Objects(objects)),
            (None, None, None, None, Some(file_guid)) => Ok(JobInput::Manifest(file_guid)),
            (None, None, Some(files), None, None) => {
                let distinct: HashSet<_> = files.iter().collect();
                if !(1..=FILES_MAX).contains(&files.len()) {
                    return Err(("source.files", format!("must have 1 to {FILES_MAX} uploads.")));
                }
                if distinct.len() < files.len() {
                    return Err(("source.files", "names an upload twice. Name each upload once.".to_owned()));
                }
                Ok(JobInput::Files(files))
            }
            _ => {
                Err(("source", "must have either `jobGuid` and `file`, or `files`, or `s3`, or `manifest`.".to_owned()))
            }
        }
    }
}

/// The body of `PATCH /api/jobs/{jobGuid}`: limits that an active job gets. Those left out stay as they are. At least
/// one.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RetuneRequest {
    /// How many failed items the job tolerates before it is stopped.
    #[serde(default, deserialize_with = "tolerance", skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
    /// How many chunks of the job may be in flight at the same time. Running chunks end first.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10_000)]
    pub max_concurrency: Option<u32>,
    /// Which workers take up the messages that are sent from now on. Not every caller may use `high`.
    #[serde(default, deserialize_with = "priority", skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// After how many seconds the job is stopped if it has not ended, counted from its creation or its last redrive.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub deadline_seconds: Option<u64>,
}

impl RetuneRequest {
    /// Checks the values, as far as that needs no job. `maximum_deadline_seconds` is the longest deadline.
    ///
    /// # Errors
    /// The first wrong field, and the rest of the sentence that begins with its name.
    pub fn check(&self, maximum_deadline_seconds: u64) -> Result<(), (&'static str, String)> {
        if self.max_concurrency.is_some_and(|width| !(1..=MAX_CONCURRENCY_MAX).contains(&width)) {
            return Err(("maxConcurrency", format!("must be from 1 to {MAX_CONCURRENCY_MAX}.")));
        }
        if self.deadline_seconds.is_some_and(|seconds| !(1..=maximum_deadline_seconds).contains(&seconds)) {
            return Err(("deadlineSeconds", format!("must be from 1 to {maximum_deadline_seconds}.")));
        }
        match self.tolerance {
            Some(Tolerance { percent: Some(percent), .. }) if !(0.0..=100.0).contains(&percent) => {
                Err(("tolerance.percent", "must be from 0 to 100.".to_owned()))
            }
            Some(Tolerance { percent: None, count: None, .. }) => {
                Err(("tolerance", "must have a `percent` or a `count`.".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

impl CreateJobRequest {
    /// The limits that the job gets, and that may be changed later.
    pub const fn limits(&self) -> RetuneRequest {
        let Self { tolerance, max_concurrency, priority, deadline_seconds, .. } = *self;
        RetuneRequest { tolerance, max_concurrency, priority, deadline_seconds }
    }
}

/// What makes two jobs the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum DedupeBy {
    /// The bytes of the file, and every field of the request but `metadata` and `priority`.
    File,
}

/// A list of objects, or null. No error quotes what is in the list.
fn items<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Vec<Map<String, Value>>>, D::Error> {
    let items = match Value::deserialize(value)? {
        Value::Null => return Ok(None),
        Value::Array(items) => items,
        _ => return Err(D::Error::custom("expected a list of JSON objects")),
    };
    let object = |(place, item)| match item {
        Value::Object(object) => Ok(object),
        _ => Err(D::Error::custom(format!("expected JSON objects, but the item at index {place} is none"))),
    };
    items.into_iter().enumerate().map(object).collect::<Result<_, _>>().map(Some)
}

/// A priority, or null.
fn priority<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Priority>, D::Error> {
    word(value, Priority::parse, "`high`, `normal` or `low`")
}

/// What makes two jobs the same, or null.
fn dedupe<'de, D: Deserializer<'de>>(value: D) -> Result<Option<DedupeBy>, D::Error> {
    word(value, |word| (word == "file").then_some(DedupeBy::File), "`file`")
}

/// A word that `parse` knows, or null. The derived parser would take an object with the word as its only name too, and
/// would call a number no JSON at all.
fn word<'de, D: Deserializer<'de>, T>(
    value: D,
    parse: impl FnOnce(&str) -> Option<T>,
    known: &str,
) -> Result<Option<T>, D::Error> {
    let word = match Value::deserialize(value)? {
        Value::Null => return Ok(None),
        Value::String(word) => parse(&word),
        _ => None,
    };
    word.map(Some).ok_or_else(|| D::Error::custom(format!("expected {known}")))
}

/// An object; null counts as left out, as in the other optional fields.
fn object_or_null<'de, D: Deserializer<'de>>(value: D) -> Result<Map<String, Value>, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}

/// An object, or null. The derived parser would take a list of the values too.
fn tolerance<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Tolerance>, D::Error> {
    let fields: Option<Fields<Tolerance>> = Option::deserialize(value)?;
    Ok(fields.map(|Fields(tolerance)| tolerance))
}

/// What is read from an object, and from nothing else.
struct Fields<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_map(FieldsVisitor(PhantomData)).map(Fields)
    }
}

struct FieldsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FieldsVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields))
    }
}

/// How many failed items a job tolerates before it is stopped. `percent` or `count` is required.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tolerance {
    /// A higher percentage of failed items among the processed ones stops the job, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(minimum = 0, maximum = 100)]
    pub percent: Option<f64>,
    /// More failed items than this stop the job.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The percentage is ignored until this many items are processed.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    pub minimum_items: Option<u64>,
}

impl From<Tolerance> for spec::Tolerance {
    fn from(Tolerance { percent, count, minimum_items }: Tolerance) -> Self {
        Self { percent, count, minimum_items }
    }
}

impl From<spec::Tolerance> for Tolerance {
    fn from(spec::Tolerance { percent, count, minimum_items }: spec::Tolerance) -> Self {
        Self { percent, count, minimum_items }
    }
}

/// The body of `POST /api/jobs/{jobGuid}/redrive`, which may be left out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedriveRequest {
    /// The upload of a corrected file: its rows replace failed rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_guid: Option<FileGuid>,
    /// Which failed rows are processed; the others keep their failures. Default: all, or those of the corrected file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Selection>,
    /// After how many seconds the attempt is stopped if it has not ended.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub deadline_seconds: Option<u64>,
}

/// The body of `POST /api/jobs/{jobGuid}/prune`, which may be left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PruneRequest {
    /// True if the records are only counted and listed. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
}

/// The body of `POST /api/uploads/{fileGuid}/parts`, which may be left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignPartsRequest {
    /// Missing parts with a smaller number are left out. Default: 1.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 10_000)]
    pub from: Option<u32>,
}

/// The body of `POST /api/uploads/{fileGuid}/preview`, which may be left out.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreviewRequest {
    /// The job type that shall read the file. If it is given, its params are checked too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_type: Option<String>,
    /// Parameters as of a new job. Without a job type only those that say how the file is read. At most 128 KiB of
    /// JSON.
    #[serde(default, deserialize_with = "object_or_null", skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Option<Map<String, Value>>)]
    pub params: Map<String, Value>,
    /// How many rows to show. Default: 20.
    #[serde(default, deserialize_with = "whole::optional", skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 100)]
    pub rows: Option<u32>,
}

/// The JSON body of `POST /api/uploads`: it announces a file that the client sends straight into the bucket.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AnnounceRequest {
    /// The file's name: at most 255 bytes, without control characters.
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    pub file_name: String,
    /// The file's media type, such as `text/csv`.
    #[schema(max_length = 255, pattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+ *(;[ -~]*)?$")]
    pub content_type: String,
    /// The file's length in bytes.
    #[serde(deserialize_with = "whole::required")]
    pub size: u64,
    /// The SHA-256 of the file's bytes, in hexadecimal. The bucket checks it. Not for a file that is sent in parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-fA-F]{64}$")]
    pub sha256: Option<String>,
}

/// The JSON body of `POST /api/uploads` for a file that Rowmill fetches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FetchRequest {
    /// Where the file is.
    pub source: FetchSource,
    /// The file's name: at most 255 bytes, without control characters. Default: the end of the URL's path, or of the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 255, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    pub file_name: Option<String>,
    /// The file's media type, such as `text/csv`. Default: what its server says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255, pattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+ *(;[ -~]*)?$")]
    pub content_type: Option<String>,
}

/// Where a file is fetched from: `url`, or `s3`.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FetchSource {
    /// The file's URL. It begins with `https://`, has no user name and no password, and its host is in the stack's
    /// parameter `FetchHosts`. Its query is kept only until the file is fetched, and is never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 2048)]
    pub url: Option<String>,
    /// An object in an external bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<FetchObject>,
}

/// An object that is fetched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FetchObject {
    /// A bucket that the stack may read.
    pub bucket: String,
    /// Its key.
    #[schema(min_length = 1, max_length = 1024)]
    pub key: String,
}

impl fmt::Debug for FetchSource {
    /// Its query may be as good as a password, so it must not reach a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchSource").finish_non_exhaustive()
    }
}

/// The JSON body of `POST /api/uploads`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum UploadRequest {
    /// The client sends the file straight into the bucket.
    Announce(AnnounceRequest),
    /// Rowmill fetches the file.
    Fetch(FetchRequest),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_objects_and_no_error_quotes_them() {
        let request = |items: &str| {
            let text = format!(r#"{{"jobType": "validate", "items": {items}}}"#);
            serde_json::from_str::<CreateJobRequest>(&text)
        };
        assert_eq!(request("null").unwrap().items, None);
        let items = request(r#"[{"price": 1.10, "id": 12345678901234567890123}, {}]"#).unwrap().items.unwrap();
        assert_eq!(serde_json::to_string(&items[0]).unwrap(), r#"{"id":12345678901234567890123,"price":1.10}"#);
        for wrong in [r#"[{}, "secret"]"#, r#""secret""#, r#"[{}, ["secret"]]"#, r#"{"a": "secret"}"#] {
            let error = request(wrong).unwrap_err().to_string();
            assert!(error.contains("JSON objects") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_tolerance_is_an_object_whose_numbers_may_be_written_in_any_way() {
        let tolerance = |tolerance: &str| {
            let text = format!(r#"{{"jobType": "validate", "tolerance": {tolerance}}}"#);
            serde_json::from_str::<CreateJobRequest>(&text).map(|request| request.tolerance)
        };
        assert_eq!(tolerance("null").unwrap(), None);
        let expected = Tolerance { percent: Some(50.0), count: Some(737), minimum_items: Some(1000) };
        for numbers in [[50, 737, 1000].map(|n| n.to_string()), ["5e1", "737.0", "1e3"].map(str::to_owned)] {
            let [percent, count, minimum] = numbers;
            let text = format!(r#"{{"percent": {percent}, "count": {count}, "minimumItems": {minimum}}}"#);
            assert_eq!(tolerance(&text).unwrap(), Some(expected), "{text}");
        }
        for wrong in ["[50, 737, 1000]", "50", r#"{"count": 1.5}"#, r#"{"count": "7"}"#, r#"{"rows": 7}"#] {
            assert!(tolerance(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_word_is_one_that_is_known_or_left_out() {
        let with = |field: &str, word: &str| {
            let text = format!(r#"{{"jobType": "validate", "{field}": {word}}}"#);
            serde_json::from_str::<CreateJobRequest>(&text)
        };
        let request = |priority: &str| with("priority", priority);
        let left_out: CreateJobRequest = serde_json::from_str(r#"{"jobType": "validate"}"#).unwrap();
        assert_eq!(request("null").unwrap(), left_out);
        assert_eq!(serde_json::to_string(&left_out).unwrap(), r#"{"jobType":"validate"}"#);
        for priority in Priority::ALL {
            let text = serde_json::to_string(&priority).unwrap();
            assert_eq!(request(&text).unwrap().priority, Some(priority));
        }
        let texts = ["High", "HIGH", " high", "high ", "", "secret", "hıgh"].map(|text| format!("\"{text}\""));
        let others = ["0", "1.5", "1e400", "true", "[]", r#"["high"]"#, "{}", r#"{"high": null}"#].map(str::to_owned);
        for (field, known) in [("priority", "`high`, `normal` or `low`"), ("dedupe", "`file`")] {
            for wrong in texts.iter().chain(&others) {
                let error = with(field, wrong).unwrap_err();
                assert!(error.is_data(), "{wrong} is JSON: {error}");
                let text = error.to_string();
                assert!(text.starts_with(&format!("expected {known}")) && !text.contains("secret"), "{text}");
            }
        }
        assert_eq!(with("dedupe", r#""file""#).unwrap().dedupe, Some(DedupeBy::File));
        assert!(with("dedupe", r#"{"file": null}"#).is_err());
    }

    #[test]
    fn params_that_are_null_count_as_left_out() {
        let request = |text: &str| serde_json::from_str::<CreateJobRequest>(text);
        let left_out = request(r#"{"jobType": "validate"}"#).unwrap();
        assert_eq!(request(r#"{"jobType": "validate", "params": null}"#).unwrap(), left_out);
        assert_eq!(serde_json::from_str::<PreviewRequest>(r#"{"params": null}"#).unwrap(), PreviewRequest::default());
        for wrong in ["[]", "7", "\"{}\""] {
            assert!(request(&format!(r#"{{"jobType": "validate", "params": {wrong}}}"#)).is_err(), "{wrong}");
        }
    }
}
