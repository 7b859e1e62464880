//! Destinations of results: safe names inside their folder, and no accidental overwriting.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rowmill_api::results::FileView;
use tokio::fs;

use super::DownloadError;
use crate::terminal::drives_terminal;

#[derive(Debug, Clone)]
pub struct Folder {
    /// Its path. The folder is created if necessary.
    pub path: PathBuf,
    /// True if existing files may be replaced.
    pub replace: bool,
}

/// The destination of one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    pub path: PathBuf,
    /// True if an existing file is replaced.
    pub replace: bool,
}

impl Destination {
    pub fn name(&self) -> String {
        self.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    pub(super) fn unwritable(&self, source: std::io::Error) -> DownloadError {
        DownloadError::Unwritable { path: self.path.clone(), source }
    }
}

impl Folder {
    /// The destination of each of `files`. Creates the folder.
    ///
    /// # Errors
    ///
    /// [`DownloadError::Nameless`], [`DownloadError::Twice`], [`DownloadError::Exists`],
    /// [`DownloadError::FolderInTheWay`] or [`DownloadError::Unwritable`]: everything that can be checked before the
    /// first byte is fetched.
    pub async fn places(&self, files: &[FileView]) -> Result<Vec<Destination>, DownloadError> {
        let mut places = Vec::with_capacity(files.len());
        for file in files {
            let given = &file.link.file_name;
            let name = safe_name(given).ok_or_else(|| DownloadError::Nameless(given.clone()))?;
            let place = Destination { path: self.path.join(name), replace: self.replace };
            if places.contains(&place) {
                return Err(DownloadError::Twice(place.path));
            }
            self.check(&place).await?;
            places.push(place);
        }
        let unwritable = |source| DownloadError::Unwritable { path: self.path.clone(), source };
        fs::create_dir_all(&self.path).await.map_err(unwritable)?;
        Ok(places)
    }

    async fn check(&self, place: &Destination) -> Result<(), DownloadError> {
        // A dangling symbolic link counts as an existing file.
        match fs::symlink_metadata(&place.path).await {
            Ok(metadata) if metadata.is_dir() => Err(DownloadError::FolderInTheWay(place.path.clone())),
            Ok(_) if !place.replace => Err(DownloadError::Exists(place.path.clone())),
            Err(error) if error.kind() != ErrorKind::NotFound => Err(place.unwritable(error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// The last component of an untrusted path as a safe file name. It stays in its folder, has no leading dot (hidden
/// files, settings of other programs) and no characters that control the terminal.
fn safe_name(given: &str) -> Option<String> {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    // `Path` decides what is a file name, as the operating system does.
    let is_name = Path::new(last).file_name() == Some(OsStr::new(last));
    let name: String = last.chars().map(|c| if drives_terminal(c) { '_' } else { c }).collect();
    let name = match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => name,
    };
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_component_of_a_name_is_used() {
        for (given, name) in [
            ("orders-failed-rows.csv", "orders-failed-rows.csv"),
            ("../../x", "x"),
            ("/etc/passwd", "passwd"),
            ("..\\..\\x", "x"),
            ("a/../b.csv", "b.csv"),
            ("Bestellungen März 漢.csv", "Bestellungen März 漢.csv"),
            ("a\u{1b}[2J\n\0b", "a_[2J__b"),
            ("\u{202e}vsc.exe", "_vsc.exe"),
            (".bashrc", "_bashrc"),
            ("...", "_.."),
        ] {
            assert_eq!(safe_name(given).as_deref(), Some(name), "{given:?}");
        }
        for given in ["", ".", "..", "a/..", "a/", "../"] {
            assert_eq!(safe_name(given), None, "{given:?}");
        }
    }
}
