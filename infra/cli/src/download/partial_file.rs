//! A file that is being downloaded.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;

use crc_fast::{CrcAlgorithm, Digest};
use tempfile::TempPath;
use tokio::fs::File;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

use super::Destination;

/// The mode other programs create files with, before the umask.
const MODE: u32 = 0o666;

/// A growing file with a temporary name next to its destination, and its checksum. It is removed when dropped.
pub struct PartialFile {
    file: File,
    temporary: TempPath,
    checksum: Digest,
    length: u64,
}

impl PartialFile {
    /// An empty file in the folder of `place`, so that it can be renamed there.
    pub fn beside(place: &Destination) -> io::Result<Self> {
        let (file, temporary) = tempfile::Builder::new()
            .prefix(".rowmill-")
            .suffix(".part")
            .permissions(Permissions::from_mode(MODE))
            .tempfile_in(place.folder())?
            .into_parts();
        Ok(Self { file: File::from_std(file), temporary, checksum: empty(), length: 0 })
    }

    /// Bytes so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// CRC-64/NVME of the bytes so far.
    pub fn checksum(&self) -> u64 {
        self.checksum.finalize()
    }

    pub async fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).await?;
        self.checksum.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Discards everything and returns the number of discarded bytes.
    pub async fn start_over(&mut self) -> io::Result<u64> {
        self.file.flush().await?;
        self.file.set_len(0).await?;
        self.file.rewind().await?;
        self.checksum = empty();
        Ok(std::mem::take(&mut self.length))
    }

    /// Gives the file its final name.
    pub async fn put_in_place(mut self, place: &Destination) -> io::Result<()> {
        // An error of the last write appears here.
        self.file.flush().await?;
        let kept = match place.replace {
            true => self.temporary.persist(&place.path),
            // A file that appeared in the meantime is not replaced.
            false => self.temporary.persist_noclobber(&place.path),
        };
        kept.map_err(|error| error.error)
    }
}

fn empty() -> Digest {
    Digest::new(CrcAlgorithm::Crc64Nvme)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(folder: &tempfile::TempDir, replace: bool) -> Destination {
        Destination { path: folder.path().join("a.csv"), replace }
    }

    #[tokio::test]
    async fn the_checksum_is_that_of_the_bytes_that_count() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(&folder, false);
        let mut incoming = PartialFile::beside(&place).unwrap();
        incoming.append(b"thrown away").await.unwrap();
        assert_eq!(incoming.start_over().await.unwrap(), 11);
        for part in ["1234", "", "56789"] {
            incoming.append(part.as_bytes()).await.unwrap();
        }
        // The check value of CRC-64/NVME in the catalogue of parametrised CRC algorithms.
        assert_eq!((incoming.length(), incoming.checksum()), (9, 0xae8b_1486_0a79_9888));
        incoming.put_in_place(&place).await.unwrap();
        assert_eq!(std::fs::read(&place.path).unwrap(), b"123456789");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing temporary is left");
    }

    #[tokio::test]
    async fn a_file_is_as_readable_as_those_of_other_programs() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        std::fs::write(&other, "").unwrap();
        let place = place(&folder, false);
        PartialFile::beside(&place).unwrap().put_in_place(&place).await.unwrap();
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&place.path), mode(&other));
    }

    #[tokio::test]
    async fn a_file_that_appears_meanwhile_is_replaced_only_where_that_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        for (replace, left) in [(false, "theirs"), (true, "ours")] {
            let place = place(&folder, replace);
            let mut incoming = PartialFile::beside(&place).unwrap();
            incoming.append(b"ours").await.unwrap();
            std::fs::write(&place.path, "theirs").unwrap();
            let put = incoming.put_in_place(&place).await;
            assert_eq!(
                put.map_err(|error| error.kind()),
                if replace { Ok(()) } else { Err(io::ErrorKind::AlreadyExists) }
            );
            assert_eq!(std::fs::read_to_string(&place.path).unwrap(), left);
        }
    }

    #[tokio::test]
    async fn a_discarded_download_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut incoming = PartialFile::beside(&place(&folder, false)).unwrap();
        incoming.append(b"half").await.unwrap();
        drop(incoming);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
