//! The request of a dropped object: in notes on the object itself, or in a sidecar beside it.
//!
//! Both hold a job request as for `POST /api/jobs`, without `jobType`, `fileGuid`, `source` and `items`, which come from the
//! object. Notes are short (2 KB) and ASCII; a sidecar may be as long as a request.

use create_job::request::CreateJobRequest;
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::ports::{ObjectHead, Objects, PortError};
use rowmill_core::text::{RESERVED_NAMES, has_reserved_name};
use serde_json::{Map, Value, json};

use rowmill_core::model::keys::KEY_MAX_BYTES;

/// The note that names the owner: `x-amz-meta-rowmill-owner`.
pub const OWNER_NOTE: &str = "rowmill-owner";

/// The note that holds a request: `x-amz-meta-rowmill-request`.
pub const REQUEST_NOTE: &str = "rowmill-request";

pub const SIDECAR_SUFFIX: &str = ".job.json";

/// The largest sidecar, in bytes: the same as the body of a request.
pub const SIDECAR_MAX_BYTES: u64 = 256 * 1024;

/// The request of an object.
#[derive(Clone, PartialEq, Debug)]
pub struct JobNotes {
    pub owner: Owner,
    /// The request, without job type and file.
    pub request: Map<String, Value>,
    /// Where the request was found, for problem details.
    pub place: String,
}

/// Why the notes of a job cannot be used. The texts are details of the problem report.
#[derive(Debug, thiserror::Error)]
pub enum JobNotesError {
    #[error("The job request in {place} is not JSON: {source}. Correct it and drop the file again.")]
    Syntax { place: String, source: serde_json::Error },
    #[error("The job request in {place} is wrong at `{field}`: {message}. Correct it and drop the file again.")]
    Shape { place: String, field: String, message: String },
    #[error(
        "The job request in {place} has {size} bytes, more than the maximum of {SIDECAR_MAX_BYTES}. Shorten it and drop \
         the file again."
    )]
    TooLong { place: String, size: u64 },
    #[error(
        "The owner in {place} is not valid. It must have 1 to {} bytes, no control characters and no `#`; a name that \
         is not ASCII must be in a sidecar. Correct it and drop the file again.",
        Owner::MAX_BYTES
    )]
    Owner { place: String },
    /// The sidecar could not be read: a port failed.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl JobNotes {
    /// Reads the request of the object of this key. Its notes have precedence over its sidecar. Without an owner in
    /// either, the job belongs to `default_owner`.
    pub async fn of(
        objects: &dyn Objects,
        key: &str,
        head: &ObjectHead,
        default_owner: &Owner,
    ) -> Result<Self, JobNotesError> {
        let (owner, request) = (head.metadata.get(OWNER_NOTE), head.metadata.get(REQUEST_NOTE));
        let mut sidecar = match (owner, request) {
            (Some(_), Some(_)) => None,
            _ => match sidecar_key(key) {
                Some(key) => read_sidecar(objects, &key).await?,
                None => None,
            },
        };
        let named_beside = sidecar.as_mut().and_then(|(place, notes)| Some((place.clone(), notes.remove("owner")?)));
        let owner = match (owner, named_beside) {
            (Some(name), _) => owner_of(&format!("the note `{OWNER_NOTE}`"), &Value::from(name.as_str()))?,
            (None, Some((place, name))) => owner_of(&place, &name)?,
            (None, None) => default_owner.clone(),
        };
        let place = format!("the note `{REQUEST_NOTE}`");
        let (place, request) = match (request, sidecar) {
            (Some(text), _) => (place.clone(), object(&place, text.as_bytes())?),
            (None, Some(sidecar)) => sidecar,
            (None, None) => (place, Map::new()),
        };
        Ok(Self { owner, request, place })
    }

    /// The request with the job type and the file.
    ///
    /// # Errors
    /// [`JobNotesError::Shape`] if it is not a valid request.
    pub fn request(mut self, job_type: &str, file_guid: FileGuid) -> Result<CreateJobRequest, JobNotesError> {
        let place = self.place;
        for field in ["jobType", "fileGuid", "source", "items"] {
            if self.request.contains_key(field) {
                let message = "it must be left out, because it follows from the object".to_owned();
                return Err(JobNotesError::Shape { place, field: field.to_owned(), message });
            }
        }
        self.request.insert("jobType".to_owned(), json!(job_type));
        self.request.insert("fileGuid".to_owned(), json!(file_guid));
        serde_path_to_error::deserialize(Value::Object(self.request)).map_err(|error| {
            let field = error.path().to_string();
            JobNotesError::Shape { place, field, message: error.into_inner().to_string() }
        })
    }
}

/// The key of a file's sidecar. `None` if it would be longer than a key may be: S3 rejects even a read then.
fn sidecar_key(key: &str) -> Option<String> {
    Some(format!("{key}{SIDECAR_SUFFIX}")).filter(|key| key.len() <= KEY_MAX_BYTES)
}

/// The sidecar of this file and its key, if there is one.
async fn read_sidecar(objects: &dyn Objects, key: &str) -> Result<Option<(String, Map<String, Value>)>, JobNotesError> {
    let head = match objects.head(key).await {
        Err(PortError::NotFound) => return Ok(None),
        head => head?,
    };
    let place = format!("the sidecar `{key}`");
    if head.size > SIDECAR_MAX_BYTES {
        return Err(JobNotesError::TooLong { place, size: head.size });
    }
    let text = objects.read_range(key, &head.etag, 0..head.size).await?;
    let notes = object(&place, &text)?;
    Ok(Some((place, notes)))
}

fn object(place: &str, text: &[u8]) -> Result<Map<String, Value>, JobNotesError> {
    if has_reserved_name(text) {
        let message = format!("a field has a name that begins with `{RESERVED_NAMES}`");
        return Err(JobNotesError::Shape { place: place.to_owned(), field: ".".to_owned(), message });
    }
    match serde_json::from_slice(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => {
            let message = "it must be a JSON object".to_owned();
            Err(JobNotesError::Shape { place: place.to_owned(), field: ".".to_owned(), message })
        }
        Err(source) => Err(JobNotesError::Syntax { place: place.to_owned(), source }),
    }
}

fn owner_of(place: &str, name: &Value) -> Result<Owner, JobNotesError> {
    // Text that is not ASCII arrives in notes as an encoded word, which must not become an owner's name.
    let name = name.as_str().filter(|name| !name.starts_with("=?"));
    name.and_then(Owner::of_name).ok_or_else(|| JobNotesError::Owner { place: place.to_owned() })
}
