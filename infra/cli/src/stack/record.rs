//! `stack.json`: what a later command needs to find and identify the stack.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A started stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// Base URL of the emulated AWS services.
    pub endpoint: String,
    /// Process id of the emulator.
    pub pid: i32,
    /// The arguments of its process. They distinguish it from another process with the same id.
    pub arguments: Vec<String>,
    /// The API's base URL. `None` before the first deployment, and if the stack has no HTTP API.
    pub api_url: Option<String>,
    pub outputs: BTreeMap<String, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("cannot use {}", .path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The file is not a valid record, for example that of another version.
    #[error("{} is damaged; remove it and stop its emulator", .path.display())]
    Damaged {
        path: PathBuf,
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

    /// Writes a temporary file and renames it, so that no reader sees a partial record.
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
