//! The names of jobs, uploads and owners.

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

    /// The longest name, in bytes.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_owner_fits_into_a_row_key() {
        assert_eq!(Owner::of_name("größe of Rome"), Some(Owner("größe of Rome".into())));
        for name in ["", "  ", "a#b", "a\nb", &"a".repeat(257)] {
            assert_eq!(Owner::of_name(name), None, "{name:?}");
        }
    }
}
