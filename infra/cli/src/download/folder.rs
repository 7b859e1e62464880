//! Where results are put: under names that stay in their folder, and over nothing by accident.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tokio::fs;

use super::DownloadError;
use crate::api::ResultFile;
use crate::terminal::drives_terminal;

/// The folder that results go to.
#[derive(Debug, Clone)]
pub struct Folder {
    /// Where it is. It is created when something is put there.
    pub path: PathBuf,
    /// Whether files that are there may be replaced.
    pub replace: bool,
}

/// Where one result goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Whether one that is there is replaced.
    pub replace: bool,
}

impl Place {
    /// The name without the folder.
    pub fn name(&self) -> String {
        self.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// The folder it is in.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    pub(super) fn unwritable(&self, source: std::io::Error) -> DownloadError {
        DownloadError::Unwritable { path: self.path.clone(), source }
    }
}

impl Folder {
    /// Where each of `files` goes. The folder exists afterwards.
    ///
    /// # Errors
    ///
    /// [`DownloadError::Nameless`], [`DownloadError::Twice`], [`DownloadError::Exists`],
    /// [`DownloadError::FolderInTheWay`] or [`DownloadError::Unwritable`]: all that can be known before a byte is fetched.
    pub async fn places(&self, files: &[ResultFile]) -> Result<Vec<Place>, DownloadError> {
        let mut places = Vec::with_capacity(files.len());
        for file in files {
            let name = safe_name(&file.file_name).ok_or_else(|| DownloadError::Nameless(file.file_name.clone()))?;
            let place = Place { path: self.path.join(name), replace: self.replace };
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

    async fn check(&self, place: &Place) -> Result<(), DownloadError> {
        // A link that leads nowhere is a file in the way like any other.
        match fs::symlink_metadata(&place.path).await {
            Ok(metadata) if metadata.is_dir() => Err(DownloadError::FolderInTheWay(place.path.clone())),
            Ok(_) if !place.replace => Err(DownloadError::Exists(place.path.clone())),
            Err(error) if error.kind() != ErrorKind::NotFound => Err(place.unwritable(error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// The last component of a path somebody else has named, as a file name that does no harm: none that leads out of its
/// folder, hides itself or is read as settings by other programs (a leading dot), or drives the terminal when it is listed.
fn safe_name(given: &str) -> Option<String> {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    // The components of a path decide in the end what a name is, here as at the operating system.
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
