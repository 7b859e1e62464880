//! What an object asks for: notes on the object itself, or a sidecar beside it.
//!
//! Both hold a job request as `POST /api/jobs` takes it, without `jobType` and `fileGuid`, which the object itself says. The
//! notes of an object are short (2 KB) and ASCII; a sidecar may have all that a request may.

use create_job::request::CreateJobRequest;
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::ports::{ObjectHead, Objects, PortError};
use serde_json::{Map, Value, json};

use rowmill_core::model::keys::KEY_MAX_BYTES;

/// The note that names the owner: `x-amz-meta-rowmill-owner`.
pub const OWNER_NOTE: &str = "rowmill-owner";

/// The note that holds a request: `x-amz-meta-rowmill-request`.
pub const REQUEST_NOTE: &str = "rowmill-request";

/// What the name of a sidecar has behind that of its file.
pub const SIDECAR_SUFFIX: &str = ".job.json";

/// The largest sidecar, in bytes: as much as the body of a request.
pub const SIDECAR_MAX_BYTES: u64 = 256 * 1024;

/// What an object asks for.
#[derive(Clone, PartialEq, Debug)]
pub struct JobNotes {
    /// Whose job it is to be.
    pub owner: Owner,
    /// The request, without job type and file.
    pub request: Map<String, Value>,
    /// Where the request stood, for people.
    pub place: String,
}

/// What is wrong with a job notes.
#[derive(Debug, thiserror::Error)]
pub enum JobNotesError {
    /// It is no JSON.
    #[error("{place} is not JSON: {source}")]
    Syntax {
        /// Where it stood.
        place: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// It is JSON of another shape.
    #[error("{place}: {field}: {message}")]
    Shape {
        /// Where it stood.
        place: String,
        /// Which field of it.
        field: String,
        /// What is wrong with it.
        message: String,
    },
    /// A sidecar is too long.
    #[error("{place} has {size} bytes, more than the {SIDECAR_MAX_BYTES} it may have")]
    TooLong {
        /// Which sidecar.
        place: String,
        /// Its length in bytes.
        size: u64,
    },
    /// No owner can have this name.
    #[error(
        "the owner that {place} names cannot be one: it must have 1 to {} bytes, no control characters and no `#`; a name \
         that is not ASCII belongs into a sidecar",
        Owner::MAX_BYTES
    )]
    Owner {
        /// What names it.
        place: String,
    },
    /// The sidecar cannot be read just now.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl JobNotes {
    /// What the object of this key asks for. Its notes come before its sidecar; who is named by neither is `default_owner`.
    ///
    /// # Errors
    /// See [`JobNotesError`].
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
    /// [`JobNotesError::Shape`] where it is none.
    pub fn request(mut self, job_type: &str, file_guid: FileGuid) -> Result<CreateJobRequest, JobNotesError> {
        let place = self.place;
        for field in ["jobType", "fileGuid"] {
            if self.request.contains_key(field) {
                let message = "must be left out: the object itself says it".to_owned();
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

/// Where the sidecar of a file lies; none where no key can be that long, which S3 refuses even to look for.
fn sidecar_key(key: &str) -> Option<String> {
    Some(format!("{key}{SIDECAR_SUFFIX}")).filter(|key| key.len() <= KEY_MAX_BYTES)
}

/// The sidecar of this key and what it says, if it is there.
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
    match serde_json::from_slice(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => {
            let message = "must be a JSON object".to_owned();
            Err(JobNotesError::Shape { place: place.to_owned(), field: ".".to_owned(), message })
        }
        Err(source) => Err(JobNotesError::Syntax { place: place.to_owned(), source }),
    }
}

fn owner_of(place: &str, name: &Value) -> Result<Owner, JobNotesError> {
    // What is not ASCII arrives in notes as an encoded word, which nobody is called.
    let name = name.as_str().filter(|name| !name.starts_with("=?"));
    name.and_then(Owner::of_name).ok_or_else(|| JobNotesError::Owner { place: place.to_owned() })
}
