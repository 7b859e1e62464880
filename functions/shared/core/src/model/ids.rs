//! The names of jobs, uploads, owners and runs.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

macro_rules! guid {
    ($(#[doc = $doc:literal])* $name:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let uuid = ObjectBuilder::new()
                    .schema_type(Type::String)
                    .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
                    .description(Some(concat!($($doc),*).trim()));
                uuid.into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }
        }
    };
}

guid! {
    /// Names a job. A version 7 UUID, so that jobs sort by the time they were created.
    JobGuid
}

guid! {
    /// Names an upload.
    FileGuid
}

/// The owner of a job or upload: the `sub` claim of the caller's token, or [`Owner::LOCAL`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Owner(pub String);

impl Owner {
    /// The owner of everything if the HTTP API has no authorizer.
    pub const LOCAL: &'static str = "local";

    pub const MAX_BYTES: usize = 256;

    /// The owner of this name, if the name is valid: not blank, not too long, no control characters, and no `#`, which
    /// separates the parts of stored keys.
    pub fn of_name(name: &str) -> Option<Self> {
        let fits = !name.trim().is_empty() && name.len() <= Self::MAX_BYTES;
        (fits && !name.contains('#') && !name.chars().any(char::is_control)).then(|| Self(name.to_owned()))
    }

    /// The owner's name as stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names one run: a single try of a function at a piece of work (56 random bits).
///
/// A commit carries it, so that a run whose reply was lost recognises its own write. The keys of a run's objects carry
/// it too, so that the objects of a run that lost its commit are never read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RunId([u8; RunId::BYTES]);

impl RunId {
    /// The length of a run id; with the kind before it, the mark of a chunk has 8 bytes.
    pub const BYTES: usize = 7;

    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.to_string()
    }
}

/// The text is not a run id: a run id has 14 hexadecimal digits.
#[derive(Debug, thiserror::Error)]
#[error("a run id is {} hexadecimal digits", RunId::BYTES * 2)]
pub struct InvalidRunId;

impl FromStr for RunId {
    type Err = InvalidRunId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() != Self::BYTES * 2 || !text.is_ascii() {
            return Err(InvalidRunId);
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| InvalidRunId)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| InvalidRunId)?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for RunId {
    type Error = InvalidRunId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_reads_back_as_it_was_written() {
        let run = RunId::from_bytes([0, 1, 0x7f, 0x80, 0xff, 9, 16]);
        assert_eq!(run.to_string(), "00017f80ff0910");
        assert_eq!(run.to_string().parse::<RunId>().unwrap(), run);
        assert!("00017f80ff09".parse::<RunId>().is_err());
        assert!("zz017f80ff0910".parse::<RunId>().is_err());
        assert!("é0017f80ff091".parse::<RunId>().is_err());
    }

    #[test]
    fn a_valid_owner_fits_into_a_row_key() {
        assert_eq!(Owner::of_name("größe of Rome"), Some(Owner("größe of Rome".into())));
        for name in ["", "  ", "a#b", "a\nb", &"a".repeat(257)] {
            assert_eq!(Owner::of_name(name), None, "{name:?}");
        }
    }
}
