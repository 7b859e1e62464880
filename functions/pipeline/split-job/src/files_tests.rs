use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rowmill_core::model::files::{FileList, FilePosition, ListedFile};
use rowmill_core::model::spec::{SourceFile, Spec};
use rowmill_core::ports::{Clock, Objects};
use rowmill_core::text::{Chunk, ChunkLimits, Position};
use rowmill_formats::{Limits, ReadAhead};
use rowmill_testing::fixtures;
use rowmill_testing::in_memory::InMemoryObjects;

use crate::cut::{CutError, CutTally};
use crate::files::{FileReads, FilesCut};

/// Time passes with every look.
#[derive(Default)]
pub struct Ticking(AtomicI64);

#[async_trait]
impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        second(self.0.fetch_add(1, Ordering::Relaxed))
    }

    async fn sleep(&self, _: Duration) {}
}

pub fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

const FILES: [(&str, &str); 6] = [
    ("a.csv", "a,b\n1,2\n3,4\n5,6\n7,8\n"),
    ("empty.csv", ""),
    ("header.csv", "a;b\n"),
    ("quote.csv", "x\n1\n\"2\n3\n"),
    ("b.jsonl", "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n"),
    ("gone.csv", "gone"),
];

async fn stored() -> (Arc<InMemoryObjects>, FileList) {
    let (objects, mut lines) = (InMemoryObjects::default(), String::new());
    for (name, text) in FILES {
        let etag = objects.put(name, "text/csv", text.into(), None).await.unwrap();
        let size = text.len() as u64;
        let file = ListedFile::of(name.into(), SourceFile { file_guid: None, key: name.into(), etag, size });
        lines += &format!("{}\n", serde_json::to_string(&file).unwrap());
    }
    objects.delete("gone.csv");
    let size = lines.len() as u64;
    let etag = objects.put("list", "application/x-ndjson", lines.into(), None).await.unwrap();
    let list = SourceFile { file_guid: None, key: "list".into(), etag, size };
    (Arc::new(objects), FileList { list, files: FILES.len() as u64, bytes: 0 })
}

fn cut_from(
    objects: &Arc<InMemoryObjects>,
    list: &FileList,
    at: (FilePosition, Position),
    first_max_bytes: u64,
) -> FilesCut {
    let limits = ChunkLimits { max_items: 1, max_bytes: 100, max_record_bytes: 100 };
    let spec = Spec { limits, ..fixtures::spec() };
    let ahead = ReadAhead { range_bytes: 7, reads: 2 };
    let reads = FileReads { first_max_bytes, ahead, packed: Limits::default() };
    FilesCut::new(objects.clone(), Arc::new(Ticking::default()), &spec, list, at, reads)
}

const START: (FilePosition, Position) =
    (FilePosition { line: 0, number: 0, begun: None }, Position { offset: 0, row: 1 });

/// A chunk with its file, as it is told apart from others.
type Cut = (Chunk, String, u64);

fn chunks_of(tally: &CutTally) -> Vec<Cut> {
    let part = |place: usize| tally.parts.iter().rfind(|part| usize::from(part.first) <= place).unwrap();
    let of = |(place, chunk): (usize, &Chunk)| {
        let file = part(place).part.file.as_ref().unwrap();
        (*chunk, format!("{} {:?}", file.name, file.text), file.row(chunk.first_row))
    };
    tally.chunks.iter().enumerate().map(of).collect()
}

async fn cut_at_once(first_max_bytes: u64) -> Vec<Cut> {
    let (objects, list) = stored().await;
    let mut cut = cut_from(&objects, &list, START, first_max_bytes);
    let mut all = Vec::new();
    loop {
        let tally = cut.next_tally(second(1_000_000)).await.unwrap();
        if tally.chunks.is_empty() {
            return all;
        }
        all.extend(chunks_of(&tally));
    }
}

#[tokio::test]
async fn files_are_cut_in_the_same_way_wherever_time_is_up() {
    let whole = cut_at_once(64 * 1024).await;
    assert_eq!(whole.len(), 4 + 2 + 3 + 1, "{whole:#?}");
    // A file that is longer than its first bytes is read again.
    assert_eq!(cut_at_once(10).await, whole);
    for first_max_bytes in [10, 64 * 1024] {
        for time in 1..40 {
            let (objects, list) = stored().await;
            let (mut all, mut at, mut time) = (Vec::new(), START, time);
            loop {
                let mut cut = cut_from(&objects, &list, at, first_max_bytes);
                let tally = match cut.next_tally(second(time)).await {
                    Err(CutError::OutOfTime) => {
                        time += 1;
                        continue;
                    }
                    tally => tally.unwrap(),
                };
                let Some(last) = tally.chunks.last() else { break };
                let end = Position { offset: last.end(), row: last.first_row + u64::from(last.items) };
                at = (tally.stored.as_ref().unwrap().next_file.unwrap(), end);
                all.extend(chunks_of(&tally));
            }
            assert_eq!(all, whole, "with {first_max_bytes} first bytes");
        }
    }
}
