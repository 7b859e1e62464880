//! The members of a zip archive as the files of a job.
//!
//! A member is text, plain or in another charset, or a JSON array. It is decompressed as a stream.

use std::io::{self, Read, Seek};
use std::ops::ControlFlow;

use rowmill_core::model::files::ZipMember;
use rowmill_core::model::keys::KEY_MAX_BYTES;
use rowmill_core::model::packing::TextPacking;

use crate::blocks::{Block, Blocks, Stopped};
use crate::error::{DecodeError, Place};
use crate::limits::Limits;
use crate::source::Source;
use crate::stream::pump;
use crate::watch::Watch;
use crate::zip::{Archive, Kind, LOCAL_BYTES};

/// The most files in an archive.
pub const MEMBERS_MAX: usize = 10_000;

/// The members that are files, with their names, in the order of the directory.
///
/// # Errors
/// There is none, or there are too many; two of them share bytes, which only a decompression bomb does; or
/// all together expand too far.
pub fn members(file: impl Read + Seek, limits: &Limits) -> Result<Vec<(String, ZipMember)>, DecodeError> {
    let watch = Watch::new(*limits);
    let archive = Archive::open(Kind::Files, Source::new(file, &watch), &watch)?;
    // What macOS adds to an archive is not the user's.
    let is_file = |name: &str| !name.ends_with('/') && !name.starts_with("__MACOSX/") && !name.ends_with(".DS_Store");
    let members: Vec<_> = archive.members().iter().filter(|(name, _)| is_file(name)).cloned().collect();
    let unsupported = |what: String| Err(DecodeError::UnsupportedZip { what });
    if members.is_empty() {
        return unsupported("has no file in it".to_owned());
    }
    if members.len() > MEMBERS_MAX {
        return unsupported(format!("has more than the maximum of {MEMBERS_MAX} files"));
    }
    if members.iter().any(|(name, _)| name.len() > KEY_MAX_BYTES) {
        return unsupported(format!("has a file whose name is longer than {KEY_MAX_BYTES} bytes"));
    }
    let mut places: Vec<_> = members.iter().map(|(_, member)| (member.offset, member.bytes)).collect();
    places.sort_unstable();
    let end = |(offset, bytes): (u64, u64)| offset.saturating_add(LOCAL_BYTES as u64).saturating_add(bytes);
    if places.windows(2).any(|pair| end(pair[0]) > pair[1].0) {
        return Err(Kind::Files.damaged("two of its files share bytes"));
    }
    if places.last().is_some_and(|last| end(*last) > archive.size()) {
        return Err(Kind::Files.damaged("a file in it goes beyond its end"));
    }
    let all = members.iter().fold(0, |all: u64, (_, member)| all.saturating_add(member.inflated_bytes));
    watch.add_inflated(all, archive.size())?;
    Ok(members)
}

/// Writes the text of a member to `sink`.
pub(crate) fn decode(
    file: impl Read + Seek,
    (member, packing): (&ZipMember, TextPacking),
    watch: &Watch,
    sink: impl FnMut(Block<'_>) -> ControlFlow<()>,
) -> Result<(), Stopped> {
    let source = Source::new(file, watch);
    let mut archive = Archive::of_members(Kind::Files, source, member.archive_bytes, watch);
    let mut part = archive.read(member)?;
    let mut blocks = Blocks::new(watch, Some(member.bytes), sink);
    let decoded = pump(&mut part, packing, |text| {
        blocks.set_consumed(watch.read());
        blocks.write(text)
    });
    match decoded {
        Ok(Ok(())) => blocks.finish(),
        Ok(Err(stopped)) => Err(stopped),
        Err(error) => Err(Stopped::Failed(watch.take_failure().unwrap_or_else(|| damaged(member, error, watch)))),
    }
}

fn damaged(member: &ZipMember, error: io::Error, watch: &Watch) -> DecodeError {
    let problem = match error.kind() {
        io::ErrorKind::UnexpectedEof => "data is missing at the end of the file in it",
        _ => "its data cannot be decompressed, or its length or checksum is wrong",
    };
    let at = Place::Byte(member.offset.saturating_add(watch.read()));
    DecodeError::Corrupt { format: "zip archive", at, problem, source: Some(Box::new(error)) }
}
