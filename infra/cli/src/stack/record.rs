//! `stack.json`: what a later command needs to find the stack, and to be sure that it is the stack.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A stack as it was brought up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Base URL of the emulated AWS services.
    pub endpoint: String,
    /// Process id of the emulator.
    pub pid: i32,
    /// The arguments it was started with, by which it is told from another process with its number.
    pub arguments: Vec<String>,
    /// The API's base URL. None as long as nothing has been deployed.
    pub api_url: Option<String>,
    /// The template's outputs.
    pub outputs: BTreeMap<String, String>,
}

/// Why the record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be read or written.
    #[error("cannot use {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a record, perhaps another version's.
    #[error("{} is damaged; remove it, and stop the emulator it was for", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

impl Record {
    pub(super) fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|source| RecordError::Damaged { path: path.to_owned(), source }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(RecordError::File { path: path.to_owned(), source }),
        }
    }

    /// Written beside and moved into place, so that no reader sees half of it.
    pub(super) fn write(&self, path: &Path) -> Result<(), RecordError> {
        let text = serde_json::to_string_pretty(self).expect("a record is JSON");
        let beside = path.with_extension("json.new");
        std::fs::write(&beside, text + "\n")
            .and_then(|()| std::fs::rename(&beside, path))
            .map_err(|source| RecordError::File { path: path.to_owned(), source })
    }

    pub(super) fn remove(path: &Path) -> Result<(), RecordError> {
        match std::fs::remove_file(path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(RecordError::File { path: path.to_owned(), source })
            }
            _ => Ok(()),
        }
    }
}
