//! Closed vocabularies: sets of words with stable names, in stored rows as in answers.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

/// A fixed set of words, each of them a stable name.
pub trait Word: Copy {
    fn as_str(self) -> &'static str;
}

/// A word that a later version may add to: a reader keeps a word that it does not know as it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Open<T> {
    /// A word that this version knows.
    Known(T),
    /// A word of another version.
    Other(String),
}

impl<T: Word> Open<T> {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(word) => word.as_str(),
            Self::Other(word) => word,
        }
    }
}

impl<T> From<T> for Open<T> {
    fn from(word: T) -> Self {
        Self::Known(word)
    }
}

impl<T: PartialEq> PartialEq<T> for Open<T> {
    fn eq(&self, other: &T) -> bool {
        matches!(self, Self::Known(word) if word == other)
    }
}

impl<T: Word> fmt::Display for Open<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Defines an enum of words: their names in JSON and in text, the list of all of them, and their schema.
#[macro_export]
macro_rules! words {
    (
        $(#[doc = $doc:literal])+
        $name:ident { $($(#[doc = $word_doc:literal])+ $variant:ident = $word:literal,)+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[doc = $word_doc])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every one of them, in this order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word in JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// The meaning.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($word_doc),+).trim(),)+
                }
            }

            /// The one of this word, if there is one.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|known| known.as_str() == word)
            }
        }

        impl $crate::words::Word for $name {
            fn as_str(self) -> &'static str {
                self.as_str()
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                let words = Self::ALL.map(|word| (word.as_str(), word.meaning()));
                $crate::words::schema_of_words(concat!($($doc),+).trim(), &words)
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                std::borrow::Cow::Borrowed(stringify!($name))
            }
        }
    };
}

/// The schema of a fixed set of words, each with its meaning.
pub fn schema_of_words(description: &str, words: &[(&str, &str)]) -> RefOr<Schema> {
    let lines: Vec<String> = words.iter().map(|(word, meaning)| format!("- `{word}`: {meaning}")).collect();
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some(format!("{description}\n\n{}", lines.join("\n"))))
        .enum_values(Some(words.iter().map(|(word, _)| *word)));
    schema.into()
}

pub use words;

#[cfg(test)]
mod tests {
    use super::*;

    words! {
        /// Why a job was stopped.
        StopCode {
            /// The owner cancelled it.
            Cancelled = "cancelled",
        }
    }

    #[test]
    fn an_unknown_value_is_kept_and_a_known_one_is_recognised() {
        let known: Open<StopCode> = serde_json::from_str("\"cancelled\"").unwrap();
        assert_eq!(known, StopCode::Cancelled);
        let newer: Open<StopCode> = serde_json::from_str("\"out_of_moon\"").unwrap();
        assert_ne!(newer, StopCode::Cancelled);
        assert_eq!(StopCode::parse("out_of_moon"), None);
        assert_eq!(serde_json::to_string(&newer).unwrap(), "\"out_of_moon\"");
    }
}
