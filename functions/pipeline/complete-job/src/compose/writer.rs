//! Writes a file of the results: bytes are held up to the length of a part, then stored part by part.

use std::io::Write;

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, checksum, checksum_combine};
use flate2::Compression;
use flate2::write::GzEncoder;
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::keys;
use rowmill_core::model::results::{ManifestFile, ResultFile, ResultKind, crc64_text};
use rowmill_core::model::spec::Spec;
use rowmill_core::ports::{MultipartObjects, Objects, PortError, UploadedPart};
use rowmill_core::text::Format;
use serde::{Deserialize, Serialize};

/// The length of a part, in bytes. S3 takes no part below 5 MiB, except the last. After 1,000 parts each part is twice
/// as long, since S3 takes at most 10,000 of them.
pub const PART_BYTES: usize = 8 * 1024 * 1024;

const SHORT_PARTS: usize = 1000;

/// The text length of a member of a compressed file.
const MEMBER_BYTES: usize = 1024 * 1024;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenFile {
    pub name: String,
    /// Its place among the results.
    pub kind: ResultKind,
    pub content_type: String,
    pub gzip: bool,
    pub items: u64,
    /// Its multipart upload, once it has more than a part.
    multipart: Option<Multipart>,
    /// The bytes that are stored.
    bytes: u64,
    crc: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Multipart {
    /// The name that the store gave it.
    id: String,
    /// The run that began it. Its id is in the key of the file.
    by: RunId,
    parts: Vec<UploadedPart>,
}

impl OpenFile {
    pub const fn new(name: String, kind: ResultKind, content_type: String, gzip: bool) -> Self {
        Self { name, kind, content_type, gzip, items: 0, multipart: None, bytes: 0, crc: 0 }
    }

    /// A file with nothing in it, for rows in the format of the input. `stem` is its name without the extension.
    pub fn of_rows(stem: &str, kind: ResultKind, spec: &Spec) -> Self {
        let (extension, content_type) = match spec.head.dialect.format {
            Format::Csv => ("csv", "text/csv"),
            Format::Jsonl => ("jsonl", "application/x-ndjson"),
        };
        Self::new(format!("{stem}.{extension}"), kind, content_type.to_owned(), false)
    }
}

/// Where a run writes files.
#[derive(Clone, Copy)]
pub struct Destination<'a> {
    pub job_guid: JobGuid,
    pub attempt: u32,
    /// The id of this run in the keys of the files that it stores. No other run, and no other try of this one, has it.
    pub run: RunId,
    /// Stores a file of at most one part.
    pub objects: &'a dyn Objects,
    /// Stores a longer file.
    pub multipart: &'a dyn MultipartObjects,
    pub part_bytes: usize,
}

/// Writes a file.
///
/// Two runs may resume the same file at the same place, and write other bytes, because the job was stopped in between.
/// A file of one part has the name of the run that stores it. A longer one has the name of the run that began it. It is
/// joined once, by a run whose parts are the stored ones; another run takes the joined file only if it has the length
/// of its own.
pub struct ResultWriter<'a> {
    to: Destination<'a>,
    file: OpenFile,
    /// Bytes of the file that are not stored yet.
    tail: Vec<u8>,
    /// Text that is not compressed yet.
    text: Vec<u8>,
}

impl<'a> ResultWriter<'a> {
    /// Writes on at this file, of which these bytes are not stored yet.
    pub const fn new(to: Destination<'a>, file: OpenFile, tail: Vec<u8>) -> Self {
        Self { to, file, tail, text: Vec::new() }
    }

    /// The run whose id is in the key of the file.
    fn by(&self) -> RunId {
        self.file.multipart.as_ref().map_or(self.to.run, |multipart| multipart.by)
    }

    fn key(&self) -> String {
        keys::result_file(self.to.job_guid, self.to.attempt, &self.by().to_string(), &self.file.name)
    }

    pub fn name(&self) -> &str {
        &self.file.name
    }

    pub fn is_empty(&self) -> bool {
        self.file.bytes == 0 && self.tail.is_empty() && self.text.is_empty()
    }

    /// Counts items that have been written.
    pub const fn count(&mut self, items: u64) {
        self.file.items += items;
    }

    /// Adds these bytes. Only the end of the file shows whether the parts stored before still exist.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), PortError> {
        match self.file.gzip {
            false => self.tail.extend_from_slice(bytes),
            true => {
                self.text.extend_from_slice(bytes);
                if self.text.len() >= MEMBER_BYTES {
                    self.compress()?;
                }
            }
        }
        while self.tail.len() >= self.part_bytes() {
            let rest = self.tail.split_off(self.part_bytes());
            self.put_part().await?;
            self.tail = rest;
        }
        Ok(())
    }

    fn part_bytes(&self) -> usize {
        let parts = self.file.multipart.as_ref().map_or(0, |multipart| multipart.parts.len());
        if parts < SHORT_PARTS { self.to.part_bytes } else { 2 * self.to.part_bytes }
    }

    /// Makes a member of the text so far. An empty file needs one too, to be a valid compressed file.
    fn compress(&mut self) -> Result<(), PortError> {
        let mut member = GzEncoder::new(&mut self.tail, Compression::default());
        let compressed = member.write_all(&self.text).and_then(|()| member.finish().map(drop));
        self.text.clear();
        compressed.map_err(|error| PortError::invalid("compressing a result", error))
    }

    fn add_to_checksum(&mut self) {
        let crc = checksum(CrcAlgorithm::Crc64Nvme, &self.tail);
        let bytes = self.tail.len() as u64;
        self.file.crc = match self.file.bytes {
            0 => crc,
            _ => checksum_combine(CrcAlgorithm::Crc64Nvme, self.file.crc, crc, bytes),
        };
        self.file.bytes += bytes;
    }

    async fn put_part(&mut self) -> Result<(), PortError> {
        let key = self.key();
        self.add_to_checksum();
        let multipart = match &mut self.file.multipart {
            Some(multipart) => multipart,
            None => {
                let id = self.to.multipart.begin_multipart(&key, &self.file.content_type).await?;
                self.file.multipart.insert(Multipart { id, by: self.to.run, parts: Vec::new() })
            }
        };
        let number = u32::try_from(multipart.parts.len() + 1).unwrap_or(u32::MAX);
        let bytes = Bytes::from(std::mem::take(&mut self.tail));
        let size = bytes.len() as u64;
        let part = match self.to.multipart.put_part(&key, &multipart.id, number, bytes).await {
            // Another run has joined the file, or the upload is lost: `join_parts` finds out which.
            Err(PortError::NotFound) => UploadedPart { number, etag: String::new(), size },
            part => part?,
        };
        multipart.parts.push(part);
        Ok(())
    }

    /// The file so far and its bytes that are not stored, for another run to write on.
    ///
    /// # Errors
    /// None in practice.
    pub fn hand_over(mut self) -> Result<(OpenFile, Vec<u8>), PortError> {
        if !self.text.is_empty() {
            self.compress()?;
        }
        Ok((self.file, self.tail))
    }

    /// Stores the rest, which completes the file. The caller says whether all of its items are counted.
    ///
    /// # Errors
    /// `Unavailable`; `NotFound` if parts that were stored before are gone, or another run has stored others.
    pub async fn finish(mut self, are_counted: bool) -> Result<ManifestFile, PortError> {
        if self.file.gzip && (!self.text.is_empty() || self.is_empty()) {
            self.compress()?;
        }
        let (key, by) = (self.key(), self.by().to_string());
        if self.file.multipart.is_some() {
            if !self.tail.is_empty() {
                self.put_part().await?;
            }
            self.join_parts(&key).await?;
        } else {
            self.add_to_checksum();
            let bytes = Bytes::from(std::mem::take(&mut self.tail));
            self.to.objects.put(&key, &self.file.content_type, bytes, None).await?;
        }
        let OpenFile { name, kind, content_type, bytes, crc, items, .. } = self.file;
        let items = are_counted.then_some(items);
        let file = ResultFile { name, kind: kind.into(), content_type, bytes, items, crc64_nvme: crc64_text(crc) };
        Ok(ManifestFile { file, by })
    }

    async fn join_parts(&self, key: &str) -> Result<(), PortError> {
        let Some(Multipart { id, parts, .. }) = &self.file.multipart else { return Ok(()) };
        match self.to.multipart.complete_multipart(key, id, parts).await {
            // Joined before: by a request whose reply was lost, or by a run that lost its lease.
            Err(PortError::NotFound) if self.to.objects.head(key).await?.size == self.file.bytes => Ok(()),
            // Another run has replaced one of the parts, or it is gone.
            Err(PortError::Changed) => Err(PortError::NotFound),
            joined => joined,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;
    use rowmill_testing::fixtures;
    use rowmill_testing::in_memory::InMemoryObjects;

    use super::*;

    /// Where this run writes.
    fn to(objects: &InMemoryObjects, run: u8) -> Destination<'_> {
        let (job_guid, run) = (fixtures::job().job_guid, RunId::from_bytes([run; 7]));
        Destination { job_guid, attempt: 1, run, objects, multipart: objects, part_bytes: PART_BYTES }
    }

    /// The bytes of a finished file.
    async fn stored(objects: &InMemoryObjects, file: &ManifestFile) -> Vec<u8> {
        let key = keys::result_file(fixtures::job().job_guid, 1, &file.by, &file.file.name);
        objects.read(&key).await.unwrap().to_vec()
    }

    fn open(gzip: bool) -> OpenFile {
        OpenFile::new("f".into(), ResultKind::Output, "text/csv".into(), gzip)
    }

    /// Writes lines, handing over at some of them to another run; the file as described and its bytes.
    async fn written(gzip: bool, lines: usize, hand_overs: &[usize]) -> (ResultFile, Vec<u8>) {
        let objects = InMemoryObjects::default();
        let (mut run, mut writer) = (0, ResultWriter::new(to(&objects, 0), open(gzip), Vec::new()));
        for line in 0..lines {
            if hand_overs.contains(&line) {
                let (file, tail) = writer.hand_over().unwrap();
                run += 1;
                writer = ResultWriter::new(to(&objects, run), file, tail);
            }
            writer.write(format!("{line:0>99}\n").as_bytes()).await.unwrap();
        }
        let file = writer.finish(false).await.unwrap();
        let bytes = stored(&objects, &file).await;
        (file.file, bytes)
    }

    #[tokio::test]
    async fn a_file_of_any_length_is_complete_and_has_the_right_checksum() {
        for lines in [0, 1, 90_000, 200_000] {
            let (file, bytes) = written(false, lines, &[]).await;
            assert_eq!((bytes.len(), file.bytes), (lines * 100, lines as u64 * 100));
            assert!(
                (0..lines).zip(bytes.chunks(100)).all(|(line, found)| found == format!("{line:0>99}\n").as_bytes())
            );
            assert_eq!(file.crc64_nvme, crc64_text(checksum(CrcAlgorithm::Crc64Nvme, &bytes)));
            assert_eq!(written(false, lines, &[0, 5, 50_000, 85_000, 199_999]).await, (file, bytes));
        }
    }

    #[tokio::test]
    async fn a_compressed_file_reads_back() {
        for hand_overs in [&[][..], &[3, 20_000]] {
            let (file, bytes) = written(true, 30_000, hand_overs).await;
            let mut text = String::new();
            MultiGzDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
            assert_eq!((text.len(), text.lines().count()), (3_000_000, 30_000));
            assert_eq!(file.crc64_nvme, crc64_text(checksum(CrcAlgorithm::Crc64Nvme, &bytes)));
        }
    }

    /// A file of more than a part that a run has begun, for others to write on.
    async fn begun<'a>(objects: &'a InMemoryObjects) -> impl Fn(u8) -> ResultWriter<'a> {
        let mut writer = ResultWriter::new(to(objects, 1), open(false), Vec::new());
        writer.write(&vec![b'x'; PART_BYTES + 7]).await.unwrap();
        let (file, tail) = writer.hand_over().unwrap();
        move |run| ResultWriter::new(to(objects, run), file.clone(), tail.clone())
    }

    #[tokio::test]
    async fn a_file_that_another_run_joined_is_taken_if_it_has_the_same_length() {
        let objects = InMemoryObjects::default();
        let resumed = begun(&objects).await;
        let joined = resumed(2).finish(true).await.unwrap();
        let bytes = stored(&objects, &joined).await;
        assert_eq!(resumed(3).finish(true).await.unwrap(), joined);
        let mut longer = resumed(3);
        longer.write(&vec![b'y'; PART_BYTES]).await.unwrap();
        assert!(matches!(longer.finish(true).await, Err(PortError::NotFound)), "it is not this file that is there");
        assert_eq!(stored(&objects, &joined).await, bytes);
    }

    #[tokio::test]
    async fn a_run_does_not_join_the_parts_of_another() {
        let objects = InMemoryObjects::default();
        let resumed = begun(&objects).await;
        let (mut second, mut third) = (resumed(2), resumed(3));
        second.write(&vec![b'2'; PART_BYTES]).await.unwrap();
        third.write(&vec![b'3'; PART_BYTES]).await.unwrap();
        assert!(matches!(second.finish(true).await, Err(PortError::NotFound)), "its second part was replaced");
        let joined = third.finish(true).await.unwrap();
        assert_eq!(stored(&objects, &joined).await.last(), Some(&b'3'));
    }

    #[tokio::test]
    async fn a_file_with_a_missing_part_is_not_completed() {
        let objects = InMemoryObjects::default();
        let mut resumed = begun(&objects).await(2);
        let missing = UploadedPart { number: 2, etag: "e".into(), size: 5 };
        resumed.file.multipart.as_mut().unwrap().parts.push(missing);
        resumed.file.bytes += 5;
        let key = resumed.key();
        assert!(matches!(resumed.finish(true).await, Err(PortError::NotFound)));
        assert!(objects.read(&key).await.is_err());
    }

    #[tokio::test]
    async fn files_of_a_part_have_the_name_of_the_run_that_stores_them() {
        let objects = InMemoryObjects::default();
        let (file, _) = ResultWriter::new(to(&objects, 1), open(false), Vec::new()).hand_over().unwrap();
        let mut files = Vec::new();
        for run in [2, 3] {
            let mut writer = ResultWriter::new(to(&objects, run), file.clone(), Vec::new());
            writer.write(&[run]).await.unwrap();
            files.push(writer.finish(true).await.unwrap());
        }
        for (file, run) in files.iter().zip([2, 3]) {
            assert_eq!((&file.by, stored(&objects, file).await), (&RunId::from_bytes([run; 7]).to_string(), vec![run]));
        }
    }
}
