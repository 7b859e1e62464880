/// An error behind a port, classified by what the caller does about it.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The row or object does not exist.
    #[error("not found")]
    NotFound,
    /// The object was replaced (ETag mismatch), or does not match its checksum.
    #[error("changed since it was first seen")]
    Changed,
    /// Temporarily unavailable, after the adapter's own retries: try again later. Any method of a port may return it,
    /// so the ports document their other errors only.
    #[error("{doing}: unavailable")]
    Unavailable {
        doing: &'static str,
        #[source]
        source: BoxError,
    },
    /// The function lacks a permission for the operation: trying again only helps once an operator has corrected it.
    #[error("{doing}: missing permission")]
    Denied {
        doing: &'static str,
        #[source]
        source: BoxError,
    },
    /// The answer or the stored value cannot be decoded, or the request is malformed: trying again does not help.
    #[error("{doing}: not understood")]
    Invalid {
        doing: &'static str,
        #[source]
        source: BoxError,
    },
}

/// What was read; none if it does not exist.
///
/// # Errors
/// Those of the read, without `NotFound`.
pub fn found<T>(read: Result<T, PortError>) -> Result<Option<T>, PortError> {
    match read {
        Err(PortError::NotFound) => Ok(None),
        read => read.map(Some),
    }
}

pub type PortResult<T> = Result<T, PortError>;

/// The cause behind a [`PortError`].
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl PortError {
    pub fn unavailable(doing: &'static str, source: impl Into<BoxError>) -> Self {
        Self::Unavailable { doing, source: source.into() }
    }

    pub fn denied(doing: &'static str, source: impl Into<BoxError>) -> Self {
        Self::Denied { doing, source: source.into() }
    }

    /// Cannot be decoded, or is malformed.
    pub fn invalid(doing: &'static str, source: impl Into<BoxError>) -> Self {
        Self::Invalid { doing, source: source.into() }
    }
}
