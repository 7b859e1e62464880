//! The uploads in parts that this user has begun: a small file for each, in the user's folder for state, so that the
//! next run of the command can resume them.
//!
//! A file is named after the API, the path, the size and the time of the last change of what is uploaded. It holds the
//! name of the upload and no secret; only its user can read it. It is locked while a command works on the upload, so
//! that two commands do not send the same parts: the second one makes an upload of its own.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use etcetera::base_strategy::{BaseStrategy, choose_base_strategy};
use rowmill_core::model::ids::FileGuid;
use rowmill_core::model::sha256::sha256_hex;
use serde::{Deserialize, Serialize};

use super::SourceFile;
use crate::login::private_folder;

/// The folder below the user's folder for state.
const FOLDER: &str = "rowmill/uploads";

/// Retention of a file. The longest life of an upload is shorter.
const KEPT_FOR: Duration = Duration::from_secs(100 * 24 * 60 * 60);

/// The begun uploads of a user.
#[derive(Debug, Clone)]
pub struct RememberedUploads {
    folder: PathBuf,
}

/// The content of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    server: String,
    path: PathBuf,
    file_guid: FileGuid,
}

/// The begun upload of one file, or the place for it. It is locked.
#[derive(Debug)]
pub struct Remembered {
    path: PathBuf,
    file: File,
    server: String,
    source: PathBuf,
    entry: Option<Entry>,
}

impl RememberedUploads {
    /// Those of this user, or none on a system that gives users no folder for state.
    pub fn of_user() -> Option<Self> {
        let strategy = choose_base_strategy().ok()?;
        let folder = strategy.state_dir().unwrap_or_else(|| strategy.data_dir());
        Some(Self { folder: folder.join(FOLDER) })
    }

    pub const fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The begun upload of this file to this API, or the place for it. `None` if another command works on it, or if
    /// nothing can be remembered: then the upload cannot be resumed by a later run, and works all the same.
    pub fn of_file(&self, server: &str, file: &SourceFile) -> Option<Remembered> {
        private_folder(&self.folder).ok()?;
        self.remove_old();
        let source = std::fs::canonicalize(&file.path).ok()?;
        let modified = file.modified?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        let name = sha256_hex(format!("{server}\n{}\n{modified}\n{}", file.size, source.display()));
        let path = self.folder.join(name + ".json");
        let mut file = private_file(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).ok()?;
        // A torn entry counts as none.
        let entry: Option<Entry> = serde_json::from_slice(&text).ok();
        let entry = entry.filter(|entry| entry.server == server && entry.path == source);
        Some(Remembered { path, file, server: server.to_owned(), source, entry })
    }

    /// Forgets an upload of any file.
    pub fn forget(&self, file_guid: FileGuid) {
        for path in self.files() {
            let entry = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Entry>(&text).ok());
            if entry.is_some_and(|entry| entry.file_guid == file_guid) {
                // It would only be of no use.
                let _ = std::fs::remove_file(path);
            }
        }
    }

    fn remove_old(&self) {
        let now = SystemTime::now();
        for path in self.files() {
            let modified = std::fs::metadata(&path).and_then(|metadata| metadata.modified());
            if modified.is_ok_and(|modified| now.duration_since(modified).is_ok_and(|age| age > KEPT_FOR)) {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
    }
}

impl Remembered {
    pub fn file_guid(&self) -> Option<FileGuid> {
        self.entry.as_ref().map(|entry| entry.file_guid)
    }

    /// Remembers that this upload was begun. Without success it cannot be resumed by a later run.
    pub fn note(&mut self, file_guid: FileGuid) {
        let entry = Entry { server: self.server.clone(), path: self.source.clone(), file_guid };
        let mut write = || {
            self.file.set_len(0)?;
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(&serde_json::to_vec(&entry).unwrap_or_default())?;
            self.file.sync_all()
        };
        self.entry = write().is_ok().then_some(entry);
    }

    /// Forgets it: the upload is complete, or can never be.
    pub fn forget(&mut self) {
        self.entry = None;
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for Remembered {
    /// An entry without an upload is of no use.
    fn drop(&mut self) {
        if self.entry.is_none() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens or creates a file that only its user can read.
fn private_file(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "https://api.example";

    async fn source(folder: &Path, text: &str) -> SourceFile {
        let path = folder.join("rows.csv");
        std::fs::write(&path, text).unwrap();
        SourceFile::open(&path, None).await.unwrap()
    }

    fn guid(number: u128) -> FileGuid {
        FileGuid(uuid::Uuid::from_u128(number))
    }

    #[tokio::test]
    async fn an_upload_is_remembered_for_the_same_file_and_api_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let uploads = RememberedUploads::in_folder(folder.path().join("state/uploads"));
        let file = source(folder.path(), "a\n1\n").await;
        uploads.of_file(SERVER, &file).unwrap().note(guid(7));
        assert_eq!(uploads.of_file(SERVER, &file).unwrap().file_guid(), Some(guid(7)));
        assert_eq!(uploads.of_file("https://other.example", &file).unwrap().file_guid(), None);
        let longer = source(folder.path(), "a\n1\n2\n").await;
        assert_eq!(uploads.of_file(SERVER, &longer).unwrap().file_guid(), None, "it has other content");
        let touched = SourceFile { modified: Some(UNIX_EPOCH), ..file.clone() };
        assert_eq!(uploads.of_file(SERVER, &touched).unwrap().file_guid(), None, "it was written to");
        uploads.of_file(SERVER, &file).unwrap().forget();
        assert_eq!(uploads.of_file(SERVER, &file).unwrap().file_guid(), None);
        uploads.of_file(SERVER, &file).unwrap().note(guid(8));
        uploads.forget(guid(8));
        assert!(uploads.files().is_empty(), "nothing is left behind");
    }

    #[tokio::test]
    async fn two_commands_do_not_work_on_one_upload() {
        let folder = tempfile::tempdir().unwrap();
        let uploads = RememberedUploads::in_folder(folder.path().join("state"));
        let file = source(folder.path(), "a\n").await;
        let first = uploads.of_file(SERVER, &file).unwrap();
        assert!(uploads.of_file(SERVER, &file).is_none());
        drop(first);
        assert!(uploads.of_file(SERVER, &file).is_some());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn only_its_user_can_read_what_is_remembered() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let uploads = RememberedUploads::in_folder(folder.path().join("state"));
        uploads.of_file(SERVER, &source(folder.path(), "a\n").await).unwrap().note(guid(7));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&uploads.folder), mode(&uploads.files()[0])), (0o700, 0o600));
    }
}
